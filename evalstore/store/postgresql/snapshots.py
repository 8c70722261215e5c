"""Tells what is new in a database of many writers, by snapshots and the numbers of transactions.

Transactions are committed in any order, so no number of a row tells which were there at a moment. A
snapshot of the server does: it says for each transaction whether its rows could be seen. Each row
has the number of the transaction that has inserted it, from the server itself: the column is
generated, so neither a dump that is restored nor a program can set it.

Numbers of transactions mean nothing elsewhere, nor in a copy of the server that went back in time.
So a mark is stored with each snapshot, in a transaction that is younger than all that the snapshot
can see. Where the mark is, these are, too, and new transactions have larger numbers. The token of a
mark is made by the server whenever the row is inserted: a restored dump has others.
"""

from __future__ import annotations

import re

from evalstore.store.driver import Connection, Extent
from evalstore.store.postgresql.schema import GROWTH_MARKS, TRANSACTION
from evalstore.store.schema.table_columns import FAILURES, RESULTS, RUNS

_KEPT_MICROSECONDS = 180 * 24 * 3600 * 10**6
"""How long marks are kept. Each program that settles parts of files uses the newest of its own."""
_TOKEN = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}").fullmatch
_SNAPSHOT = re.compile("[0-9]+:[0-9]+:[0-9,]*").fullmatch
_RIGHTS = " AND ".join(
    f"has_table_privilege('{GROWTH_MARKS.name}', '{right}')"
    for right in ("SELECT", "INSERT", "DELETE")
)
_BY_NUMBER = (FAILURES.name, RUNS.name)
"""Tables of few rows without the numbers of their transactions; no row is ever deleted."""
_MAY_READ = f"SELECT has_table_privilege('{GROWTH_MARKS.name}', 'SELECT')::int"


class Snapshots:
    """The extents of PostgreSQL databases: the token of a mark, and a snapshot."""

    def measure(self, connection: Connection) -> Extent | None:
        """Return a new mark and what could be seen before it; None without the rights to it."""
        clock = connection.dialect.clock
        (row,) = connection.execute(f"SELECT ({_RIGHTS})::int, {clock}").fetchall()
        may_mark, now = row
        if not may_mark:
            return None
        # The snapshot of a statement is taken before the first row is written, and so before this
        # transaction has a number.
        (mark,) = connection.execute(
            f"INSERT INTO {GROWTH_MARKS.name} (made) VALUES (?) "
            "RETURNING token::text, pg_current_snapshot()::text",
            (now,),
        ).fetchall()
        too_old = now - _KEPT_MICROSECONDS
        connection.execute(f"DELETE FROM {GROWTH_MARKS.name} WHERE made < ?", (too_old,))
        return tuple(mark)

    def newest(self, connection: Connection, before: Extent | None) -> Extent:
        """Return a snapshot, when the server started, and the numbers of failures and runs.

        Transactions are committed in any order, so no row is the last one: the snapshot stays the
        earlier one until an answer or a judgement can be seen that could not be seen then.
        """
        counts = ", ".join(f"(SELECT count(*) FROM {table})" for table in _BY_NUMBER)
        has_grown, parameters = self._has_grown(before) if before else ("true", ())
        # What one statement sees is all of one moment.
        ((has_grown, now, *others),) = connection.execute(
            f"SELECT ({has_grown})::int, pg_current_snapshot()::text, "
            f"pg_postmaster_start_time()::text, {counts}",
            parameters,
        ).fetchall()
        if before and not has_grown and list(before[1:]) == others:
            return before
        return now, *others

    def _has_grown(self, before: Extent) -> tuple[str, tuple[int | str, ...]]:
        """Return that a row can be seen that the snapshot of `newest` could not see."""
        condition, parameters = self.condition("", ("", before[0]))
        rows = [f"EXISTS (SELECT 1 FROM {table} WHERE {condition})" for table in RESULTS]
        return " OR ".join(rows), parameters * len(rows)

    def has_had(self, connection: Connection, extent: Extent) -> bool:
        """Return whether the mark of an extent is in the store."""
        if not (len(extent) == 2 and _TOKEN(str(extent[0])) and _SNAPSHOT(str(extent[1]))):
            return False
        ((may_read,),) = connection.execute(_MAY_READ).fetchall()
        query = f"SELECT 1 FROM {GROWTH_MARKS.name} WHERE token = ?::uuid"
        return bool(may_read and connection.execute(query, extent[:1]).fetchall())

    def count(self, connection: Connection, table: str, before: Extent, after: Extent) -> int:
        """Return how many rows can be seen now that could not be seen before."""
        del after  # what was committed since then counts, too
        condition, parameters = self.condition(table, before)
        query = f"SELECT count(*) FROM {table} WHERE {condition}"
        return int(connection.execute(query, parameters).fetchall()[0][0])

    def condition(self, table: str, since: Extent) -> tuple[str, tuple[int | str, ...]]:
        """Return that the transaction of a row could not be seen.

        The first part of the condition is implied by the second one, and finds the rows by index.
        """
        del table  # a snapshot is of all tables
        seen = since[1]
        return (
            f"{TRANSACTION} >= pg_snapshot_xmin(?::pg_snapshot) "
            f"AND NOT pg_visible_in_snapshot({TRANSACTION}, ?::pg_snapshot)",
            (seen, seen),
        )
