"""Opens and closes a workspace: the folder, the store and the settings that its methods use."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Self

from evalstore.core.errors import EvalstoreError
from evalstore.core.values import Json
from evalstore.interfaces.api.calls import system_errors
from evalstore.interfaces.api.options import StrPath, overrides_of
from evalstore.planning.options import Location

if TYPE_CHECKING:
    from types import TracebackType


class OpenedWorkspace:
    """A workspace that has been opened, until it is closed."""

    _location: Location
    _closed = False

    def __init__(
        self,
        path: StrPath = ".",
        *,
        store: StrPath | None = None,
        config: StrPath | None = None,
        settings: Mapping[str, Json] | None = None,
        allow_outside: bool = False,
        on_warning: Callable[[str], object] | None = None,
    ) -> None:
        """Open the workspace that `path`, or a folder above it, is in.

        `store` replaces the store of the settings, `config` replaces `evalstore.yaml`, and
        `settings` replaces single settings, by name with dots for nested ones
        (`{"concurrency": 4}`). `allow_outside` allows the workspace to use files outside of it,
        and is remembered. `on_warning` is called with warnings about a store that can still be
        used. Raises `EvalstoreError` when there is no workspace, or its settings are wrong.
        """

        def warn(message: str) -> None:
            if on_warning is not None:
                on_warning(message)

        self._location = Location(
            Path(path).absolute(),
            None if config is None else Path(config),
            None if store is None else os.fspath(store),
            allow_outside=allow_outside,
            overrides=overrides_of(settings),
            warn=warn,
        )
        from evalstore.planning.open_project import open_workspace

        with self._use() as location:
            open_workspace(location)

    @classmethod
    def at(cls, location: Location) -> Self:
        """Return a workspace at a location, which is opened when a method is called."""
        workspace = cls.__new__(cls)
        workspace._location = location
        return workspace

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Refuse further calls; calls that other threads have begun are finished."""
        self._closed = True

    @property
    def root(self) -> Path:
        """Return the folder with `evalstore.yaml`."""
        from evalstore.workspace.settings.settings import find_root

        return find_root(self.location.directory)

    @property
    def location(self) -> Location:
        """Return the location of the workspace; raises `EvalstoreError` when it is closed."""
        if self._closed:
            raise EvalstoreError("the workspace is closed", hint="open another 'Workspace'")
        return self._location

    @contextmanager
    def _use(self) -> Iterator[Location]:
        """Lend the location to one call; an `OSError` is raised as an `EvalstoreError`."""
        location = self.location
        with system_errors():
            yield location
