"""Finds the verdicts of many results of a run, which a temporary file keeps."""

from __future__ import annotations

import hashlib
import sqlite3
from typing import TYPE_CHECKING, NamedTuple

from evalstore.reports.cell_places import find_match, places_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from evalstore.reports.cell_places import PlaceKey
    from evalstore.results import Result
    from evalstore.values import Verdict

_CACHE = -16_000
"""The most of the file that is in memory: KiB with a minus sign, as SQLite reads it."""


class KeptVerdict(NamedTuple):
    """What is kept of a result."""

    prompt: str | None
    verdict: Verdict | None


class FiledVerdicts:
    """Finds cells as a `ResultIndex` does; its file has no name, and goes with the program."""

    def __init__(self, results: Iterable[Result]) -> None:
        self._file = sqlite3.connect("", isolation_level=None)
        for statement in (
            f"PRAGMA cache_size = {_CACHE}",
            "PRAGMA journal_mode = OFF",
            "CREATE TABLE places (place BLOB PRIMARY KEY, prompt, verdict) WITHOUT ROWID",
            "BEGIN",
        ):
            self._file.execute(statement)
        self._file.executemany(
            "INSERT OR REPLACE INTO places VALUES (?, ?, ?)",
            (
                (_digest(place), result.prompt, result.verdict)
                for result in results
                for place in places_of(result)
            ),
        )

    def find(self, result: Result, prompts: Collection[str | None]) -> KeptVerdict | None:
        """Return what is kept of the same cell; `prompts` are the case's current system prompts."""
        return find_match(self._get, result, prompts)

    def _get(self, place: PlaceKey) -> KeptVerdict | None:
        query = "SELECT prompt, verdict FROM places WHERE place = ?"
        row = self._file.execute(query, (_digest(place),)).fetchone()
        return KeptVerdict(*row) if row else None

    def close(self) -> None:
        """Delete the file."""
        self._file.close()


def _digest(place: PlaceKey) -> bytes:
    return hashlib.blake2b(repr(place).encode("utf-8", "surrogatepass"), digest_size=16).digest()
