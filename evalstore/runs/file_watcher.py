"""Notices that files of a workspace have changed.

Files are polled, which works on every file system. Only stamps are compared.
"""

# Paths are strings here, because thousands of files are polled.
# ruff: noqa: PTH118

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from evalstore.core.errors import EvalstoreError
from evalstore.planning.open_project import open_workspace
from evalstore.planning.options import Location
from evalstore.workspace.folder import WorkspaceFolder
from evalstore.workspace.index import (
    INDEX,
    SUFFIXES,
    Seen,
    Stamp,
    read_cache,
    see,
    see_mentioned,
    walk,
)
from evalstore.workspace.settings.env_files import NAMES

_PAUSE = 0.3
"""Seconds between two polls."""
_IDLE = 10
"""The pause is at least this many times as long as a poll."""
_REST = 20
"""The pause of `ChangeNotifier` is at least this many times as long as a poll."""
_UNREADABLE: Stamp = (-1, 0, 0, 0)


class FileWatcher:
    """Polls the files of a workspace until some of them change."""

    def __init__(self, workspace: WorkspaceFolder) -> None:
        self._root = str(workspace.root)
        self._took = 0.0
        self._single = [str(workspace.config), *(os.path.join(self._root, name) for name in NAMES)]
        self._folders: dict[str, tuple[str, ...]] = {}
        self._mentioned: dict[str, Seen] = {}
        self.follow(workspace)

    def follow(self, workspace: WorkspaceFolder) -> None:
        """Watch the folders of the settings from now on; call it before reading the files."""
        folders = {
            os.path.join(self._root, workspace.settings.paths[kind]): suffixes
            for kind, suffixes in SUFFIXES.items()
        }
        self._boundary = workspace.boundary
        if folders != self._folders:
            self._folders = folders
            self._files = self._look()

    def follow_mentioned(
        self, names: Collection[str], seen: Mapping[str, Seen] | None = None
    ) -> None:
        """Watch also the files that tests mention from now on.

        Those that were `seen` before are changed if they differ from that.
        """
        before = {**(seen or {}), **self._mentioned}
        self._mentioned = {name: before.get(name) or see_mentioned(name) for name in names}

    def wait(self) -> list[str]:
        """Wait until files have changed; returns their relative paths, sorted.

        It also waits until no more files change, because an editor may save a file in two steps.
        """
        changed: set[str] = set()
        while not changed:
            now = self._look_after_a_pause()
            while now != (self._files, self._mentioned):
                changed |= _differences(self._files, now[0])
                changed |= _differences(self._mentioned, now[1])
                self._files, self._mentioned = now
                now = self._look_after_a_pause()
        return sorted(os.path.relpath(name, self._root) for name in changed)

    def poll(self) -> set[str]:
        """Return the paths of the files that have changed since the last poll."""
        files, mentioned = self._look(), self._look_at_mentioned()
        changed = _differences(self._files, files) | _differences(self._mentioned, mentioned)
        self._files, self._mentioned = files, mentioned
        return changed

    def _look_at_mentioned(self) -> dict[str, Seen]:
        return {name: see_mentioned(name) for name in self._mentioned}

    def _look_after_a_pause(self) -> tuple[dict[str, Stamp], dict[str, Seen]]:
        time.sleep(max(_PAUSE, _IDLE * self._took))
        began = time.monotonic()
        stamps = self._look(), self._look_at_mentioned()
        self._took = time.monotonic() - began
        return stamps

    def _look(self) -> dict[str, Stamp]:
        stamps = {name: see(name)[1:] for name in self._single}
        for folder, suffixes in self._folders.items():
            try:
                if not self._boundary.contains(os.path.realpath(folder)):
                    raise EvalstoreError(f"{folder} is outside the workspace")
                walk(folder, f"{folder}/", suffixes, stamps)
            except EvalstoreError:
                stamps[folder] = _UNREADABLE  # reading it will report why
        return stamps


def _differences(before: Mapping[str, object], after: Mapping[str, object]) -> set[str]:
    return {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}


class ChangeNotifier:
    """Tells from time to time whether files of a workspace have changed since it was last asked.

    It may be asked by several threads; what polls take is a small part of the time.
    """

    def __init__(self, location: Callable[[], Location]) -> None:
        self._location = location
        self._watcher: FileWatcher | None = None
        self._index: Seen | None = None
        self._indexed: set[str] = set()
        """The files that tests mention, by the index."""
        self._looked_for: Mapping[str, Seen] = {}
        self._due = 0.0
        self._lock = threading.Lock()

    def follow_mentioned(self, looked_for: Mapping[str, Seen]) -> None:
        """Look also at these paths of files that tests mention, which the index may lack."""
        self._looked_for = looked_for

    def has_changed(self) -> bool:
        """Return whether files have changed; False also when it is too early to look again.

        Raises `EvalstoreError` when the settings cannot be read.
        """
        if not self._lock.acquire(blocking=False):
            return False
        try:
            began = time.monotonic()
            if began < self._due:
                return False
            has_changed = self._poll()
            ended = time.monotonic()
            self._due = ended + _REST * (ended - began)
            return has_changed
        finally:
            self._lock.release()

    def _poll(self) -> bool:
        workspace = open_workspace(self._location())
        if self._watcher is None:
            self._watcher = FileWatcher(workspace)
            self._follow_mentioned(self._watcher, workspace)
            return False
        has_changed = bool(self._watcher.poll())
        self._watcher.follow(workspace)
        self._follow_mentioned(self._watcher, workspace)
        return has_changed

    def _follow_mentioned(self, watcher: FileWatcher, workspace: WorkspaceFolder) -> None:
        """Follow the files that tests mention, by the index of the files as they were last read."""
        path = workspace.private / INDEX
        index = see(str(path))
        if index != self._index:
            self._index = index
            with suppress(ValueError, KeyError, TypeError):
                self._indexed = _mentioned_paths(
                    workspace.root, read_cache(path, workspace.boundary)["files"]
                )
        looked_for = self._looked_for
        watcher.follow_mentioned(self._indexed | looked_for.keys(), looked_for)


def _mentioned_paths(root: str | Path, keys: Iterable[str]) -> set[str]:
    """Return the paths of the mentioned files by their keys in the index."""
    kinds = (key.partition(":") for key in keys)
    names = [name for kind, _, name in kinds if kind in ("file", "data") and name]
    return {
        os.path.join(root, path)
        for name in names
        for path in (name, name.rpartition(":")[0] or name)  # the suffix may follow
    }
