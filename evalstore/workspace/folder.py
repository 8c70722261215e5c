"""The workspace folder: its settings, its `.env` files, and access to its files.

`.env` files are read into values, never into the environment of a process. Only regular files of
the workspace up to a certain size are read, so that a command cannot hang; their contents are
never part of a message.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path

from evalstore.core.errors import EvalstoreError, FileProblem, WorkspaceError
from evalstore.files.access import (
    LARGEST_TEXT,
    Boundary,
    OutsideProblem,
    normalise,
    read_file,
)
from evalstore.files.fields import suggest_beside
from evalstore.files.yaml12 import read_yaml
from evalstore.store.location import DatabaseAddress, StoreLocation, is_url, read_address
from evalstore.workspace.index import NO_STAMP, SUFFIXES, Stamp, walk
from evalstore.workspace.settings.settings import FILE, Settings, read_settings
from evalstore.workspace.trust import PrivateFiles, WorkspaceBoundary


class WorkspaceFolder:
    """A folder with its settings."""

    def __init__(
        self,
        root: Path,
        config: Path | None = None,
        *,
        allow_outside: bool = False,
        overrides: Sequence[str] = (),
        tell: Callable[[str], None] = lambda _message: None,
    ) -> None:
        """Read the settings, from `config` instead of the workspace's own file if it is given.

        With `allow_outside` the user allows all paths outside it, which are then recorded
        and reported. `overrides` of the form `KEY=VALUE` replace settings.
        Raises `EvalstoreError`.
        """
        self._overrides, self._tell = overrides, tell
        self._has_warned = False
        self.root = root
        self.config = config or root / FILE
        self._private_files = PrivateFiles(os.path.realpath(root))
        self.boundary = WorkspaceBoundary(root, allow_all=allow_outside, tell=tell)
        self.settings = self._read_settings(is_own=config is None)
        self.boundary.require(self.private, self.private.name)

    def _read_settings(self, *, is_own: bool) -> Settings:
        name = self.config.name
        if name.startswith("promptfooconfig"):
            raise EvalstoreError(
                f"'{name}' has settings of promptfoo, not of evalstore",
                hint=f"'evalstore import promptfoo {name}' writes test files for its tests",
            )
        try:
            read = self.boundary.read if is_own else read_file
            text = normalise(read(self.config, LARGEST_TEXT))
        except FileProblem as problem:
            place = name if problem.line is None else f"{name}:{problem.line}"
            hint = problem.hint or (None if self.config.exists() else suggest_beside(self.config))
            raise EvalstoreError(f"{place}: {problem.message}", hint=hint) from problem
        try:
            settings = read_settings(text, self._overrides)
        except FileProblem as problem:
            raise WorkspaceError(problem.all_at(name, text.split("\n"))) from problem
        document = read_yaml(text)
        self.names = frozenset(document.value) if isinstance(document.value, dict) else frozenset()
        """The names of the settings in the file."""
        self._store_line = document.line("store")
        return settings

    def locate_store(self) -> StoreLocation:
        """Locate the store; raises `OutsideError`."""
        name = self.settings.store
        place = f"{self.config.name}:{self._store_line}: the store"
        if is_url(name):
            address = self._read_address(name)
            hint = "all results would be stored there; '--allow-outside' allows it from now on"
            self.boundary.require_address(str(address), place, hint, whole=True)
            return address
        path = self.root / name
        self.boundary.require_database(path, f"{place} '{name}'")
        return path

    def _read_address(self, text: str) -> DatabaseAddress:
        """Return the address of the store in the settings; warns of a password in their file."""
        if any(override.startswith("store=") for override in self._overrides):
            return read_address(text)
        place = f"{self.config.name}:{self._store_line}"
        try:
            address = read_address(text)
        except EvalstoreError as error:
            raise EvalstoreError(f"{place}: {error}", hint=error.hint) from None
        if address.has_secrets and not self._has_warned:
            self._has_warned = True
            self._tell(
                f"{place}: the address of the store has a password, which everyone with this file "
                "can read; set PGPASSWORD or use ~/.pgpass instead"
            )
        return address

    @property
    def private(self) -> Path:
        """Return the folder for files of this machine only."""
        return self.root / ".evalstore"

    def folder(self, kind: str) -> Path:
        """Return the folder of tests, prompts, tools, schemas, models, providers or currencies."""
        return self.root / self.settings.paths[kind]

    def name_of(self, path: Path) -> str:
        """Return a path relative to the workspace, with forward slashes.

        The path may lead to the workspace through links, as that of the shell in a linked folder.
        """
        name = os.path.relpath(path, self.root).replace(os.sep, "/")
        if not name.startswith("../"):
            return name
        normal = Path(os.path.normpath(path))
        for folder in (normal, *normal.parents):
            with suppress(OSError):
                if folder.samefile(self.root):
                    return normal.relative_to(folder).as_posix()
        return name

    # --- finding files

    def find_files(self, kind: str) -> dict[str, Stamp]:
        """Find the files of a kind with their stamps, sorted by path; hidden ones are ignored.

        Raises `OutsideError` when their folder is a link to a place outside the workspace.
        """
        folder = self.folder(kind)
        prefix = self.name_of(folder)
        self.boundary.require(folder, prefix)
        stamps: dict[str, Stamp] = {}
        links: list[str] = []
        walk(str(folder), "" if prefix == "." else prefix + "/", SUFFIXES[kind], stamps, links)
        for name in links:
            if not self.boundary.contains(os.path.realpath(self.root / name)):
                stamps[name] = NO_STAMP
        return dict(sorted(stamps.items()))

    def read_bytes(self, name: str, largest: int) -> bytes:
        """Read a file of the workspace; raises `FileProblem`."""
        path = f"{self.root}{os.sep}{name}"
        try:
            status = os.stat(path)  # noqa: PTH116 - a text, as thousands are opened in a row
        except (OSError, ValueError) as error:
            words = getattr(error, "strerror", None) or error
            raise FileProblem(f"cannot be read: {words}") from error
        is_linked = status.st_nlink > 1 or Path(path).is_symlink()
        if is_linked and self._private_files.holds(os.path.realpath(path), status):
            raise FileProblem("is private, so it is not read: it holds keys")
        return self.boundary.read(path, largest)


def default_id(path: str, folder: str | None = None) -> str:
    """Return the default id of a file: its path below its folder, without the suffix.

    Without `folder` the first part of the path is the folder.
    """
    if folder is None:
        below = path.partition("/")[2] or path
    else:
        below = path if folder in ("", ".") else path.removeprefix(folder + "/")
    return below.rpartition(".")[0] or below


NAMES = (".env.local", ".env")
"""The files that are read; the first one that sets a variable takes precedence."""
LARGEST = 2**20
"""The largest size of a file, in bytes."""
MOST_LINES = 10_000


@dataclass(frozen=True, slots=True)
class EnvFile:
    """The contents of one file."""

    values: dict[str, str] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    """The number of the line with each value."""
    unread: tuple[int, ...] = ()
    """The numbers of lines that are not of the form `NAME=value`."""


def read_env_files(root: Path) -> dict[str, EnvFile]:
    """Read the `.env` files of a workspace by name; raises `EvalstoreError` with the place."""
    files = {}
    for name in NAMES:
        data = _read_bytes(root, name)
        if data is not None:
            files[name] = parse_env_file(data, name)
    return files


def variables_of(root: Path) -> list[tuple[str, str]]:
    """Return the names and values of all `.env` files of a workspace."""
    return [item for file in read_env_files(root).values() for item in file.values.items()]


def mentions(root: Path, name: str) -> bool:
    """Return whether a file may set a variable whose name begins so.

    Raises `EvalstoreError` for a file that cannot be read.
    """
    return any(name.encode() in (_read_bytes(root, file) or b"") for file in NAMES)


def parse_env_file(data: bytes, name: str) -> EnvFile:
    """Parse the variables of a file; `name` is shown in errors. Raises `EvalstoreError`."""
    try:
        text = normalise(data)
    except FileProblem as problem:
        place = f"{name}:{problem.line}"
        raise EvalstoreError(f"{place}: {problem.message}", hint=problem.hint) from problem
    if text.count("\n") >= MOST_LINES:
        raise EvalstoreError(
            f"{name}: has more than {MOST_LINES:,} lines",
            hint="keep only keys and addresses of providers in it",
        )
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise EvalstoreError(f"{name}:{line}: holds a NUL character", hint="save it as UTF-8")
    from dotenv.parser import parse_stream

    values: dict[str, str] = {}
    lines: dict[str, int] = {}
    unread: list[int] = []
    for binding in parse_stream(StringIO(text)):
        if binding.error:
            unread.append(binding.original.line)
        elif binding.key is not None and binding.value is not None:
            values[binding.key] = binding.value
            blank = len(binding.original.string) - len(binding.original.string.lstrip())
            before = binding.original.string[:blank].count("\n")
            lines[binding.key] = binding.original.line + before
    return EnvFile(values, lines, tuple(unread))


def _read_bytes(root: Path, name: str) -> bytes | None:
    """Read a regular file in the workspace; None when there is no file."""
    path = root / name
    try:
        path.stat()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise EvalstoreError(f"{name}: cannot be read: {error.strerror}") from error
    try:
        return Boundary([root], "workspace").read(path, LARGEST)
    except OutsideProblem as problem:
        raise EvalstoreError(
            f"{name}: {problem.message}",
            hint="copy the file into the workspace, or set its variables in your environment",
        ) from problem
    except FileProblem as problem:
        hint = f"keep only keys and addresses of providers in a file '{name}', or remove this one"
        raise EvalstoreError(f"{name}: {problem.message}", hint=hint) from problem
