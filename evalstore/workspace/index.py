"""The index of files as they were last read, so that unchanged files are not read again.

As in git's index, a file whose size, times and inode are the same is unchanged; a file that was
modified just before it was read is read again, because a later change may have the same times.
The index is a cache of this machine, beside the store, and can be deleted.
"""

from __future__ import annotations

import json
import os
import sys
from array import array
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import accumulate, chain, pairwise
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import Any, NamedTuple

from evalstore import __version__
from evalstore.core import hashing
from evalstore.core.errors import EvalstoreError, FileProblem
from evalstore.core.values import Json
from evalstore.files.access import LARGEST_CACHE, Boundary
from evalstore.files.atomic_write import temporary_file, write_whole

INDEX = "index.json"
"""The name of its file."""
_ROWS = "rows-"
"""Begins the names of the files with digests of the rows of test files."""
_DIGITS = 32
"""A file of numbers begins with so many digits of the digest of the rest."""
SUFFIXES = {
    "tests": (".md",),
    "prompts": (".md",),
    "tools": (".yaml", ".yml"),
    "schemas": (".yaml", ".yml", ".json"),
    "models": (".yaml", ".yml"),
    "providers": (".yaml", ".yml"),
    "currencies": (".yaml", ".yml"),
}
"""The suffixes of the files of each kind."""
_MOST_NUMBERS = 2**24
"""The most digests of rows that a command keeps: 128 MiB."""
GRAIN = 1_000_000_000
"""Nanoseconds; a file that was younger when it was read may have changed since unnoticed."""
_FORMAT = [5, __version__]
"""Raise the number when the way of reading files changes."""

Stamp = tuple[int, int, int, int]
"""Size, modification time, change time (nanoseconds), inode."""


NO_STAMP: Stamp = (0, 0, 0, 0)
"""No regular file has it."""


def file_stamp(status: os.stat_result) -> Stamp:
    """Return the size, times and inode of a file, which identify its state."""
    return (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)


@dataclass(slots=True)
class IndexEntry:
    """The result of reading one file."""

    stamp: Stamp
    settled: bool
    """Whether the stamp alone shows that the file is unchanged."""
    digest: str
    """The digest of the bytes."""
    node: str
    """Test files: id of the leaf of the snapshot. Other files: their id."""
    depends: dict[str, Any] = field(default_factory=dict)
    """The dependencies of the file, with the ids they had."""


def is_settled(stamp: Stamp, read_at: int) -> bool:
    """Return whether any change of a file since it was read at that time changes its stamp."""
    return max(stamp[1], stamp[2]) + GRAIN < read_at


@dataclass
class Index:
    """All entries, by path relative to the workspace."""

    files: dict[str, IndexEntry] = field(default_factory=dict)
    schemas: set[str] = field(default_factory=set)
    """Ids of JSON Schemas that were found to be valid."""
    used: dict[str, list[str]] = field(default_factory=dict)
    """Prompt -> the versions of it that the last run used."""
    changed: bool = False
    rows: dict[str, NumberLists] = field(default_factory=dict)
    """Test file -> the digests of its rows, when these were read now."""

    def note_used(self) -> None:
        """Note that a run uses the prompts that tests have now."""
        used = {
            name.removeprefix("prompt:"): ids
            for entry in self.files.values()
            for name, ids in entry.depends.items()
            if name.startswith("prompt:")
        }
        self.changed = self.changed or used != self.used
        self.used = used

    def put(self, path: str, entry: IndexEntry, rows: NumberLists | None = None) -> None:
        """Add or replace an entry, with the digests of its rows unless all are too many."""
        self.files[path] = entry
        self.changed = True
        kept = sum(len(each) for some in self.rows.values() for each in some.lists)
        if rows and kept + sum(map(len, rows.lists)) <= _MOST_NUMBERS:
            self.rows[path] = rows

    def keep_only(self, paths: set[str]) -> None:
        """Remove the entries of all other files."""
        gone = self.files.keys() - paths
        for path in gone:
            del self.files[path]
        self.changed = self.changed or bool(gone)

    @classmethod
    def read(cls, path: Path, boundary: Boundary) -> Index:
        """Read the index at a path; empty when it is missing, damaged or of another version."""
        try:
            content = read_cache(path, boundary)
            if content["format"] != _FORMAT:
                return cls()
            depends = content["depends"]
            files = {
                name: IndexEntry((a, b, c, d), settled, digest, node, depends[number])
                for name, (a, b, c, d, settled, digest, node, number) in content["files"].items()
            }
            index = cls(files, set(content["schemas"]), content["used"])
        except (ValueError, KeyError, TypeError, IndexError, AttributeError):
            return cls()
        ids = chain.from_iterable((file.node, file.digest) for file in files.values())
        is_sound = all(type(depend) is dict for depend in depends) and all(
            type(text) is str for text in chain(index.schemas, ids)
        )
        return index if is_sound else cls()

    def write(self, path: Path) -> None:
        """Write the index atomically; a read-only workspace is not an error."""
        numbers: dict[str, int] = {}
        depends: list[dict[str, Any]] = []
        files = {}
        for name, entry in self.files.items():
            text = json.dumps(entry.depends, sort_keys=True) if entry.depends else ""
            if text not in numbers:
                numbers[text] = len(depends)
                depends.append(entry.depends)
            files[name] = [*entry.stamp, entry.settled, entry.digest, entry.node, numbers[text]]
        content = {
            "format": _FORMAT,
            "files": files,
            "depends": depends,
            "schemas": sorted(self.schemas),
            "used": self.used,
        }
        data = json.dumps(content, separators=(",", ":")).encode()
        with suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, data, durable=False)
            names = {_file_name(name) for name in self.files}
            for old in path.parent.glob(f"{_ROWS}*"):
                if old.name not in names:
                    old.unlink()
        for name, (header, lists) in self.rows.items():
            sources = _sources(self.files[name])
            NumberLists([sources, header], lists).write(path.parent / _file_name(name))
        self.rows, self.changed = {}, False


def _file_name(path: str) -> str:
    return _ROWS + hashing.hash_bytes(path.encode())


def _sources(entry: IndexEntry) -> Json:
    return [_FORMAT, entry.digest, entry.node, entry.depends]


def read_rows(
    private: Path, boundary: Boundary, path: str, entry: IndexEntry, count: int
) -> NumberLists | None:
    """Return the digests of the rows of a test file as it was read; None if they are not known.

    `count` is how many rows there were.
    """
    try:
        (sources, (names, columns)), lists = read_lists(private / _file_name(path), boundary)
        is_sound = [*map(len, lists)] == [count] * (len({*columns}) + 3)
    except (ValueError, TypeError):
        return None
    is_same = is_sound and sources == _sources(entry)
    return NumberLists([names, columns], lists) if is_same else None


def read_dependencies(private: Path, boundary: Boundary, file: str) -> dict[str, Any]:
    """Return the dependencies of a test file as it was last read; empty when they are not known."""
    try:
        content = read_cache(private / INDEX, boundary)
        depends = content["depends"][content["files"][file][-1]]
    except (ValueError, KeyError, TypeError, IndexError):
        return {}
    return depends if isinstance(depends, dict) else {}


def read_used_prompts(private: Path, boundary: Boundary) -> dict[str, list[str]]:
    """Return the prompts that the last run used, each with its versions then."""
    try:
        used = read_cache(private / INDEX, boundary)["used"]
        return {name: ids for name, ids in used.items() if isinstance(ids, list)}
    except (ValueError, KeyError, TypeError, AttributeError):
        return {}


def read_cache(path: Path, boundary: Boundary) -> Any:
    """Read the JSON of a cache file; raises `ValueError` for a damaged one."""
    try:
        return json.loads(boundary.read(path, LARGEST_CACHE))
    except (FileProblem, RecursionError) as error:
        raise ValueError(str(error)) from error


class NumberLists(NamedTuple):
    """Lists of numbers of 64 bits with a header, as they are in a cache file."""

    header: Any
    lists: list[array[int]]

    def write(self, path: Path) -> None:
        """Write the file; a read-only workspace is not an error."""
        lengths = [len(each) for each in self.lists]
        head = json.dumps([sys.byteorder, self.header, lengths], sort_keys=True)
        pieces: list[bytes | memoryview] = [f"{head}\n".encode()]
        pieces += [memoryview(each).cast("B") for each in self.lists]
        with suppress(OSError), temporary_file(path, durable=False) as file:
            file.writelines([hashing.hash_stream(pieces).encode(), *pieces])


def read_lists(path: Path, boundary: Boundary) -> NumberLists:
    """Read such a file; raises `ValueError` when it is missing or damaged."""
    try:
        view = memoryview(data := boundary.read(path, LARGEST_CACHE))
        if hashing.hash_bytes(view[_DIGITS:]) != data[:_DIGITS].decode("ascii", "replace"):
            raise ValueError("it is damaged")
        at = data.index(b"\n") + 1
        order, header, lengths = json.loads(data[_DIGITS:at])
    except (FileProblem, RecursionError) as error:
        raise ValueError(str(error)) from error
    if order != sys.byteorder:
        raise ValueError("it is of another machine")
    ends = [*accumulate((8 * length for length in lengths), initial=at)]
    return NumberLists(header, [array("Q", view[a:b].tobytes()) for a, b in pairwise(ends)])


def walk(
    folder: str,
    prefix: str,
    suffixes: tuple[str, ...],
    stamps: dict[str, Stamp],
    links: list[str] | None = None,
) -> None:
    """Add the files below a folder to `stamps`, and to `links` those that are links.

    Their paths begin with `prefix`. Hidden files and linked folders are ignored. Files that cannot
    be accessed, or are not regular ones, have `NO_STAMP`.
    """
    try:
        entries = list(os.scandir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise EvalstoreError(f"{prefix.rstrip('/')}: cannot be read: {error.strerror}") from error
    for entry in entries:
        name, path = entry.name, prefix + entry.name
        is_folder = entry.is_dir(follow_symlinks=False)
        is_file = not is_folder and name.endswith(suffixes) and name != "README.md"
        if name[0] == "." or not (is_folder or is_file):
            continue
        try:
            name.encode()
        except UnicodeEncodeError:
            shown = path.encode(errors="backslashreplace").decode()
            raise EvalstoreError(f"the file name '{shown}' is not UTF-8") from None
        if is_folder:
            walk(f"{folder}/{name}", f"{path}/", suffixes, stamps, links)
            continue
        stamps[path] = NO_STAMP  # reading it will tell why
        with suppress(OSError):
            status = entry.stat()
            if S_ISREG(status.st_mode):
                stamps[path] = file_stamp(status)
            elif S_ISDIR(status.st_mode):  # a linked folder
                del stamps[path]
            if links is not None and entry.is_symlink():
                links.append(path)


Seen = tuple[str, int, int, int, int]
"""A name and the stamp of its file; all zero when it cannot be accessed."""


def see(name: str) -> Seen:
    """Return a path with its stamp; all zero when it does not exist."""
    try:
        return (name, *file_stamp(os.stat(name)))  # noqa: PTH116
    except (OSError, ValueError):
        return (name, 0, 0, 0, 0)


def see_mentioned(name: str) -> Seen:
    """Return the target of a path, with its stamp."""
    return see(os.path.realpath(name))
