"""What differs each time a command runs, by name."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from tools.oracle.programs import Place

_SHORT = 8
"""Digits of an id that are printed at least."""
_MAKES_IDS = re.compile(r"run (?!-n)")
_NEW_ID = re.compile(r"(?<!git )\b[0-9a-f]{8}(?:[0-9a-f]{24})?\b")
"""The ids of answers, judgements and runs have a random part."""
_HOST = re.compile(r"(?<=ada@)\S+")
"""The machine that has pushed."""


def stored_ids(path: Path) -> list[str]:
    """The beginnings of all ids in a store."""
    found: set[str] = set()
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as store:
        for (name,) in store.execute("SELECT name FROM sqlite_master WHERE type = 'table'"):
            columns = {row[1] for row in store.execute(f"PRAGMA table_info({name})")}
            if "id" in columns:
                rows = store.execute(f"SELECT lower(hex(id)) FROM {name}")
                found.update(id[:_SHORT] for (id,) in rows)
    return sorted(found)


def masked(line: str, said: bytes, place: Place, stored: frozenset[str]) -> str:
    """What a command line has said, without what differs each time.

    The clock stands still while a command runs, so ages and times are compared.
    """
    text = said.decode("utf-8", "backslashreplace")
    for name in ("out", "far", "home", "work"):
        text = text.replace(str(place.base / name), f"<{name.upper()}>")
    text = _HOST.sub("<HOST>", text)
    if _MAKES_IDS.match(line):
        text = _NEW_ID.sub(
            lambda found: found[0] if found[0][:_SHORT] in stored else "<NEW ID>", text
        )
    return text
