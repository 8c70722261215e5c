"""A remote in a folder, which may be on a network drive."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from stat import S_ISREG

from evalstore.core.clock import now
from evalstore.core.errors import RemoteError
from evalstore.files.atomic_write import remove_abandoned, write_whole
from evalstore.remotes.places.layout import (
    GRACE,
    INDEXES,
    PACKS,
    RETIRED,
    ListedFile,
    MissingFileError,
    UnreadableFileError,
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
            data = _read(path, 0, most + 1)
        if len(data) > most:
            raise UnreadableFileError(f"'{path}' has more than {most:,} bytes")
        return data

    def read_range(self, name: str, start: int, length: int) -> bytes:
        """Return a part of a file."""
        with self._explained(name):
            return _read(self._place(name), start, length)

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


def _read(path: Path, start: int, length: int) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:  # noqa: PTH123 - a descriptor has no path
        if not S_ISREG(os.fstat(descriptor).st_mode):
            raise UnreadableFileError(f"'{path}' is not a regular file")
        file.seek(start)
        return file.read(length)
