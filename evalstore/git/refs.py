"""Which commit is checked out: HEAD, loose refs and packed refs (gitrepository-layout(5))."""

from __future__ import annotations

import re

from evalstore.git.files import GitError, Repository, read_bytes, read_text

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
