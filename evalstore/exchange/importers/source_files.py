"""Reading of source files, limited in size and to the paths named by the user.

Importers follow file names found in other files. Such a name, or a link, may lead anywhere;
files outside the named paths are read only if the user has allowed it for this import.
"""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from io import BytesIO
from typing import TYPE_CHECKING

from evalstore.core.errors import FileProblem
from evalstore.files.access import (
    FLAG,
    LARGEST_SOURCE,
    Boundary,
    OutsideProblem,
    open_file,
    read_file,
    too_large,
)

if TYPE_CHECKING:
    from pathlib import Path

_ANY_SIZE = 1 << 62
_GZIP = b"\x1f\x8b"
_current: ContextVar[Boundary | None] = ContextVar("boundary of the import", default=None)
"""None if an importer is called directly: then all paths are allowed."""


@contextmanager
def reading_from(paths: Iterable[Path], *, allow_outside: bool) -> Iterator[None]:
    """Restrict importers to these folders, or to the folders of these files."""
    roots = [root for path in paths for root in ((path,) if path.is_dir() else (path.parent, path))]
    boundary = Boundary(roots, "imported folder", allow_all=allow_outside)
    token = _current.set(boundary)
    try:
        yield
    finally:
        _current.reset(token)


def include(folder: Path) -> None:
    """Allow another folder that belongs to the format, unless it is a link."""
    boundary = _current.get()
    if boundary and not folder.is_symlink():
        boundary.include(folder)


def is_file(path: Path) -> bool:
    """Return whether there is a file; False also for a name that no file can have."""
    return os.path.isfile(path)  # noqa: PTH113 - the method raises for such a name


def require_readable(path: Path) -> None:
    """Raise `FileProblem` if the path is outside the allowed paths."""
    boundary = _current.get()
    if boundary:
        boundary.resolve(path)


def require_regular(path: Path) -> None:
    """Raise `FileProblem` if the path is not a regular file, such as a pipe."""
    open_file(path, _ANY_SIZE).close()


def read_source(path: Path) -> bytes:
    """Return the bytes of a file; raises `FileProblem`."""
    boundary = _current.get()
    return (boundary.read if boundary else read_file)(path, LARGEST_SOURCE)


def read_unpacked(path: Path) -> bytes:
    """Return the bytes of a file, decompressed if it is gzipped; raises `FileProblem`."""
    data = read_source(path)
    if data[:2] != _GZIP:
        return data
    try:
        with gzip.GzipFile(fileobj=BytesIO(data)) as packed:
            content = packed.read(LARGEST_SOURCE + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise FileProblem(f"cannot be read: {error}") from error
    if len(content) > LARGEST_SOURCE:
        raise too_large(len(content), LARGEST_SOURCE)
    return content


def require_pattern(folder: Path, pattern: str) -> None:
    """Raise `FileProblem` if a path pattern could match outside the allowed paths."""
    steps = pattern.split("/")
    fixed = next((n for n, step in enumerate(steps) if any(sign in step for sign in "*?[")), 0)
    if ".." in steps[fixed:]:
        raise FileProblem("has '..' after a wildcard")
    require_readable(folder / os.path.join(*steps[:fixed], ""))  # noqa: PTH118


def reason_of(problem: FileProblem) -> str:
    """Return why a file is not imported, and the option that allows it."""
    if isinstance(problem, OutsideProblem):
        return f"{problem.message}; '{FLAG}' allows it"
    return problem.message
