"""What must hold whenever a program ends, whatever it was given."""

from __future__ import annotations

import hashlib
import os
import re
import stat
import unicodedata
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import NamedTuple

from tests.hostile.campaign.processes import Ended

DOCUMENTED = frozenset({0, 1, 2, 3, 4, 5, 6})
"""Exit codes that a user may see who has interrupted nothing."""
MOST_MEMORY = 1 << 30
"""Bytes."""
LONGEST = 10
"""Seconds of processor time; a program that takes `WAITED` times as long hangs."""
WAITED = 3
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]{6,}")
_BIDI = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


class Wrong(NamedTuple):
    """Something that must not be."""

    description: str
    """The same for each appearance of it."""
    detail: str = ""


def judge_end(
    ended: Ended, *, allowed: Collection[int] = DOCUMENTED, patience: float = 1
) -> Iterator[Wrong]:
    """What is wrong with how a program ended."""
    if ended.deaf:
        yield Wrong("does not end when it is interrupted", f"{ended.cpu:.1f} s CPU")
    elif ended.hung or ended.cpu > LONGEST * patience:
        yield Wrong("takes too long", f"{ended.wall:.1f} s, {ended.cpu:.1f} s CPU")
    if ended.peak > MOST_MEMORY:
        yield Wrong("takes too much memory", f"{ended.peak >> 20} MiB")
    if "Traceback (most recent call last)" in ended.stderr:
        yield Wrong(f"traceback: {last_line(ended.stderr)}")
    elif ended.code not in allowed and not ended.hung:
        yield Wrong(f"exit code {ended.code}", ended.stderr[-500:])
    if "--json" not in ended.argv:
        yield from judge_text(ended.stdout + ended.stderr)


def judge_text(text: str) -> Iterator[Wrong]:
    """What must not be in a text that a terminal shows."""
    raw = {item for item in text if _moves_a_terminal(item)}
    if raw:
        yield Wrong("shows raw control characters", ", ".join(sorted(map(ascii, raw))))
    if actual := _ADDRESS.search(text):
        yield Wrong("shows the address of an object", text[max(0, actual.start() - 80) :][:160])


def _moves_a_terminal(character: str) -> bool:
    return character not in "\n\t" and (
        unicodedata.category(character) == "Cc" or character in _BIDI
    )


def last_line(errors: str) -> str:
    """The exception of a traceback with the place of evalstore that it went through last."""
    places = re.findall(r'File ".*?(evalstore/[\w/]+\.py)", line \d+, in (\w+)', errors)
    lines = re.findall(r"^(\w[\w.]*(?:Error|Exception|Interrupt|Exit|Warning)\b)", errors, re.M)
    where = ":".join(places[-1]) if places else "?"
    return f"{lines[-1] if lines else '?'} in {where}"


def fingerprint(folder: Path) -> dict[str, str]:
    """Everything in a folder, by path: its kind, its permissions and its content."""
    actual = {}
    for path in sorted(folder.rglob("*")):
        mode = path.lstat().st_mode
        content = b""
        if stat.S_ISREG(mode):
            content = path.read_bytes()
        elif stat.S_ISLNK(mode):
            content = os.fsencode(path.readlink())
        digest = hashlib.sha256(content).hexdigest()[:16]
        actual[path.relative_to(folder).as_posix()] = f"{mode:o} {digest}"
    return actual


def differences(before: dict[str, str], after: dict[str, str]) -> list[str]:
    """The paths that are not as they were."""
    return sorted(
        path for path in before.keys() | after.keys() if before.get(path) != after.get(path)
    )


def holds(path: Path, secrets: Collection[bytes]) -> bool:
    """Whether a regular file holds one of these texts, in its first 64 MiB."""
    if not path.is_file() or path.is_symlink():
        return False
    with path.open("rb") as file:
        content = file.read(64 << 20)
    return any(secret in content for secret in secrets)
