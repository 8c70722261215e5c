"""The files of a remote, their names, and a remote in a folder."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from stat import S_ISREG
from typing import NamedTuple, Protocol

from evalstore.core.clock import now
from evalstore.core.errors import RemoteError
from evalstore.core.hashing import canonical_json
from evalstore.files.atomic_write import remove_abandoned, write_whole

GRACE = 24 * 60 * 60
"""Seconds after which an unfinished file is taken for that of a writer that was killed, and a pack
that no index lists for that of a push that was."""
LONGEST_PUSH = GRACE // 2
"""Seconds. A push uses packs that are there already only if they are younger."""


class ListedFile(NamedTuple):
    """A file of a remote."""

    name: str
    """Its path in the remote, with forward slashes."""
    size: int
    """Bytes."""
    version: str = ""
    """Changes when the file is replaced; empty where the place cannot tell."""
    modified: int | None = None
    """When it was written, in microseconds since 1970, by the clock of the remote; at most a day
    later where the remote rounds. None where it has no times."""


class RemoteFiles(Protocol):
    """The files of a remote. Every method raises `RemoteError`."""

    address: str
    """The place, as errors name it."""

    def exists(self) -> bool:
        """Return whether there is anything at the address."""
        ...

    def iterate(self, folder: str) -> Iterator[ListedFile]:
        """Yield the files below a folder of the remote, in no order; nothing if it is missing."""
        ...

    def read(self, name: str, most: int) -> bytes:
        """Return a whole file.

        Raises `MissingFileError`, and `UnreadableFileError` above `most` bytes; any other
        `RemoteError` says nothing about the file.
        """
        ...

    def create(self, name: str, data: bytes) -> bool:
        """Write a file in one step; returns False, and changes nothing, if it exists."""
        ...

    def delete(self, name: str) -> None:
        """Remove a file, unless it is missing already."""
        ...


class MissingFileError(RemoteError):
    """A remote does not have a file."""


class UnreadableFileError(RemoteError):
    """A file of a remote is larger than it may be, or is not a regular file."""


# --- the names of the files


FORMAT = 1
"""Increase this number when older programs cannot read a remote."""
FORMAT_FILE = "format"
PACKS, INDEXES, RETIRED = "packs", "indexes", "retired"
SIGNATURE = ".sig"
"""What the name of the signature of an index has at its end."""
_LONGEST_FORMAT = 4_096
_INDEX = re.compile(r"indexes/[0-9]{8}T[0-9]{6}Z-([0-9a-f]{64})(\.merged)?\.idx\Z")
_BESIDE = re.compile(rf"({_INDEX.pattern[:-2]})(?:\.sig|\.[0-9a-f]{{64}}\.parts)\Z")
_PACK = re.compile(r"packs/([0-9a-f]{2})/(\1[0-9a-f]{62})\.pack\Z")


def sha256(data: bytes) -> str:
    """Return the SHA-256 of bytes in digits."""
    return hashlib.sha256(data).hexdigest()


def pack_name(digest: str) -> str:
    """Return the name of the pack with a SHA-256."""
    return f"{PACKS}/{digest[:2]}/{digest}.pack"


def index_name(created: int, digest: str, *, is_merged: bool = False) -> str:
    """Return the name of an index file; `created` is in microseconds since 1970, UTC.

    One that `is_merged` replaces others.
    """
    moment = datetime.fromtimestamp(created // 1_000_000, tz=UTC)
    suffix = ".merged.idx" if is_merged else ".idx"
    return f"{INDEXES}/{moment:%Y%m%dT%H%M%SZ}-{digest}{suffix}"


def reading_order(names: Iterable[str]) -> list[str]:
    """Return the names of index files: first those that replace others, newest first.

    What they replace need not be read then.
    """
    groups: tuple[list[str], list[str]] = ([], [])
    for name in sorted(names):
        match = _INDEX.match(name)
        groups[0 if match and match[2] else 1].append(name)
    return [*reversed(groups[0]), *groups[1]]


def digest_of_index(name: str) -> str | None:
    """Return the SHA-256 in the name of an index file; None for the name of something else."""
    match = _INDEX.match(name)
    return match[1] if match else None


def index_beside(name: str) -> str | None:
    """Return the index file to which a file belongs; None for a file that belongs to none.

    It is a signature, or a `.parts` file of an older program, which is not read.
    """
    match = _BESIDE.match(name)
    return match[1] if match else None


def digest_of_pack(name: str) -> str | None:
    """Return the SHA-256 in the name of a pack; None for the name of something else."""
    match = _PACK.match(name)
    return match[2] if match else None


def repair_hint(names: Iterable[str], also: str = "") -> str:
    """Return how to repair a remote that has these files, of which some are damaged.

    A push takes a file that is there for written, and rows that an index lists for stored.
    """
    lines = "".join(f"\n  {name}" for name in names)
    return (
        "remove these files from the remote, and push from every store that may have their rows"
        f"{also}:{lines}"
    )


def make_remote(files: RemoteFiles) -> None:
    """Make an empty place a remote; raises `RemoteError` where there is something else."""
    if is_remote(files):
        return
    if next(files.iterate(""), None) is not None:
        if is_remote(files):
            return  # another program was faster
        raise not_a_remote(files, "it has other files")
    content = canonical_json({"evalstore": "remote", "format": FORMAT}).encode()
    if not files.create(FORMAT_FILE, content):
        require_remote(files)  # another program was faster


def require_remote(files: RemoteFiles) -> None:
    """Raise `RemoteError` unless there is a remote that this program can read."""
    if not is_remote(files):
        reason = "it has no file 'format'" if files.exists() else "there is nothing"
        raise not_a_remote(files, reason)


def is_remote(files: RemoteFiles) -> bool:
    """Return whether there is a remote; raises `RemoteError` for one that is newer."""
    try:
        text = files.read(FORMAT_FILE, _LONGEST_FORMAT)
    except MissingFileError:
        return False
    try:
        content = json.loads(text)
        is_ours = content["evalstore"] == "remote"
        version = content["format"]
    except (ValueError, KeyError, TypeError, RecursionError):
        is_ours, version = False, None
    if not is_ours or version.__class__ is not int:
        raise not_a_remote(files, "its file 'format' is not that of evalstore")
    if version > FORMAT:
        raise RemoteError(
            f"the remote '{files.address}' has format {version}; this version reads up to {FORMAT}",
            hint="install a newer version",
        )
    return True


def not_a_remote(files: RemoteFiles, reason: str) -> RemoteError:
    """Return the error for a place that is not a remote."""
    return RemoteError(
        f"'{files.address}' is not a remote of evalstore: {reason}",
        hint="'evalstore push' makes a remote of a folder that is empty or does not exist yet",
    )


# --- the time of a remote


CLOCK = f"{RETIRED}/clock"
"""The file with which the time of a remote is read. Older programs have other files in its folder:
they say what may be deleted, and are not read."""
_ATTEMPTS = 3
"""Another clean-up may delete that file."""


def read_time(files: RemoteFiles) -> int:
    """Return the time of the remote, in microseconds since 1970: that of a file written now."""
    for _ in range(_ATTEMPTS):
        if not files.create(CLOCK, b""):  # left by a killed clean-up, or of one at work
            files.delete(CLOCK)
            files.create(CLOCK, b"")
        found = [file.modified for file in files.iterate(RETIRED) if file.name == CLOCK]
        files.delete(CLOCK)
        if found:
            if found[0] is None:
                raise RemoteError(f"the remote '{files.address}' has no times of its files")
            return found[0]
    raise RemoteError(
        f"the remote '{files.address}' does not list a file that was written to it",
        hint="try again in a moment",
    )


class FolderFiles:
    """The files of a remote in a folder; implements `RemoteFiles`."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._is_clean = False
        self.address = str(root)

    def exists(self) -> bool:
        """Return whether the folder exists."""
        return self._root.exists()

    def iterate(self, folder: str) -> Iterator[ListedFile]:
        """Yield the files below a folder of the remote; temporary files are left out."""
        waiting = [folder]
        while waiting:
            current = waiting.pop()
            with self._explained(current), suppress(FileNotFoundError):
                with os.scandir(self._root / current) as found:
                    entries = list(found)
                for entry in entries:
                    if entry.name.startswith("."):
                        continue
                    name = f"{current}/{entry.name}" if current else entry.name
                    # Links may lead anywhere, and round in circles.
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(name)
                    elif entry.is_file(follow_symlinks=False):
                        with suppress(FileNotFoundError):  # removed meanwhile
                            status = entry.stat()
                            version = f"{status.st_ino}-{status.st_ctime_ns}"
                            modified = status.st_mtime_ns // 1_000
                            yield ListedFile(name, status.st_size, version, modified)

    def read(self, name: str, most: int) -> bytes:
        """Return a whole file of at most `most` bytes."""
        with self._explained(name):
            path = self._place(name)
            descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
            with open(descriptor, "rb") as file:  # noqa: PTH123 - a descriptor has no path
                if not S_ISREG(os.fstat(descriptor).st_mode):
                    raise UnreadableFileError(f"'{path}' is not a regular file")
                data = file.read(most + 1)
        if len(data) > most:
            raise UnreadableFileError(f"'{path}' has more than {most:,} bytes")
        return data

    def create(self, name: str, data: bytes) -> bool:
        """Write a file in one step, unless it exists."""
        path = self._root / name
        with self._explained(name, writing=True):
            self._place(name)
            if path.exists():
                return False
            if not self._root.exists():
                self._root.mkdir(exist_ok=True)  # but no folder above the remote
            path.parent.mkdir(parents=True, exist_ok=True)
            self._clean_up()
            try:
                write_whole(path, data, exclusive=True)
            except FileExistsError:
                return False
        return True

    def delete(self, name: str) -> None:
        """Remove a file, unless it is missing already; its folder stays, as others may write."""
        with self._explained(name, writing=True):
            self._place(name).unlink(missing_ok=True)

    def _clean_up(self) -> None:
        """Remove what writers have left that were killed long ago; once, before anything else."""
        if self._is_clean:
            return
        self._is_clean = True
        folders = [self._root, self._root / INDEXES, self._root / RETIRED]
        with suppress(OSError), os.scandir(self._place(PACKS)) as found:
            folders += [self._root / PACKS / entry.name for entry in found]
        for folder in folders:
            if folder == self._root or not folder.is_symlink():
                remove_abandoned(folder, before=now() / 1e6 - GRACE)

    def _place(self, name: str) -> Path:
        """Return the path of a file; raises `UnreadableFileError` for one behind a link."""
        path = self._root
        for part in name.split("/"):
            path = path / part
            if path.is_symlink():
                raise UnreadableFileError(
                    f"the remote '{self.address}' cannot be used: '{path}' is a symbolic link",
                    hint="replace it with what it points to",
                )
        return path

    @contextmanager
    def _explained(self, name: str, *, writing: bool = False) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError as error:
            if writing:
                raise RemoteError(
                    f"the folder above the remote '{self.address}' does not exist",
                    hint="make that folder first, or correct the address of the remote",
                ) from error
            raise MissingFileError(f"the remote '{self.address}' has no file '{name}'") from error
        except OSError as error:
            verb = "written to" if writing else "read"
            raise RemoteError(
                f"the remote '{self.address}' cannot be {verb}: {error.strerror or error}"
            ) from error
