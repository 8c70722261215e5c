"""Writes files atomically: readers see the old or the new content, also after a crash.

The content is written to a temporary file in the same folder, which then replaces the file. The
writer locks its temporary file, and the system releases the lock when the writer ends. So the
next writer in the folder can recognise the temporary files of killed writers, and removes them.
A folder is written in the same way.

Lists of this user, such as that of trusted files, are JSON lines that only the user can write.
They are in the user's configuration, never in a workspace.

Places where a command cannot write its file or folder are refused before it does any work.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from stat import S_IMODE, S_ISDIR, S_ISREG
from typing import BinaryIO, TypeVar

from evalstore.core.errors import EvalstoreError

_TEMPORARY = re.compile(r"\..*\.evalstore-[0-9a-f]{8}\.tmp(-journal|-wal|-shm)?", re.DOTALL)
"""Matches temporary files, and the files that SQLite creates beside a database."""
_LONGEST = 50
"""The most characters of a file's name in that of its temporary file."""
_NO_LINKS = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})
"""Errors of file systems that have no hard links."""


def write_whole(
    path: Path,
    data: bytes,
    *,
    mode: int | None = None,
    exclusive: bool = False,
    durable: bool = True,
) -> None:
    """Write a file in one step; raises `OSError`, and then nothing has changed.

    The parameters are those of `temporary_file`.
    """
    with temporary_file(path, mode=mode, exclusive=exclusive, durable=durable) as file:
        file.write(data)


def append(path: Path, data: bytes) -> None:
    """Append to a file that another program reads afterwards; raises `OSError`."""
    with open(path, "ab") as file:  # noqa: PTH123 - as the other function of this module
        file.write(data)


@contextmanager
def temporary_file(
    path: Path, *, mode: int | None = None, exclusive: bool = False, durable: bool = True
) -> Iterator[BinaryIO]:
    """Open an empty file beside `path` that replaces it at the end of the block.

    Its `name` is its path. If the block fails, it is removed and `path` stays as it was. A
    replaced file keeps its permissions, unless `mode` is given. A symbolic link is replaced, not
    followed. With `exclusive`, nothing is replaced: `FileExistsError` is raised if there is
    something at `path`. With `durable`, the content is on the disk before the name refers to it.
    """
    if exclusive and os.path.lexists(path):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
    _remove_abandoned(path.parent)
    file = _create(path, 0o666 if mode is None else mode)
    temporary = Path(file.name)
    try:
        if mode is None and (old_mode := _mode_of(path)) is not None:
            os.fchmod(file.fileno(), old_mode)
        yield file
        file.flush()
        if durable:
            os.fsync(file.fileno())
        if exclusive:
            _link(temporary, path)
        else:
            temporary.replace(path)
        if durable:
            _sync_folder(path.parent)
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        with suppress(OSError):  # a failed write has been reported
            file.close()


@contextmanager
def temporary_folder(path: Path) -> Iterator[Path]:
    """Make an empty folder beside `path` that takes its name at the end of the block.

    If the block fails, it is removed with all that is in it. `path` may be an empty folder, which
    is replaced; `OSError` is raised if there is anything else.
    """
    _remove_abandoned(path.parent)
    temporary, descriptor = _create_folder(path)
    try:
        yield temporary
        _sync_folder(temporary)
        temporary.rename(path)
        _sync_folder(path.parent)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        os.close(descriptor)


@contextmanager
def locked_folder(path: Path) -> Iterator[None]:
    """Let no other program into such a block for this folder at the same time.

    It may write files in the folder. Raises `OSError` if the folder cannot be opened.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def remove_abandoned(folder: Path, *, before: float | None = None) -> None:
    """Remove the temporary files and folders of writers that have ended; others stay.

    With `before`, in seconds since 1970, only those that nobody has changed since then: locks of
    other machines may be unknown on a network drive.
    """
    with suppress(OSError), os.scandir(folder) as entries:
        names = [entry.name for entry in entries if _TEMPORARY.fullmatch(entry.name)]
        for name in names:
            with suppress(OSError):
                _remove_unlocked(folder / name, before)


_remove_abandoned = lru_cache(maxsize=256)(remove_abandoned)
"""Runs once for each folder in a process, as an import writes thousands of files."""


def _remove_unlocked(path: Path, before: float | None) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        status = os.fstat(descriptor)
        if before is not None and status.st_mtime >= before:
            return
        if S_ISDIR(status.st_mode):
            shutil.rmtree(path)
        else:
            path.unlink()
    finally:
        os.close(descriptor)


def _temporary_name(path: Path) -> str:
    return f".{path.name[:_LONGEST]}.evalstore-{os.urandom(4).hex()}.tmp"


def _create(path: Path, mode: int) -> BinaryIO:
    """Create a temporary file for a path, locked."""
    while True:
        name = _temporary_name(path)
        try:
            file = open(  # noqa: SIM115 - pathlib has no opener; the caller closes it
                path.with_name(name), "xb", opener=lambda place, flags: os.open(place, flags, mode)
            )
        except FileExistsError:
            continue
        with suppress(OSError):  # a file system without locks: no other process removes it, either
            fcntl.flock(file, fcntl.LOCK_EX)
        if os.fstat(file.fileno()).st_nlink:
            return file
        file.close()  # another writer removed it as abandoned before it was locked


def _create_folder(path: Path) -> tuple[Path, int]:
    """Create a temporary folder for a path, locked; returns it with its descriptor."""
    while True:
        temporary = path.with_name(_temporary_name(path))
        temporary.mkdir()
        with suppress(FileNotFoundError):  # another writer removed it before it was locked
            descriptor = os.open(temporary, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            with suppress(OSError):  # a file system without locks
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            if os.path.lexists(temporary):
                return temporary, descriptor
            os.close(descriptor)


def _mode_of(path: Path) -> int | None:
    """Return the permissions of a regular file; None if there is none."""
    try:
        status = path.lstat()
    except OSError:
        return None
    return S_IMODE(status.st_mode) if S_ISREG(status.st_mode) else None


def _link(temporary: Path, path: Path) -> None:
    """Give a file a new name; raises `FileExistsError`."""
    try:
        os.link(temporary, path, follow_symlinks=False)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        if os.path.lexists(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path)) from error
        temporary.replace(path)


def _sync_folder(folder: Path) -> None:
    """Sync a folder to the disk, if the file system supports it."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


VARIABLE = "EVALSTORE_TRUST_FILE"
T = TypeVar("T")


def default_place() -> Path:
    """Return the path of the user's list of trusted files; other lists are beside it."""
    if named := os.environ.get(VARIABLE):
        return Path(named)
    state = os.environ.get("XDG_STATE_HOME", "")
    # The XDG specification requires that relative paths are ignored.
    base = Path(state) if os.path.isabs(state) else Path.home() / ".local" / "state"  # noqa: PTH117
    return base / "evalstore" / "trusted"


def write_list(path: Path, name: str, entries: Iterable[Mapping[str, object]]) -> None:
    """Write a list of this user atomically, readable and writable only by the user.

    `name` is the name of the list in messages. Raises `EvalstoreError`.
    """
    lines = [json.dumps(entry, ensure_ascii=False) for entry in entries]
    # A path that is not UTF-8 has surrogates; JSON writes them as escapes.
    data = "".join(f"{line}\n" for line in lines).encode(errors="backslashreplace")
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_whole(path, data, mode=0o600)
    except OSError as error:
        raise EvalstoreError(
            f"the list of {name} '{path}' cannot be written: {error.strerror}",
            hint=f"name another place in {VARIABLE}",
        ) from error


def read_user_list(path: Path, name: str, entry: Callable[[Mapping[str, object]], T]) -> list[T]:
    """Read the entries of a list of this user; empty if the file does not exist.

    Raises `EvalstoreError` when it is damaged, and when others can write to it.
    """
    try:
        with path.open(encoding="utf-8", errors="surrogateescape") as file:
            if os.fstat(file.fileno()).st_mode & 0o022:
                raise EvalstoreError(
                    f"others can write to the list of {name} '{path}'",
                    hint=f"see whether it is right, then 'chmod go-w {path}'",
                )
            return [entry(json.loads(line)) for line in file if line.strip()]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise EvalstoreError(
            f"the list of {name} '{path}' cannot be read: {error.strerror}"
        ) from error
    except (ValueError, TypeError, KeyError) as error:
        raise EvalstoreError(
            f"the list of {name} '{path}' is damaged",
            hint="remove it, and allow again what it allowed",
        ) from error


def require_writable(path: Path, name: Path) -> None:
    """Raise `EvalstoreError` when no file can be made at a path, which was given as `name`.

    A regular file may be there, or a link to one.
    """
    try:
        mode = _kind_of(path)
        if mode is None:
            reason = _missing_folder(path, name)
        elif S_ISREG(mode):
            reason = ""
        else:
            reason = "it is a folder" if S_ISDIR(mode) else "it is not a regular file"
    except OSError as error:
        reason = error.strerror or str(error)
    if reason:
        raise EvalstoreError(f"'{name}' cannot be written: {reason}", hint="name another file")


def require_report(path: Path, name: Path, mark: bytes) -> None:
    """Raise `EvalstoreError` if a file cannot be made at a path, or the file there is another one.

    Reports begin with `mark`. A file that is empty may be replaced, too.
    """
    require_writable(path, name)
    try:
        with path.open("rb") as file:
            start = file.read(len(mark))
    except FileNotFoundError:
        return
    except OSError as error:
        raise EvalstoreError(f"'{name}' cannot be read: {error.strerror}") from error
    if start not in (b"", mark):
        raise EvalstoreError(
            f"'{name}' exists and is not a report",
            hint="name another file; only a report is replaced by a report",
        )


def require_new_folder(path: Path, name: Path) -> None:
    """Raise `EvalstoreError` when a folder cannot be made at a path, or is not empty."""
    try:
        mode = _kind_of(path)
        if mode is None:
            reason = _missing_folder(path, name)
        elif S_ISDIR(mode):
            reason = "the folder is not empty" if any(path.iterdir()) else ""
        else:
            reason = "it is not a folder"
    except OSError as error:
        reason = error.strerror or str(error)
    if reason:
        raise EvalstoreError(
            f"'{name}' cannot be written: {reason}", hint="name a folder that does not exist yet"
        )


def _kind_of(path: Path) -> int | None:
    """Return what is at a path, links followed; None if nothing is."""
    try:
        return path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None


def _missing_folder(path: Path, name: Path) -> str:
    return "" if path.resolve().parent.is_dir() else f"folder '{name.parent}' not found"
