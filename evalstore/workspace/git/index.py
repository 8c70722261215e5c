"""Parses the index of a checkout (gitformat-index(5))."""

from __future__ import annotations

import hashlib
import struct
from typing import NamedTuple

from evalstore.workspace.git.files import GitError

_STAGE, _EXTENDED, _ASSUME_VALID = 0x3000, 0x4000, 0x8000
_SKIP_WORKTREE, _INTENT_TO_ADD = 0x4000, 0x2000
_TREE = 0o40000
_LONGEST_PATHS = 128 * 2**20
"""The most bytes of all paths together, as compressed entries share prefixes."""


class Tracked(NamedTuple):
    """One entry of an index."""

    path: bytes
    mode: int
    id: bytes
    stamp: tuple[int, int, int, int]
    """ctime and mtime in nanoseconds, inode and size modulo 2**32."""
    is_merged: bool
    is_added: bool
    """False for `git add --intent-to-add`."""
    is_looked_at: bool
    """False when git ignores changes of the file (assume-unchanged, skip-worktree)."""


def parse_index(data: bytes, id_size: int) -> list[Tracked]:
    """Parse an index into entries, sorted by path; raises `GitError` for an unsupported one."""
    try:
        return _parse(data, id_size)
    except (struct.error, IndexError, ValueError) as error:
        raise GitError("the index cannot be read") from error


def _parse(data: bytes, id_size: int) -> list[Tracked]:
    magic, version, count = struct.unpack_from(">4sII", data, 0)
    if magic != b"DIRC" or version not in (2, 3, 4):
        raise GitError("an index of an unknown version")
    at, path, entries, length = 12, b"", [], 0
    fixed = struct.Struct(f">4I4xII8xI{id_size}sH")
    for _ in range(count):
        start = at
        (cs, cn, ms, mn, inode, mode, size, id, flags) = fixed.unpack_from(data, at)
        at += fixed.size
        more = 0
        if flags & _EXTENDED:
            (more,) = struct.unpack_from(">H", data, at)
            at += 2
        if version == 4:
            strip, at = _read_number(data, at)
            end = data.index(b"\0", at)
            path = path[: len(path) - strip] + data[at:end]
            at = end + 1
        else:
            end = data.index(b"\0", at)
            path = data[at:end]
            at = start + (end - start + 8) // 8 * 8
        length += len(path)
        if length > _LONGEST_PATHS:
            raise GitError("the paths of the index are too long")
        entries.append(
            Tracked(
                path,
                mode,
                id,
                (cs * 1_000_000_000 + cn, ms * 1_000_000_000 + mn, inode, size),
                not flags & _STAGE,
                not more & _INTENT_TO_ADD,
                not (flags & _ASSUME_VALID or more & _SKIP_WORKTREE),
            )
        )
    _refuse_extensions(data, at, id_size)
    return entries


def _read_number(data: bytes, at: int) -> tuple[int, int]:
    byte, at = data[at], at + 1
    number = byte & 0x7F
    while byte & 0x80:
        byte, at = data[at], at + 1
        number = (number + 1) << 7 | byte & 0x7F
    return number, at


def _refuse_extensions(data: bytes, at: int, id_size: int) -> None:
    """Raise for an extension that must be understood, such as that of a split index."""
    while at + 8 <= len(data) - id_size:
        name, size = struct.unpack_from(">4sI", data, at)
        if not 0x41 <= name[0] <= 0x5A:
            raise GitError("the index is split or sparse")
        at += 8 + size


def tree_id(entries: list[Tracked], below: bytes) -> bytes | None:
    """Return the id of the tree that a commit would have at a folder, `b""` or ending in a slash.

    None when there is nothing to commit below it.
    """
    use = [entry for entry in entries if entry.is_added and entry.path.startswith(below)]
    if not use:
        return None
    new = hashlib.sha1 if len(use[0].id) == 20 else hashlib.sha256
    stack: list[tuple[bytes, list[bytes]]] = [(below, [])]

    def close() -> bytes:
        content = b"".join(stack[-1][1])
        return new(b"tree %d\0" % len(content) + content, usedforsecurity=False).digest()

    def leave() -> None:
        id, folder = close(), stack[-1][0]
        stack.pop()
        name = folder[len(stack[-1][0]) : -1]
        stack[-1][1].append(b"%o %s\0" % (_TREE, name) + id)

    for entry in use:
        while not entry.path.startswith(stack[-1][0]):
            leave()
        rest = entry.path[len(stack[-1][0]) :]
        *folders, name = rest.split(b"/")
        for folder in folders:
            stack.append((stack[-1][0] + folder + b"/", []))
        stack[-1][1].append(b"%o %s\0" % (entry.mode, name) + entry.id)
    while len(stack) > 1:
        leave()
    return close()
