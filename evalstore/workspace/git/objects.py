"""Reads objects of a repository: loose ones, and those in packs (gitformat-pack(5)).

Only commits and trees are read; sizes and chains of deltas are bounded, so that a malicious
repository costs little time and memory.
"""

from __future__ import annotations

import re
import struct
import sys
import zlib
from contextlib import closing, suppress
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import NamedTuple

from evalstore.core.errors import FileProblem
from evalstore.files.access import open_file, read_file

LARGEST = 64 * 2**20
"""Bytes of one file of the repository that is read as a whole, such as its index."""


class GitError(Exception):
    """A repository cannot be read, or is not supported."""


@dataclass(frozen=True, slots=True)
class Repository:
    """The folders of one checkout."""

    top: Path
    """The working tree."""
    folder: Path
    """The folder with HEAD and the index of this working tree."""
    common: Path
    """The folder with refs and objects, which linked working trees share."""


def find_repository(start: Path) -> Repository | None:
    """Find the checkout that a folder is in; raises `GitError` when it cannot be read."""
    for top in (start, *start.parents):
        marker = top / ".git"
        if (marker / "HEAD").is_file():
            return Repository(top, marker, _common(marker))
        if marker.is_file():
            text = read_text(marker)
            if not text.startswith("gitdir: "):
                raise GitError(".git is not a link to a repository")
            folder = top / text.removeprefix("gitdir: ").strip()
            return Repository(top, folder, _common(folder))
    return None


def _common(folder: Path) -> Path:
    path = folder / "commondir"
    return folder / read_text(path).strip() if path.is_file() else folder


def read_bytes(path: Path, largest: int = LARGEST) -> bytes:
    """Read a regular file; raises `GitError`."""
    try:
        return read_file(path, largest)
    except FileProblem as problem:
        raise GitError(f"{path.name} {problem.message}") from problem


def read_text(path: Path) -> str:
    """Read the text of a small file; raises `GitError`."""
    return read_bytes(path, 2**20).decode("utf-8", "surrogateescape")


_LARGEST = 16 * 2**20
"""Bytes of a commit or a tree."""
_LARGEST_DELTAS = 4 * 2**20
"""Bytes of all deltas of an object."""
_DEPTH = 200
"""The longest chain of deltas; git makes at most 50 by default."""
_TYPES = {1: "commit", 2: "tree", 3: "blob", 4: "tag"}
_OFFSET_DELTA, _REF_DELTA = 6, 7


class Objects:
    """The own objects of one repository, by their ids in hexadecimal digits; none it borrows."""

    def __init__(self, common: Path) -> None:
        self._folder = common / "objects"
        self._packs = sorted(self._folder.glob("pack/pack-*.idx"))
        self._deltas_left = _LARGEST_DELTAS

    def tree_of(self, commit: str) -> str:
        """Return the id of the tree of a commit; raises `GitError`."""
        match = re.match(rb"tree ([0-9a-f]{40,64})\n", self._read(commit, "commit"))
        if match is None:
            raise GitError("a commit without a tree")
        return match[1].decode()

    def read_commit(self, commit: str) -> tuple[int, list[str]]:
        """Return the time of a commit and the ids of its parents; raises `GitError`."""
        head = self._read(commit, "commit").partition(b"\n\n")[0]
        time = re.search(rb"^committer .* ([0-9]{1,18}) [-+][0-9]+$", head, re.MULTILINE)
        found = re.findall(rb"^parent ([0-9a-f]{40,64})$", head, re.MULTILINE)
        return int(time[1]) if time else 0, [id.decode() for id in found]

    def find_in_tree(self, tree: str, name: bytes) -> tuple[int, str] | None:
        """Find the mode and the id of an entry of a tree; None when it has none of that name."""
        content, size, at = self._read(tree, "tree"), len(tree) // 2, 0
        while at < len(content):
            blank, end = content.index(b" ", at), content.index(b"\0", at)
            id = content[end + 1 : end + 1 + size].hex()
            if content[blank + 1 : end] == name:
                return int(content[at:blank], 8), id
            at = end + 1 + size
        return None

    def _read(self, id: str, kind: str) -> bytes:
        self._deltas_left = _LARGEST_DELTAS
        try:
            actual_kind, content = self._find(bytes.fromhex(id), 0)
        except (ValueError, IndexError, struct.error, zlib.error, OSError) as error:
            raise GitError(f"the object {id} cannot be read") from error
        if actual_kind != kind:
            raise GitError(f"the object {id} is not a {kind}")
        return content

    def _find(self, id: bytes, depth: int) -> tuple[str, bytes]:
        digits = id.hex()
        loose = self._folder / digits[:2] / digits[2:]
        if loose.is_file():
            head, _, rest = _inflate(read_bytes(loose, _LARGEST), 0).partition(b"\0")
            return head.split(b" ")[0].decode("ascii", "replace"), rest
        for index in self._packs:
            offset = _find_offset(index, id)
            if offset is not None:
                with _mapped(index.with_suffix(".pack")) as pack:
                    return self._read_packed(pack, offset, len(id), depth)
        raise GitError(f"object {digits} not found")

    def _read_packed(self, pack: mmap, offset: int, size: int, depth: int) -> tuple[str, bytes]:
        """Read an object of a pack; deltas are applied from the base on."""
        deltas: list[bytes] = []
        while True:
            depth += 1
            if depth > _DEPTH:
                raise GitError("too many deltas")
            byte, at = pack[offset], offset + 1
            kind = byte >> 4 & 7
            while byte & 0x80:
                byte, at = pack[at], at + 1
            if kind in _TYPES:
                object_type, content = _TYPES[kind], _inflate(pack, at)
                break
            if kind == _OFFSET_DELTA:
                back, at = read_number(pack, at)
                deltas.append(self._inflate_delta(pack, at))
                if not 0 < back <= offset:
                    raise GitError("a delta without a base")
                offset -= back
            elif kind == _REF_DELTA:
                base = pack[at : at + size]
                deltas.append(self._inflate_delta(pack, at + size))
                object_type, content = self._find(base, depth)
                break
            else:
                raise GitError("an object of an unknown kind")
        for delta in reversed(deltas):
            content = _apply(delta, content)
        return object_type, content

    def _inflate_delta(self, pack: mmap, at: int) -> bytes:
        delta = _inflate(pack, at, self._deltas_left)
        self._deltas_left -= len(delta)
        return delta


def _inflate(data: bytes | mmap, at: int, largest: int = _LARGEST) -> bytes:
    packed = zlib.decompressobj()
    parts: list[bytes] = []
    size = 0
    while not packed.eof and size <= largest:
        chunk = packed.unconsumed_tail or data[at : (at := at + (1 << 16))]
        if not chunk:
            raise GitError("an object is cut off")
        parts.append(packed.decompress(chunk, largest + 1 - size))
        size += len(parts[-1])
    if size > largest:
        raise GitError("an object is too large")
    return b"".join(parts)


def _mapped(path: Path) -> closing[mmap]:
    try:
        with open_file(path, sys.maxsize) as file:
            return closing(mmap(file.fileno(), 0, access=ACCESS_READ))
    except FileProblem as problem:
        raise GitError(f"{path.name} {problem.message}") from problem


def _find_offset(path: Path, id: bytes) -> int | None:
    """Find the offset of an object in the pack of an index of version 2."""
    with _mapped(path) as index:
        if index[:8] != b"\xfftOc\0\0\0\2":
            raise GitError("a pack index of an unknown version")
        first, count = id[0], struct.unpack_from(">I", index, 8 + 4 * 255)[0]
        low = struct.unpack_from(">I", index, 8 + 4 * (first - 1))[0] if first else 0
        high = struct.unpack_from(">I", index, 8 + 4 * first)[0]
        start, size = 8 + 4 * 256, len(id)
        while low < high:
            middle = (low + high) // 2
            entry_id = index[start + size * middle : start + size * (middle + 1)]
            if entry_id == id:
                offsets = start + (size + 4) * count
                offset: int = struct.unpack_from(">I", index, offsets + 4 * middle)[0]
                if offset & 0x80000000:
                    place = offsets + 4 * count + 8 * (offset & 0x7FFFFFFF)
                    offset = struct.unpack_from(">Q", index, place)[0]
                return offset
            low, high = (middle + 1, high) if entry_id < id else (low, middle)
    return None


def _apply(delta: bytes, base: bytes) -> bytes:
    """Apply a delta to its base; returns the object."""
    at = 0
    for _ in range(2):  # the two sizes
        while delta[at] & 0x80:
            at += 1
        at += 1
    parts: list[bytes] = []
    total = 0
    while at < len(delta):
        order, at = delta[at], at + 1
        if order & 0x80:
            numbers = [0, 0]
            for field, bits in ((0, range(4)), (1, range(4, 7))):
                for place, bit in enumerate(bits):
                    if order >> bit & 1:
                        numbers[field] |= delta[at] << 8 * place
                        at += 1
            offset, size = numbers[0], numbers[1] or 0x10000
            part = base[offset : offset + size]
        elif order:
            part, at = delta[at : at + order], at + order
        else:
            raise GitError("a delta with an unknown order")
        parts.append(part)
        total += len(part)
        if total > _LARGEST:
            raise GitError("an object is too large")
    return b"".join(parts)


def read_number(data: bytes | mmap, at: int) -> tuple[int, int]:
    """Return a number of variable length, and the offset behind it."""
    byte, at = data[at], at + 1
    number = byte & 0x7F
    while byte & 0x80:
        byte, at = data[at], at + 1
        number = (number + 1) << 7 | byte & 0x7F
    return number, at


# --- on which commits a commit builds


class _Commit(NamedTuple):
    age: int
    """The negative time."""
    id: str
    parents: list[str]


class Ancestors:
    """A commit and those that it builds on, read as far as they are asked for.

    Commits that a shallow clone lacks are not among them, but for the parents of those it has.
    """

    def __init__(self, folder: Path, commit: str) -> None:
        """`folder` is in the checkout."""
        self._objects: Objects | None = None
        self._is_shallow = False
        with suppress(GitError, OSError, ValueError):
            if repository := find_repository(folder.resolve()):
                self._objects = Objects(repository.common)
                self._is_shallow = (repository.common / "shallow").exists()
        self._known, self._others = {commit}, set[str]()
        start = self._read(commit)
        self._queue = [start] if start else []
        """Known commits whose parents are not read yet, the newest first."""

    def __contains__(self, commit: str) -> bool:
        if commit not in self._known and commit not in self._others and not self._follow(commit):
            self._others.add(commit)
        return commit in self._known

    def _follow(self, commit: str) -> bool:
        """Follow both commits back until this one is met, or all that is left is behind it."""
        start = self._read(commit)
        if start is None and not self._is_shallow:
            return False
        behind, queue, shared = {commit}, [start] if start else [], list[_Commit]()
        while self._queue and commit not in self._known:
            if queue and queue[0] < self._queue[0]:
                self._step(queue, behind)
            elif self._queue[0].id in behind:
                shared.append(heappop(self._queue))
            else:
                self._step(self._queue, self._known)
        self._queue += shared
        heapify(self._queue)
        return commit in self._known

    def _step(self, queue: list[_Commit], known: set[str]) -> None:
        """Replace the newest commit of a queue by its parents that are not known yet."""
        for id in heappop(queue).parents:
            if id not in known:
                known.add(id)
                parent = self._read(id)
                if parent and parent.parents:
                    heappush(queue, parent)

    def _read(self, id: str) -> _Commit | None:
        """Return a commit; None for one that cannot be read."""
        with suppress(GitError, OSError, ValueError):
            if self._objects:
                time, parents = self._objects.read_commit(id)
                return _Commit(-time, id, parents)
        return None
