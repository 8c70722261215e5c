"""Writes a bundle."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Self

from evalstore.core.errors import RemoteError
from evalstore.files.atomic_write import temporary_file
from evalstore.remotes.bundle_files import (
    DESCRIPTION,
    DIGEST_SIZE,
    MOST_FILES,
    BundleDescription,
    digest_of,
    write_description,
)
from evalstore.remotes.places.remote_files import ListedFile, MissingFileError

if TYPE_CHECKING:
    from typing import BinaryIO

_TIME = (1980, 1, 1, 0, 0, 0)
_MODE = 0o100644 << 16


class BundleWriter:
    """The files of a bundle that is being written; implements `RemoteFiles`."""

    def __init__(self, path: Path, archive: zipfile.ZipFile) -> None:
        self.address = str(path)
        self._archive = archive
        self._names: set[str] = set()

    @classmethod
    @contextmanager
    def open(cls, path: Path, description: BundleDescription) -> Iterator[Self]:
        """Write a bundle, which takes its name at the end of the block; raises `RemoteError`.

        If the block fails, what was at the path stays as it was.
        """
        try:
            with temporary_file(path) as file:
                with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
                    archive.comment = b"0" * DIGEST_SIZE
                    bundle = cls(path, archive)
                    bundle.create(DESCRIPTION, write_description(description))
                    yield bundle
                _write_digest(file)
        except OSError as error:
            raise RemoteError(
                f"the bundle '{path}' cannot be written: {error.strerror or error}"
            ) from error

    def exists(self) -> bool:
        """Return whether anything was written yet."""
        return bool(self._names)

    def iterate(self, folder: str) -> Iterator[ListedFile]:
        """Yield nothing: no file is there before it is written."""
        return iter(())

    def read(self, name: str, most: int) -> bytes:
        """Raise `MissingFileError`: what is written is not read."""
        raise MissingFileError(f"the bundle '{self.address}' has no file '{name}'")

    def read_range(self, name: str, start: int, length: int) -> bytes:
        """Raise `MissingFileError`."""
        return self.read(name, length)

    def create(self, name: str, data: bytes) -> bool:
        """Append a file, unless it was appended before."""
        if name in self._names:
            return False
        if len(self._names) >= MOST_FILES:
            raise RemoteError(
                f"a bundle has at most {MOST_FILES:,} files",
                hint="make it smaller with --since, or push to a folder",
            )
        member = zipfile.ZipInfo(name, _TIME)
        member.external_attr = _MODE
        self._archive.writestr(member, data)
        self._names.add(name)
        return True

    def delete(self, name: str) -> None:
        """Raise `RemoteError`: what is written stays."""
        raise RemoteError(f"nothing can be removed from the bundle '{self.address}'")


def _write_digest(file: BinaryIO) -> None:
    """Write the SHA-256 of what was written in the place of the comment."""
    file.flush()
    end = file.seek(0, 2) - DIGEST_SIZE
    with Path(file.name).open("rb") as written:
        digest = digest_of(written, end)
    file.seek(end)
    file.write(digest)
