"""The names of the files of a remote, and the file that says that it is one."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import NamedTuple, Protocol

from evalstore.core.canonical_json import canonical_json
from evalstore.core.errors import RemoteError

GRACE = 24 * 60 * 60
"""Seconds after which an unfinished file is taken for that of a writer that was killed."""


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

    def read_range(self, name: str, start: int, length: int) -> bytes:
        """Return a part of a file, which may be shorter at its end; raises as `read`."""
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
