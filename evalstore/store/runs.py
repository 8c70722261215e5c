"""Queries for runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from evalstore.core import batches, hashing
from evalstore.core.runs import Run, describe_run, restore_run
from evalstore.store.contents import decode_row, missing
from evalstore.store.database import NO_LIMIT, Database, ensure
from evalstore.store.ids import as_bytes
from evalstore.store.records import make_rows
from evalstore.store.schema.table_definitions import RUNS

RUNS_SEARCHED = 100
"""The number of newest runs that are searched for an earlier version or result of a case."""
LEFT_OUT: set[str] = set()
"""The ids of runs that the command leaves out, because they describe too much to be read."""
_BEGIN, _END = -(2**63), 2**63 - 1
_LAST = (_END, b"\xff" * 16)
"""A time and an id after those of all runs."""


class RunQueries(Database):
    """The queries for runs."""

    def record_run(self, run: Run) -> Run:
        """Append a run; returns it with its id."""
        id, content = hashing.identify(describe_run(run))
        rows = make_rows({id: content})
        self.write(lambda connection: ensure(connection, RUNS, rows))
        return replace(run, id=id)

    def find_runs(
        self, *, limit: int | None = None, offset: int = 0, since: int = _BEGIN, before: int = _END
    ) -> list[Run]:
        """Return runs, newest first: those that began at `since` or later, and before `before`."""
        readable, without = _readable()
        query = (
            f"SELECT id, content FROM runs WHERE {readable} AND started >= ? AND started < ? "
            "ORDER BY started DESC, id DESC"
        )
        rows = self._select(
            f"{query} LIMIT ? OFFSET ?",
            (*without, since, before, NO_LIMIT if limit is None else limit, offset),
        )
        return [_run(*row) for row in rows]

    def find_recent_runs(
        self, before: Run | None = None, limit: int = RUNS_SEARCHED
    ) -> Iterator[Run]:
        """Yield the newest runs, or those before a run, newest first; they are read in batches."""
        readable, without = _readable()
        query = f"SELECT id, content FROM runs WHERE {readable} AND (started, id) < (?, ?)"
        left, last = limit, before
        while left > 0:
            place = (last.started, as_bytes(last.id)) if last else _LAST
            most = min(batches.SMALL_SIZE, left)
            parameters = (*without, *place, most)
            rows = self._select(f"{query} ORDER BY started DESC, id DESC LIMIT ?", parameters)
            for row in rows:
                last = _run(*row)
                yield last
            if len(rows) < most:
                return
            left -= most

    def find_run_before(self, run: Run | None = None) -> Run | None:
        """Return the newest run before one, or of all; None without one.

        Results are compared with it where no run is named, whatever it covered.
        """
        return next(self.find_recent_runs(before=run, limit=1), None)

    def load_run(self, id: str) -> Run:
        """Return a run by its full id; raises `StoreError` when it is not there."""
        query = "SELECT id, content FROM runs WHERE id = ?"
        for row in self._select(query, (as_bytes(id),)):
            return _run(*row)
        raise missing("run", id)

    def count_runs(self, *, since: int = _BEGIN, before: int = _END) -> int:
        """Return how many runs began at `since` or later, and before `before`."""
        readable, without = _readable()
        query = f"SELECT count(*) FROM runs WHERE {readable} AND started >= ? AND started < ?"
        return int(self._select(query, (*without, since, before))[0][0])


def _readable() -> tuple[str, list[bytes | None]]:
    """Return the condition for the runs that are not left out, and its parameters."""
    ids = [as_bytes(id) for id in sorted(LEFT_OUT)]
    return f"id NOT IN ({', '.join('?' * len(ids))})" if ids else "TRUE", ids


def _run(id: Any, content: Any) -> Run:
    return restore_run(*decode_row("runs", id, content))
