"""Which rows runs reach: what is needed to show them, and the judgements of their answers."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from struct import iter_unpack
from typing import TYPE_CHECKING

from evalstore.sharing.push import iterate_records
from evalstore.store.contents import decode_content
from evalstore.store.records import COPIED_TABLES, ID_BYTES
from evalstore.store.references import iterate_joint_subjects, iterate_references
from evalstore.store.table_columns import SESSIONS

if TYPE_CHECKING:
    from evalstore.store import Store

_WITHOUT_REFERENCES = frozenset({"files", "schemas", "tools", "models"})
_AT_ONCE = 30_000


class ReachedIds:
    """The ids of rows that were reached, by table; an `IdSource`."""

    def __init__(self, by_table: dict[str, set[bytes]]) -> None:
        self._joined = {table: b"".join(sorted(ids)) for table, ids in by_table.items() if ids}

    def find_range(self, table: str, first: bytes, last: bytes) -> set[tuple[bytes]]:
        """Return the ids of a table from `first` up to `last`, both included."""
        return set(iter_unpack(f"{ID_BYTES}s", self.join_range(table, first, last)))

    def join_range(self, table: str, first: bytes, last: bytes) -> bytes:
        """Return the same ids, concatenated."""
        joined = self._joined.get(table, b"")
        numbers = range(len(joined) // ID_BYTES)

        def id_of(number: int) -> bytes:
            return joined[number * ID_BYTES : (number + 1) * ID_BYTES]

        start = bisect_left(numbers, first, key=id_of)
        end = bisect_right(numbers, last, key=id_of)
        return joined[start * ID_BYTES : end * ID_BYTES]

    def count(self, table: str, most: int = 0) -> int:
        """Return how many rows of a table were reached; there is no need for a limit."""
        return len(self._joined.get(table, b"")) // ID_BYTES

    def joined(self) -> dict[str, bytes]:
        """Return the sorted ids of each table, concatenated; tables without any are left out."""
        return dict(self._joined)


def find_reached(
    store: Store,
    runs: Iterable[bytes],
    *,
    presumed: Iterable[bytes] = (),
    others: Iterable[bytes] = (),
    with_judgements: bool = True,
) -> ReachedIds:
    """Return what these runs reach, with the judgements of the answers that are reached.

    What the `presumed` runs reach is left out; the judgements of their answers are not, as they
    may be newer. `others` are further rows, such as failed calls. No row is read twice.
    """
    walk = _Walk(store)
    walk.reach(presumed)
    before = {table: set(ids) for table, ids in walk.reached.items()}
    walk.reach(runs)
    if with_judgements:
        walk.reach_judgements()
    walk.reach(others)
    return ReachedIds(
        {table: ids - before.get(table, set()) for table, ids in walk.reached.items()}
    )


class _Walk:
    def __init__(self, store: Store) -> None:
        self._store = store
        self.reached: dict[str, set[bytes]] = {table: set() for table in COPIED_TABLES}
        self._seen: set[bytes] = set()
        self._subjects: set[str] = set()
        """Of judgements of several answers together."""

    def reach(self, ids: Iterable[bytes]) -> None:
        """Reach these rows and, table by table, all that they refer to.

        What a row refers to is in its own table or an earlier one of `COPIED_TABLES`.
        """
        pending = set(ids) - self._seen
        self._seen |= pending
        for table in reversed(COPIED_TABLES):
            fresh = pending
            while fresh:
                found = self._store.find_present(table, fresh)
                pending -= found
                self.reached[table] |= found
                fresh = set()
                if table not in _WITHOUT_REFERENCES:
                    for target in self._targets(table, found):
                        if target not in self._seen:
                            self._seen.add(target)
                            fresh.add(target)
                pending |= fresh

    def reach_judgements(self) -> None:
        """Reach the judgements of all answers that were reached."""
        subjects = {id.hex() for id in self.reached[SESSIONS.name]} | self._subjects
        for batch in _batches(sorted(subjects)):
            self.reach(self._store.find_judgement_ids(batch))

    def _targets(self, table: str, ids: set[bytes]) -> Iterator[bytes]:
        """Yield what the rows of a table refer to."""
        for record in iterate_records(self._store, {table: b"".join(sorted(ids))}):
            content = decode_content(table, record.id, record.content)
            kind = content["kind"]
            self._subjects.update(iterate_joint_subjects(kind, content))
            yield from map(bytes.fromhex, iterate_references(kind, content))


def _batches(ids: list[str]) -> Iterator[list[str]]:
    for start in range(0, len(ids), _AT_ONCE):
        yield ids[start : start + _AT_ONCE]
