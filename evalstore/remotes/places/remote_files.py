"""What a remote must be able to do with files that never change."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

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
