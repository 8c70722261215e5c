"""The user's permissions on this machine: what may run, keys for hosts, and paths outside.

A file is identified only by the hash of its bytes. The lists are in the user's configuration: no
file of a workspace, not even its `.env`, can change them or their location. The hash is SHA-256,
because the ids of the store are not collision-resistant. Each allowed path is a folder or file
with its workspace, both by their real paths, or the URL of a remote.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import NamedTuple

from evalstore.core.errors import EvalstoreError, FileProblem, OutsideError
from evalstore.files.access import Boundary, OutsideProblem
from evalstore.files.atomic_write import default_place, read_user_list, write_list
from evalstore.providers.base_urls import covers, normalise_host

ALLOWED_VARIABLES = "EVALSTORE_ALLOW_ENV"
"""Allows variables for hosts, as in `OPENAI_API_KEY=proxy.example.com,DESK_KEY=localhost`."""
_HEX = 64
_NAME = "trusted files"
_TYPES = {"str": str, "int": int, "bool": bool}


@dataclass(frozen=True, slots=True)
class Trusted:
    """One file that may run."""

    sha256: str
    network: bool = False
    """Whether it may use the network when a check asks for it."""
    path: str = ""
    """The path when it was trusted, for display only."""
    size: int = 0
    at: int = 0
    """Microseconds since 1970."""
    application: bool = False
    """Whether this is an application: then the hash is `Application.digest`, the path that of the
    model file."""


@dataclass(frozen=True, slots=True)
class Grant:
    """A variable of the user's environment that may be sent to a host."""

    variable: str
    host: str
    """In the form of `base_urls.host_of`; without a port it means every port. For a litellm
    provider whose host is unknown: the name of the provider."""
    at: int = 0
    """Microseconds since 1970."""


def read_allowed(text: str) -> list[Grant]:
    """Read the grants of `EVALSTORE_ALLOW_ENV`; raises `EvalstoreError`."""
    grants: list[Grant] = []
    for part in filter(None, map(str.strip, text.split(","))):
        variable, equals, host = part.partition("=")
        known = normalise_host(host)
        if not equals or not variable.strip() or known is None:
            raise EvalstoreError(
                f"{ALLOWED_VARIABLES}: entry {len(grants) + 1} is not of the form NAME=HOST",
                hint=f"{ALLOWED_VARIABLES}=OPENAI_API_KEY=proxy.example.com,DESK_KEY=localhost",
            )
        grants.append(Grant(variable.strip(), known))
    return grants


def digest(data: bytes) -> str:
    """Hash the bytes of a file with SHA-256, which identifies it."""
    return hashlib.sha256(data).hexdigest()


class TrustList:
    """The files that may run, by hash, and the variables that may be sent; read once."""

    def __init__(self, path: Path) -> None:
        self.path = path
        entries = read_user_list(path, _NAME, _entry)
        self._entries = {entry.sha256: entry for entry in entries if isinstance(entry, Trusted)}
        self._grants = {
            (entry.variable, entry.host): entry for entry in entries if isinstance(entry, Grant)
        }

    @property
    def entries(self) -> list[Trusted]:
        """Return all files, in the order in which they were trusted."""
        return list(self._entries.values())

    def find(self, sha256: str) -> Trusted | None:
        """Find the trusted file with this hash; None if there is none."""
        return self._entries.get(sha256)

    def allows(self, sha256: str, *, network: bool) -> bool:
        """Return whether a file may run; with `network`, whether it may use the network."""
        entry = self._entries.get(sha256)
        return entry is not None and not entry.application and (entry.network or not network)

    def allows_application(self, digest: str) -> bool:
        """Return whether an application may run, with the network and with its variables."""
        entry = self._entries.get(digest)
        return entry is not None and entry.application

    def add(self, entry: Trusted) -> None:
        """Trust a file; replaces an earlier entry of the same bytes."""
        self._entries.pop(entry.sha256, None)
        self._entries[entry.sha256] = entry
        self._write()

    def remove(self, sha256: str) -> bool:
        """Remove a file from the list, and return whether it was trusted."""
        entry = self._entries.pop(sha256, None)
        if entry:
            self._write()
        return entry is not None

    @property
    def grants(self) -> list[Grant]:
        """Return all variables that may be sent, in the order in which they were allowed."""
        return list(self._grants.values())

    def allows_sending(self, variable: str, host: str) -> bool:
        """Return whether a variable of the environment may be sent to a host."""
        return any(grant.variable == variable and covers(grant.host, host) for grant in self.grants)

    def grant(self, grant: Grant) -> bool:
        """Allow a variable for a host, and return whether it is new."""
        is_new = (grant.variable, grant.host) not in self._grants
        if is_new:
            self._grants[grant.variable, grant.host] = grant
            self._write()
        return is_new

    def withdraw(self, variable: str, host: str) -> Grant | None:
        """Remove a variable of a host, and return the removed grant."""
        grant = self._grants.pop((variable, host), None)
        if grant:
            self._write()
        return grant

    def _write(self) -> None:
        entries: list[Trusted | Grant] = [*self._entries.values(), *self._grants.values()]
        write_list(self.path, _NAME, map(asdict, entries))


def _entry(value: Mapping[str, object]) -> Trusted | Grant:
    """Read an entry; raises `TypeError` or `ValueError`."""
    kind = Grant if "variable" in value else Trusted
    known = {each.name: value[each.name] for each in fields(kind) if each.name in value}
    for each in fields(kind):
        if not isinstance(known.get(each.name, each.default), _TYPES[str(each.type)]):
            raise TypeError("an entry with the wrong fields")
    if kind is Trusted and len(str(known["sha256"])) != _HEX:
        raise ValueError("an entry with the wrong fields")
    return kind(**known)  # type: ignore[arg-type]  # checked above


# Paths are texts here for speed: thousands of mentions are checked even if nothing has changed.
# ruff: noqa: PTH118, PTH206, PTH208


_OF_PATHS = "allowed paths"


class AllowedPath(NamedTuple):
    """A folder, a file or a remote outside a workspace that this workspace may use."""

    workspace: str
    path: str
    """A real path, or the URL of a remote."""


class AllowedPaths:
    """The allowed paths of all workspaces of this user; read once."""

    def __init__(self, file: Path | None = None) -> None:
        """Read the list; raises `EvalstoreError` if it is damaged or others can write to it."""
        trusted = default_place()
        self.file = file or trusted.with_name(f"{trusted.name}-paths")
        self._entries = dict.fromkeys(read_user_list(self.file, _OF_PATHS, _path_entry))

    @property
    def entries(self) -> list[AllowedPath]:
        """Return all entries, in the order in which they were allowed."""
        return list(self._entries)

    def of(self, workspace: str) -> list[str]:
        """Return the paths that a workspace, named by its real path, may use."""
        return [entry.path for entry in self._entries if entry.workspace == workspace]

    def add(self, workspace: str, paths: Iterable[str]) -> None:
        """Allow more paths."""
        self._entries.update(dict.fromkeys(AllowedPath(workspace, path) for path in paths))
        self._write()

    def remove(self, entries: Iterable[AllowedPath]) -> None:
        """Remove entries."""
        for entry in entries:
            self._entries.pop(entry, None)
        self._write()

    def _write(self) -> None:
        write_list(self.file, _OF_PATHS, [entry._asdict() for entry in self._entries])


class WorkspaceBoundary(Boundary):
    """The paths that one workspace may use, inside and outside it."""

    def __init__(
        self,
        root: Path,
        *,
        allow_all: bool = False,
        tell: Callable[[str], None] = lambda _message: None,
    ) -> None:
        """Allow every path if `allow_all`; `tell` reports those that are added."""
        self.root = os.path.realpath(root)
        self._tell = tell
        super().__init__(
            [self.root], "workspace", lambda: AllowedPaths().of(self.root), allow_all=allow_all
        )

    def require(self, path: Path, place: str, hint: str | None = None) -> None:
        """Raise `OutsideError` unless a path may be used; `place` is its name in the message."""
        try:
            self.resolve(path)
        except OutsideProblem as problem:
            message = f"{place}: {problem.message}"
            raise OutsideError(message, hint=hint or problem.hint) from problem
        except FileProblem as problem:
            raise EvalstoreError(f"{place}: {problem.message}") from problem
        self.record()

    def require_address(
        self, address: str, place: str, hint: str | None = None, *, whole: bool = False
    ) -> None:
        """Raise `OutsideError` unless the URL of a remote, or one above it, may be used.

        With `whole` just this one, such as that of a database with its options.
        """
        if not (self.allows(address) if whole else self.contains(address)):
            message = f"{place}: leads to '{address}', which is outside the workspace"
            raise OutsideError(message, hint=hint)
        self.record()

    def require_database(self, path: Path, place: str) -> None:
        """Do the same for a database and the files that SQLite keeps beside it.

        Their names begin with that of the database.
        """
        self.require(path, place)
        real = Path(os.path.realpath(path))
        links: list[Path] = []
        with suppress(OSError), os.scandir(real.parent) as beside:
            links += [
                Path(entry.path)
                for entry in beside
                if entry.name.startswith(real.name) and entry.is_symlink()
            ]
        for link in links:
            self.require(link, os.path.relpath(link, self.root))

    def record(self) -> None:
        """Add the paths allowed so far to the user's list; raises `EvalstoreError`."""
        if self.added:
            AllowedPaths().add(self.root, self.added)
            for path in self.added:
                self._tell(
                    f"this workspace may use '{path}' from now on; "
                    f"'evalstore trust --revoke {path}' takes it back"
                )
            self.added.clear()


def _path_entry(value: Mapping[str, object]) -> AllowedPath:
    workspace, path = value["workspace"], value["path"]
    if not (isinstance(workspace, str) and isinstance(path, str)):
        raise TypeError("an entry with the wrong fields")
    return AllowedPath(workspace, path)


_FOLDERS = frozenset({".git", ".evalstore"})
_KEYS = ".env"
_Identity = tuple[int, int]
"""Device and inode of a file."""


def is_private_name(path: str) -> bool:
    """Return whether a relative path is private by its names, regardless of case.

    `.env`, `.env.production`, `.envrc` and `production.env` are, in any folder.
    """
    folder, _, name = path.rpartition(os.sep)
    return _is_private_file(name) or _is_private_folder(folder)


def _is_private_file(name: str) -> bool:
    name = name.casefold()
    return name.startswith(_KEYS) or name.endswith(_KEYS) or name in _FOLDERS


def _is_private_folder(folder: str) -> bool:
    names = folder.casefold().split(os.sep)
    return any(name in _FOLDERS or name.startswith(_KEYS) for name in names)


class PrivateFiles:
    """The private files of one workspace, including hard links to them."""

    def __init__(self, root: str) -> None:
        """`root` is a real path."""
        self._root = root
        self._near: dict[str, frozenset[_Identity] | None] = {}
        self._all: frozenset[_Identity] | None = None

    def holds(self, path: str, status: os.stat_result) -> bool:
        """Return whether a file, named by its real path and its status, is private.

        It is private by its name, or when a file with a private name in one of its folders, or a
        hard link anywhere in the workspace, is the same file.
        """
        folder, _, name = path.rpartition(os.sep)
        if folder not in self._near:
            self._near[folder] = self._find_near(folder)
        near = self._near[folder]
        if near is None or _is_private_file(name):
            return True
        file = (status.st_dev, status.st_ino)
        return file in near or (status.st_nlink > 1 and file in self._find_all())

    def _find_near(self, folder: str) -> frozenset[_Identity] | None:
        """Find the private files of a folder and of those above it; None for a private folder."""
        inside = os.path.relpath(folder, self._root)
        if _is_private_folder(inside):
            return None
        identities = set(_identities(self._root))
        place = self._root
        for name in inside.split(os.sep):
            place = os.path.join(place, name)
            identities.update(_identities(place))
        return frozenset(identities)

    def _find_all(self) -> frozenset[_Identity]:
        if self._all is None:
            identities: set[_Identity] = set()
            for folder, folders, _ in os.walk(self._root):
                folders[:] = [name for name in folders if name not in _FOLDERS]
                identities.update(_identities(folder))
            self._all = frozenset(identities)
        return self._all


def _identities(folder: str) -> Iterator[_Identity]:
    """Yield the files with private names in a folder."""
    names: list[str] = []
    with suppress(OSError):
        names = os.listdir(folder)
    for name in names:
        if _KEYS in name.casefold() and _is_private_file(name):
            with suppress(OSError, ValueError):
                status = os.stat(os.path.join(folder, name))  # noqa: PTH116
                yield status.st_dev, status.st_ino
