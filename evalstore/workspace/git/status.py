"""Determines the commit of a folder, and whether its tracked files have changes."""

from __future__ import annotations

import getpass
import hashlib
import os
import platform
import re
import stat
import struct
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from evalstore.core.errors import EvalstoreError
from evalstore.workspace.git.objects import (
    GitError,
    Objects,
    Repository,
    find_repository,
    read_bytes,
    read_number,
    read_text,
)

_SECTION = re.compile(r"\s*\[([^\]]*)\]")
_USER_NAME = re.compile(r"\s*name\s*=\s*(.*)", re.IGNORECASE)
_LONGEST = 200
"""The most characters of a name that are kept."""


def read_user_name(folder: Path, *, outside: bool = False) -> str | None:
    """Read git's `user.name` for the checkout that a folder is in.

    Outside a checkout None, or with `outside` that of the user. The repository's setting takes
    precedence over the user's. Included files are not read, and git is not started.
    """
    try:
        repository = find_repository(folder.resolve())
    except (GitError, OSError, ValueError):
        repository = None
    if repository is None and not outside:
        return None
    for path in (*([repository.common / "config"] if repository else ()), *_user_files()):
        with suppress(GitError, OSError, ValueError):
            if name := _find_name(read_bytes(path, 2**20).decode("utf-8", "replace")):
                return name
    return None


def _user_files() -> Iterator[Path]:
    """Yield the configuration files of the user, in the order in which git prefers them."""
    with suppress(RuntimeError):  # without a home folder
        home = Path.home()
        yield home / ".gitconfig"
        yield Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config") / "git/config"


def _find_name(text: str) -> str | None:
    """Find the last `name` of the section `user`."""
    section, name = "", None
    for line in text.splitlines():
        if heading := _SECTION.match(line):
            section = heading[1].strip().lower()
        elif section == "user" and (setting := _USER_NAME.match(line)):
            name = re.split(r"\s[#;]", setting[1], maxsplit=1)[0].strip().strip('"')[:_LONGEST]
    return name or None


_LINK, _SUBMODULE = 0o120000, 0o160000
_MOST_BYTES = 256 * 2**20
"""Of all files that are compared by their contents."""
_MOST_SECONDS = 5.0
_LOW = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class State:
    """The commit and whether there are changes."""

    commit: str
    dirty: bool | None
    """Whether tracked files below the folder differ from the commit; None: not known."""


def read_state(folder: Path, *, is_inner: bool = False) -> State | None:
    """Read the commit of the checkout that a folder is in, and whether the folder has changes.

    Files that are not tracked do not count. None outside a checkout, before its first commit,
    and when its HEAD cannot be read. Runs nothing: no filter, no hook, no program. With
    `is_inner` it is a submodule, and whether its own submodules have changes is not known.
    """
    try:
        folder = folder.resolve()
        repository = find_repository(folder)
        commit = read_head(repository) if repository else None
    except (GitError, OSError, ValueError):
        return None
    if repository is None or commit is None:
        return None
    try:
        return State(commit, _is_dirty(repository, commit, folder, is_inner))
    except (GitError, OSError, ValueError, RecursionError):
        return State(commit, None)


def _is_dirty(repository: Repository, commit: str, folder: Path, is_inner: bool) -> bool | None:
    path = repository.folder / "index"
    written = path.stat().st_mtime_ns if path.exists() else 0
    entries = parse_index(read_bytes(path), len(commit) // 2) if written else []
    inside = folder.relative_to(repository.top.resolve())
    below = b"".join(os.fsencode(part) + b"/" for part in inside.parts)
    entries = [entry for entry in entries if entry.path.startswith(below)]
    if not all(entry.is_merged and entry.is_added for entry in entries):
        return True
    if tree_id(entries, below) != _committed(Objects(repository.common), commit, below):
        return True
    return _Files(repository, written, is_inner).differ(entries)


def _committed(objects: Objects, commit: str, below: bytes) -> bytes | None:
    """Return the id of the tree of a folder in a commit; None when it has no such folder."""
    tree = objects.tree_of(commit)
    for name in below.split(b"/")[:-1]:
        entry = objects.find_in_tree(tree, name)
        if entry is None or not stat.S_ISDIR(entry[0]):
            return None
        tree = entry[1]
    empty = hashlib.sha1 if len(tree) == 40 else hashlib.sha256
    id = bytes.fromhex(tree)
    return None if id == empty(b"tree 0\0", usedforsecurity=False).digest() else id


class _Files:
    """Compares files with the index: by their stamps, and by their bytes where those differ."""

    def __init__(self, repository: Repository, written: int, is_inner: bool) -> None:
        self._is_inner = is_inner
        self._top = os.fsencode(repository.top.resolve())
        self._written = written
        self._deadline = time.monotonic() + _MOST_SECONDS
        self._left = _MOST_BYTES
        self._attributes = repository.common / "info" / "attributes"
        self._has_modes = True
        with suppress(GitError):
            config = read_text(repository.common / "config")
            self._has_modes = not re.search(
                r"(?im)^[ \t]*filemode[ \t]*=[ \t]*(false|no|off|0)\b", config
            )

    def differ(self, entries: list[Tracked]) -> bool | None:
        """Return whether a file differs; None when none differs and one could not be compared."""
        known = True
        for entry in entries:
            differs = self._differs(entry) if entry.is_looked_at else False
            if differs:
                return True
            known = known and differs is False
        return False if known else None

    def _differs(self, entry: Tracked) -> bool | None:
        path = self._top + b"/" + entry.path  # a name need not be UTF-8
        try:
            status = os.lstat(path)
        except (FileNotFoundError, NotADirectoryError):
            return entry.mode != _SUBMODULE
        if entry.mode == _SUBMODULE:
            return self._submodule_differs(Path(os.fsdecode(path)), entry)
        if stat.S_IFMT(status.st_mode) != stat.S_IFMT(entry.mode):
            return True
        if self._has_modes and entry.mode != _LINK and (entry.mode ^ status.st_mode) & 0o100:
            return True
        now = (
            status.st_ctime_ns,
            status.st_mtime_ns,
            status.st_ino & _LOW,
            status.st_size & _LOW,
        )
        # A file that is as young as the index may have changed within the grain of the clock.
        if now == entry.stamp and status.st_mtime_ns < self._written:
            return False
        return self._bytes_differ(path, entry, status)

    def _bytes_differ(self, path: bytes, entry: Tracked, status: os.stat_result) -> bool | None:
        self._left -= status.st_size
        if self._left < 0 or time.monotonic() > self._deadline:
            return None
        try:
            is_link, file = entry.mode == _LINK, Path(os.fsdecode(path))
            data = os.readlink(path) if is_link else read_bytes(file, _MOST_BYTES)  # noqa: PTH115
        except (OSError, GitError):
            return None
        if _blob_id(data, len(entry.id)) == entry.id:
            return False
        if entry.mode == _LINK:
            return True
        # A filter, or a conversion of line ends, might make the same bytes of it; none is run.
        as_lines = _blob_id(data.replace(b"\r\n", b"\n"), len(entry.id))
        return None if as_lines == entry.id or self._may_be_filtered(entry.path) else True

    def _may_be_filtered(self, path: bytes) -> bool:
        """Return whether an attributes file for a path mentions filters or encodings."""
        folder = Path(os.fsdecode(self._top), *os.fsdecode(path).split("/")[:-1])
        top = Path(os.fsdecode(self._top))
        places = [parent for parent in (folder, *folder.parents) if parent.is_relative_to(top)]
        for name in (*(place / ".gitattributes" for place in places), self._attributes):
            with suppress(GitError):
                if re.search(r"filter=|ident\b|working-tree-encoding=", read_text(name)):
                    return True
        return False

    def _submodule_differs(self, path: Path, entry: Tracked) -> bool | None:
        if not (path / ".git").exists():
            return False
        if self._is_inner or path.is_symlink():
            return None  # as deep as this only a checkout goes that wants to be endless
        state = read_state(path, is_inner=True)
        if state is None:
            return None
        return True if bytes.fromhex(state.commit) != entry.id else state.dirty


def _blob_id(data: bytes, size: int) -> bytes:
    new = hashlib.sha1 if size == 20 else hashlib.sha256
    return new(b"blob %d\0" % len(data) + data, usedforsecurity=False).digest()


# --- which commit is checked out: HEAD, loose refs and packed refs (gitrepository-layout(5))


_ID = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_NAME = re.compile(r"refs(/(?!\.)[^\s/\x00-\x20~^:?*\[\\]+)+")
_DEPTH = 5
"""Symbolic refs that point to each other, at most."""


def read_head(repository: Repository) -> str | None:
    """Read the id of the commit that is checked out; None before the first commit."""
    text = read_text(repository.folder / "HEAD").strip()
    for _ in range(_DEPTH):
        if _ID.fullmatch(text):
            return text
        if not text.startswith("ref:"):
            raise GitError("HEAD is not readable")
        name = text.removeprefix("ref:").strip()
        if not _NAME.fullmatch(name) or ".." in name:
            raise GitError("HEAD names no ref")
        target = _read_ref(repository, name)
        if target is None:
            return None
        text = target
    raise GitError("HEAD leads in a circle")


def _read_ref(repository: Repository, name: str) -> str | None:
    for folder in dict.fromkeys((repository.folder, repository.common)):
        path = folder / name
        if path.is_file():
            return read_text(path).strip()
    packed = repository.common / "packed-refs"
    if not packed.is_file():
        return None
    line = re.compile(rb"^([0-9a-f]{40,64}) " + re.escape(name.encode()) + rb"\r?$", re.MULTILINE)
    match = line.search(read_bytes(packed))
    return match[1].decode() if match else None


# --- parses the index of a checkout (gitformat-index(5))


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
            strip, at = read_number(data, at)
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


def name_of_writer(directory: Path) -> str:
    """Return who writes to a remote from a folder: the user and the machine."""
    return f"{name_of_user(directory)}@{_readable(platform.node()) or 'unknown'}"


def name_of_user(directory: Path) -> str:
    """Return the name of the user: git's `user.name`, else the login."""
    try:
        name = read_user_name(directory, outside=True) or getpass.getuser()
    except (OSError, KeyError) as problem:
        raise EvalstoreError(
            "cannot determine your name", hint="give it with '--as NAME'"
        ) from problem
    return _readable(name)


def _readable(name: str) -> str:
    """Replace what is not UTF-8 in a name of the system."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
