"""Marks of a search index in PostgreSQL: up to which snapshot of the store it has all texts.

A search only looks at rows whose transactions that snapshot could not see, in whichever order they
were committed; `postgresql.snapshots` says why. The index and its mark are rows of one database, so
they go back in time together. A dump that is restored has the snapshot, but its transactions have
other numbers: there the token of the mark is of no growth mark, and all texts are compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from evalstore.core.errors import StoreError
from evalstore.store.driver import Connection, Extent
from evalstore.store.postgresql.schema import (
    GROWTH_MARKS,
    SEARCH_LINKS,
    SEARCH_LOCK,
    SEARCH_MARKS,
    SEARCH_TEXTS,
)
from evalstore.store.store import Store

_FAR = 100
"""Transactions that may lie between the oldest and the newest one in progress of a snapshot."""
_LOOK = f"""
SELECT pg_current_snapshot()::text,
    concat_ws(' ', pg_relation_filenode('{SEARCH_TEXTS}'), pg_relation_filenode('{SEARCH_LINKS}')),
    EXISTS (SELECT FROM {SEARCH_TEXTS}),
    has_table_privilege('{SEARCH_MARKS}', 'SELECT')
"""
_MAY_MARK = "SELECT current_setting('transaction_read_only') = 'off' AND " + " AND ".join(
    f"has_table_privilege('{table}', '{right}')"
    for table in (SEARCH_MARKS, GROWTH_MARKS.name)
    for right in ("SELECT", "INSERT", "DELETE")
)


@dataclass(frozen=True, slots=True)
class IndexState:
    """What an index is known to have at the moment of a snapshot."""

    snapshot: str
    """What can be seen now."""
    tables: str
    """The files of its tables on the server: others after they were emptied or made anew."""
    has_texts: bool
    mark: Extent | None
    """The index has all texts that could be seen at this extent; None when nothing is known."""

    @property
    def is_far(self) -> bool:
        """Return whether a new mark, now, saves later searches much.

        Rows that were stored while the oldest transaction of a mark was in progress are looked at
        again and again.
        """
        if self.mark is None:
            return True
        oldest, newest = _ends(str(self.mark[1]))
        return newest - oldest > _FAR and _ends(self.snapshot)[0] >= newest


def look(connection: Connection) -> IndexState:
    """Return the state of an index, in a transaction with one snapshot."""
    ((snapshot, tables, has_texts, may_read),) = connection.execute(_LOOK).fetchall()
    marks = _find_marks(connection, tables) if may_read and has_texts else iter(())
    return IndexState(snapshot, tables, has_texts, next(marks, None))


def _find_marks(connection: Connection, tables: str) -> Iterator[Extent]:
    """Yield the marks of this very index in this very database."""
    query = f"SELECT token::text, snapshot FROM {SEARCH_MARKS} WHERE tables = ?"
    for token, snapshot in connection.execute(query, (tables,)).fetchall():
        if connection.dialect.growth.has_had(connection, (token, snapshot)):
            yield token, snapshot


def note(store: Store, state: IndexState) -> None:
    """Note that the index has all texts that could be seen in a state.

    Without the rights to it, or while another program adds texts, the next search looks at more.
    """
    with store._reading() as connection:
        if not connection.execute(_MAY_MARK).fetchall()[0][0]:
            return
    with suppress(StoreError):
        store.write(lambda connection: _replace(connection, state), wait=False)


def _replace(connection: Connection, state: IndexState) -> None:
    connection.execute(SEARCH_LOCK)
    connection.execute(
        f"DELETE FROM {GROWTH_MARKS.name} WHERE token IN (SELECT token FROM {SEARCH_MARKS})"
    )
    connection.execute(f"DELETE FROM {SEARCH_MARKS}")
    # The transaction of the growth mark is younger than all that the snapshot can see.
    connection.execute(
        f"WITH made AS (INSERT INTO {GROWTH_MARKS.name} (made) "
        f"VALUES ({connection.dialect.clock}) RETURNING token) "
        f"INSERT INTO {SEARCH_MARKS} (token, snapshot, tables) SELECT token, ?, ? FROM made",
        (state.snapshot, state.tables),
    )


def _ends(snapshot: str) -> tuple[int, int]:
    """Return the number of the oldest transaction in progress, and that of the next one."""
    oldest, newest, _ = snapshot.split(":")
    return int(oldest), int(newest)
