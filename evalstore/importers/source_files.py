"""Reads the files of an import: below the paths that the user named, and up to a size.

Importers find files by names that are written in other files. Such a name, or a link, may lead
anywhere; what is elsewhere is read only if the user has allowed it for this import.
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

from evalstore.errors import FileProblem
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
"""None where an importer is called by itself: then nothing is outside."""


@contextmanager
def reading_from(paths: Iterable[Path], *, allow_outside: bool) -> Iterator[None]:
    """Let importers read these folders, or the folders of these files, and nothing else."""
    roots = [root for path in paths for root in ((path,) if path.is_dir() else (path.parent, path))]
    boundary = Boundary(roots, "imported folder", allow_all=allow_outside)
    token = _current.set(boundary)
    try:
        yield
    finally:
        _current.reset(token)


def include(folder: Path) -> None:
    """Let one more folder be read that belongs to the format, unless it is a link."""
    boundary = _current.get()
    if boundary and not folder.is_symlink():
        boundary.include(folder)


def require_readable(path: Path) -> None:
    """Raise `FileProblem` for a path that may not be read in this import."""
    boundary = _current.get()
    if boundary:
        boundary.resolve(path)


def require_regular(path: Path) -> None:
    """Raise `FileProblem` for what is not a regular file, such as a pipe."""
    open_file(path, _ANY_SIZE).close()


def read_source(path: Path) -> bytes:
    """The bytes of a file; raises `FileProblem`."""
    boundary = _current.get()
    return (boundary.read if boundary else read_file)(path, LARGEST_SOURCE)


def read_unpacked(path: Path) -> bytes:
    """The bytes of a file, or what is packed in it by gzip; raises `FileProblem`."""
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
    """Raise `FileProblem` for a pattern of paths that could match outside."""
    steps = pattern.split("/")
    fixed = next((n for n, step in enumerate(steps) if any(sign in step for sign in "*?[")), 0)
    if ".." in steps[fixed:]:
        raise FileProblem("has '..' behind a wildcard")
    require_readable(folder / os.path.join(*steps[:fixed], ""))  # noqa: PTH118


def reason_of(problem: FileProblem) -> str:
    """Why a file is not imported, and what allows it."""
    if isinstance(problem, OutsideProblem):
        return f"{problem.message}; '{FLAG}' allows it"
    return problem.message
