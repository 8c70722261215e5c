"""A bundle: the files of a remote in one ZIP file, for places without a shared folder.

Nothing in it is compressed again, so that a part of a pack is read at its place. The comment of the
ZIP file is the SHA-256 of all bytes before it. `bundle.json` says who has written the bundle and
when, and which runs it presumes: what these reach is not in it. All formats have these two.
"""

from __future__ import annotations

import hashlib
import json
import re
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from struct import Struct, error
from typing import BinaryIO, Self, cast

from evalstore.core.errors import RemoteError
from evalstore.core.hashing import canonical_json
from evalstore.files.atomic_write import temporary_file
from evalstore.files.fields import suggest_beside
from evalstore.remotes.layout import (
    FORMAT_FILE,
    ListedFile,
    MissingFileError,
    UnreadableFileError,
    digest_of_index,
    digest_of_pack,
)

FORMAT = 1
"""Increase this number when older programs cannot read a bundle."""
DESCRIPTION = "bundle.json"
DIGEST_SIZE = 64
"""Bytes of the comment."""
MOST_FILES = 100_000
_LARGEST_DESCRIPTION = 64 * 2**20
_LARGEST_LIST = 160 * MOST_FILES
"""Bytes of the list of files at the end of the ZIP file."""
_PIECE = 2**20
_LOCAL_START = b"PK\x03\x04"
_END = Struct("<4sHHHHIIH")
_END_START = b"PK\x05\x06"
_RUN = re.compile(r"[0-9a-f]{32}\Z")
_DIGEST = re.compile(rb"[0-9a-f]{64}\Z")
_LONGEST_NAME = 200
_UNREADABLE = (zipfile.BadZipFile, ValueError, OSError, RuntimeError, EOFError, error)
"""What `zipfile` raises for a file that is damaged."""


@dataclass(frozen=True, slots=True)
class BundleDescription:
    """What `bundle.json` says."""

    writer: str
    """Who has written it; not verified."""
    created: int
    """Microseconds since 1970, UTC, by the clock of the writer."""
    presumes: Sequence[str]
    """The ids of the runs that a store must have already."""


class BundleFiles:
    """The files of a bundle; implements `RemoteFiles`, but cannot be written to."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        """Read the list of files; raises `RemoteError` for a file that is not a sound bundle."""
        self.address = str(path)
        self._file = file
        self._require_digest()
        try:
            self._archive = zipfile.ZipFile(cast("BinaryIO", _LimitedReader(file)))
        except _UNREADABLE as problem:
            raise self._damaged(f"its list of files cannot be read: {problem}") from problem
        if len(self._archive.infolist()) > MOST_FILES:
            raise self._damaged(f"it has more than {MOST_FILES:,} files")
        ours = [member for member in self._archive.infolist() if _is_ours(member.filename)]
        self._members = {member.filename: member for member in ours}
        if len(self._members) < len(ours) or any(
            member.compress_type or member.file_size != member.compress_size for member in ours
        ):
            raise self._damaged("a file in it is there twice, or compressed")

    @classmethod
    @contextmanager
    def open(cls, path: Path) -> Iterator[Self]:
        """Open a bundle; raises `RemoteError`."""
        try:
            file = path.open("rb")
        except OSError as problem:
            raise RemoteError(
                f"the bundle '{path}' cannot be read: {problem.strerror or problem}",
                hint=None if path.exists() else suggest_beside(path),
            ) from problem
        with file:
            yield cls(path, file)

    @property
    def description(self) -> BundleDescription:
        """Return what `bundle.json` says; raises `RemoteError`."""
        try:
            content = json.loads(self.read(DESCRIPTION, _LARGEST_DESCRIPTION))
            version = content["bundle"]
            if isinstance(version, int) and version > FORMAT:
                raise RemoteError(
                    f"a newer evalstore has written the bundle '{self.address}': it has format "
                    f"{version}, and this version reads up to {FORMAT}",
                    hint="install a newer version",
                )
            found = BundleDescription(content["writer"], content["created"], content["presumes"])
        except (ValueError, KeyError, TypeError, RecursionError, MissingFileError) as problem:
            raise self._damaged(f"its '{DESCRIPTION}' cannot be read") from problem
        sound = (
            version.__class__ is int
            and found.writer.__class__ is str
            and len(found.writer) <= _LONGEST_NAME
            and found.created.__class__ is int
            and found.presumes.__class__ is list
            and all(id.__class__ is str and _RUN.match(id) for id in found.presumes)
        )
        if not sound:
            raise self._damaged(f"its '{DESCRIPTION}' has other fields")
        return found

    def exists(self) -> bool:
        """Return True: a bundle that is open exists."""
        return True

    def iterate(self, folder: str) -> Iterator[ListedFile]:
        """Yield the files below a folder of the remote."""
        start = f"{folder}/" if folder else ""
        for name, member in self._members.items():
            if name.startswith(start):
                yield ListedFile(name, member.file_size)

    def read(self, name: str, most: int) -> bytes:
        """Return a whole file of at most `most` bytes."""
        member = self._members.get(name)
        if member is None:
            raise MissingFileError(f"the bundle '{self.address}' has no file '{name}'")
        if member.file_size > most:
            raise UnreadableFileError(f"'{name}' in '{self.address}' has more than {most:,} bytes")
        try:
            with self._archive.open(member) as file:
                return b"".join(iter(lambda: file.read(_PIECE), b""))
        except _UNREADABLE as problem:
            raise self._damaged(f"'{name}' cannot be read: {problem}") from problem

    def create(self, name: str, data: bytes) -> bool:
        """Raise `RemoteError`: a bundle is written in one step."""
        raise self._unchangeable()

    def delete(self, name: str) -> None:
        """Raise `RemoteError`: a bundle is written in one step."""
        raise self._unchangeable()

    def _unchangeable(self) -> RemoteError:
        return RemoteError(
            f"the bundle '{self.address}' cannot be changed",
            hint=f"'evalstore push {self.address}' writes it again",
        )

    def _damaged(self, problem: str) -> RemoteError:
        return RemoteError(
            f"the bundle '{self.address}' is damaged: {problem}",
            hint="copy it again, or make it again",
        )

    # --- the ZIP file

    def _require_digest(self) -> None:
        """Raise `RemoteError` unless the bundle has the bytes with which it was written."""
        file = self._file
        try:
            size = file.seek(0, 2)
            file.seek(max(0, size - _END.size - DIGEST_SIZE))
            tail = file.read(_END.size + DIGEST_SIZE)
            file.seek(0)
            start = file.read(len(_LOCAL_START))
            digest = digest_of(file, size - DIGEST_SIZE)
        except OSError as problem:
            raise RemoteError(
                f"the bundle '{self.address}' cannot be read: {problem.strerror or problem}"
            ) from problem
        if start not in (_LOCAL_START, b""):
            raise RemoteError(
                f"'{self.address}' is not a bundle",
                hint="'evalstore push FILE.bundle' makes one",
            )
        if len(tail) < _END.size + DIGEST_SIZE or not tail.startswith(_END_START):
            raise self._damaged("it does not end where it should")
        if digest != tail[_END.size :]:
            raise self._damaged("it has changed since it was written")


def is_bundle(path: Path) -> bool:
    """Return whether a file seems to be a bundle, of any format; it may be damaged."""
    try:
        with (
            path.open("rb") as file,
            zipfile.ZipFile(cast("BinaryIO", _LimitedReader(file))) as archive,
        ):
            return DESCRIPTION in archive.namelist() and bool(_DIGEST.match(archive.comment))
    except _UNREADABLE:
        return False


def begins_like_bundle(path: Path) -> bool:
    """Return whether a file begins like a bundle, which may be damaged."""
    try:
        with path.open("rb") as file:
            return file.read(4) == _LOCAL_START
    except OSError:
        return False


class _LimitedReader:
    """A file from which no large part is read at once, whatever a ZIP file says of itself."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.seek, self.tell = file.seek, file.tell

    def read(self, size: int = -1) -> bytes:
        if size > _LARGEST_LIST:
            raise zipfile.BadZipFile(f"it would have {size:,} bytes")
        return self._file.read(_LARGEST_LIST if size < 0 else size)

    def seekable(self) -> bool:
        return True


def _is_ours(name: str) -> bool:
    return name in (FORMAT_FILE, DESCRIPTION) or bool(digest_of_index(name) or digest_of_pack(name))


def digest_of(file: BinaryIO, size: int) -> bytes:
    """Return the SHA-256 of the first `size` bytes of a file, in digits."""
    digest = hashlib.sha256()
    file.seek(0)
    while size > 0 and (piece := file.read(min(_PIECE, size))):
        digest.update(piece)
        size -= len(piece)
    return digest.hexdigest().encode()


# --- a bundle that is being written


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
                    content = {
                        "bundle": FORMAT,
                        "writer": description.writer[:_LONGEST_NAME],
                        "created": description.created,
                        "presumes": list(description.presumes),
                    }
                    bundle.create(DESCRIPTION, canonical_json(content).encode())
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

    def create(self, name: str, data: bytes) -> bool:
        """Append a file, unless it was appended before."""
        if name in self._names:
            return False
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
