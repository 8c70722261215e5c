"""Puts the small packs of many pushes together, and lists them in one index.

Pushes are put together only with those of the same writer, so that who trusts whom stays as it is.
Records are copied as they are, after they were checked. The same pushes make the same packs and
the same index, so that an interrupted compaction is completed by the next one, and two at once do
no harm.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from evalstore.remotes.indexes.index_writer import IndexWriter, Sign, Written
from evalstore.remotes.indexes.indexes import (
    MOST_PACKS,
    MOST_RECORDS,
    MOST_REPLACED,
    MOST_TIMES,
    IndexedPack,
    IndexedRecord,
    IndexHeader,
    write_index,
)
from evalstore.remotes.packs.checked_packs import read_checked
from evalstore.remotes.packs.packs import TABLE_NAMES, PackEntry, is_small
from evalstore.remotes.temporary_tables import open_tables
from evalstore.store.records import COPIED_TABLES

if TYPE_CHECKING:
    import sqlite3

    from evalstore.remotes.indexes.index_cache import IndexCache
    from evalstore.remotes.places.remote_files import RemoteFiles
    from evalstore.remotes.progress import CopyListener
    from evalstore.remotes.survey import PushGroup, RemoteSurvey, SurveyedIndex

_SCHEMA = """
CREATE TABLE entries (
    kind INTEGER NOT NULL, id BLOB NOT NULL, lookup BLOB NOT NULL, pack INTEGER NOT NULL,
    start INTEGER NOT NULL, length INTEGER NOT NULL, pushed INTEGER NOT NULL,
    PRIMARY KEY (kind, id)
) WITHOUT ROWID;
CREATE TABLE rows (
    place INTEGER NOT NULL, id BLOB NOT NULL, kind INTEGER NOT NULL, lookup BLOB NOT NULL,
    pushed INTEGER NOT NULL, data BLOB NOT NULL, PRIMARY KEY (place, id)
);
"""
_PLACES = {name: place for place, name in enumerate(COPIED_TABLES)}
"""The order in which pushes write the rows of tables."""


class Compaction(NamedTuple):
    """Indexes of one group that one index will replace."""

    group: PushGroup
    indexes: Sequence[SurveyedIndex]
    created: int
    """The time of the new index, in microseconds since 1970."""

    @property
    def records(self) -> int:
        """Return how many records they list."""
        return sum(index.records for index in self.indexes)

    def packs(self) -> list[IndexedPack]:
        """Return their packs; large ones, which stay as they are, come first."""
        packs = {pack for index in self.indexes for pack in index.header.packs}
        return sorted(packs, key=lambda pack: (is_small(pack.size), pack.digest))

    def small_packs(self) -> list[IndexedPack]:
        """Return the packs that are rewritten."""
        return [pack for pack in self.packs() if is_small(pack.size)]


def choose_indexes(indexes: Iterable[SurveyedIndex]) -> list[list[SurveyedIndex]]:
    """Return which indexes of a group should be put together.

    The smallest ones are, as long as the next one has less than twice their records. So an index
    is rewritten only after as much has been added to it, and few indexes remain: the logarithm of
    the number of records.
    """
    waiting = sorted(
        (index for index in indexes if 2 * index.records <= MOST_RECORDS),
        key=lambda index: (index.records, index.name),
    )
    chosen, total = 0, 0
    for count, index in enumerate(waiting, start=1):
        if index.records < 2 * total:
            chosen = count
        total += index.records
    parts: list[list[SurveyedIndex]] = [[]]
    for index in waiting[:chosen]:
        if not _fits([*parts[-1], index]):
            parts.append([])
        parts[-1].append(index)
    return [part for part in parts if len(part) > 1]


def _fits(indexes: Sequence[SurveyedIndex]) -> bool:
    return (
        sum(index.records for index in indexes) <= MOST_RECORDS
        and sum(len(index.header.packs) for index in indexes) <= MOST_PACKS
        and sum(1 + len(index.header.replaces) for index in indexes) <= MOST_REPLACED
        and sum(len(index.header.times) or 1 for index in indexes) <= MOST_TIMES
    )


def plan_compactions(
    survey: RemoteSurvey, sign_time: Callable[[PushGroup, int], int | None]
) -> tuple[list[Compaction], int]:
    """Return what should be put together, and how many pushes only their writers can.

    `sign_time` returns the time of an index of a group that is signed here, which should be the
    one that is given; None if the signature would not be that of the group.
    """
    groups: dict[PushGroup, list[SurveyedIndex]] = {}
    left = 0
    for index in survey.find_living():
        group = survey.find_group(index.name)
        if group is not None:
            groups.setdefault(group, []).append(index)
    compactions: list[Compaction] = []
    for group, members in sorted(groups.items()):
        for part in choose_indexes(members):
            created: int | None = max(index.header.created for index in part)
            if group.is_signed:
                created = sign_time(group, created or 0)
            if created is None:
                left += len(part)
            else:
                compactions.append(Compaction(group, part, created))
    return compactions, left


class SignTime:
    """Finds the time at which a signature made here is one of a group; see `plan_compactions`."""

    def __init__(self, cache: IndexCache, sign: Sign | None, now: int) -> None:
        self._cache = cache
        self._sign = sign
        self._now = now
        self._writer: str | None = None
        self._is_known = False

    def __call__(self, group: PushGroup, created: int) -> int | None:
        """Return a time, in microseconds since 1970, or None."""
        if not self._is_known:
            self._writer, self._is_known = self._writer_at(self._now), True
        if self._writer != group.writer:
            return None
        # A key may be valid only since a later time.
        return created if self._writer_at(created) == group.writer else self._now

    def _writer_at(self, created: int) -> str | None:
        """Return who signs here, by the signature of an empty index, which is not kept."""
        if self._sign is None:
            return None
        header = IndexHeader("", created, ())
        data = write_index(header, ())
        decision = self._cache.rules.decide(data, header, self._sign(data))
        return None if decision.refusal else decision.writer


def write_compaction(
    files: RemoteFiles,
    cache: IndexCache,
    survey: RemoteSurvey,
    compaction: Compaction,
    listener: CopyListener,
    sign: Sign | None,
) -> Written:
    """Write the new packs, and then the index that replaces the others.

    Raises `RemoteError` for a pack that is missing or damaged; then no index was written.
    """
    older = {name for index in compaction.indexes for name in index.header.replaces}
    header = IndexHeader(
        compaction.group.named,
        compaction.created,
        (),
        sorted({index.name for index in compaction.indexes} | (older & survey.indexes.keys())),
    )
    writer = IndexWriter(
        files, cache, header, listener, sign if compaction.group.is_signed else None
    )
    packs = compaction.packs()
    with open_tables(_SCHEMA) as connection:
        _note_entries(connection, survey, compaction.indexes, packs)
        query = (
            "SELECT pack, kind, id, start, length, lookup, pushed FROM entries ORDER BY pack, start"
        )
        by_pack = itertools.groupby(connection.execute(query), key=lambda row: row[0])
        for number, rows in by_pack:
            pack = packs[number]
            records = [
                IndexedRecord(number, PackEntry(*row), key, pushed) for _, *row, key, pushed in rows
            ]
            if is_small(pack.size):
                _copy_pack(connection, files, pack, records)
            else:
                writer.list_pack(pack, records)
                listener.advance(len(records), 0)
        query = "SELECT kind, id, data, lookup, pushed FROM rows ORDER BY place, id"
        for row in connection.execute(query):
            writer.copy(*row)
    writer.finish_index()
    return writer.written


def _note_entries(
    connection: sqlite3.Connection,
    survey: RemoteSurvey,
    indexes: Sequence[SurveyedIndex],
    packs: Sequence[IndexedPack],
) -> None:
    """Note where each record is, in the first of these packs, and when it was pushed first."""
    numbers = {pack: number for number, pack in enumerate(packs)}
    statement = (
        "INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (kind, id) DO UPDATE SET "
        "lookup = iif(excluded.pack < pack, excluded.lookup, lookup), "
        "start = iif(excluded.pack < pack, excluded.start, start), "
        "length = iif(excluded.pack < pack, excluded.length, length), "
        "pack = min(excluded.pack, pack), pushed = min(excluded.pushed, pushed)"
    )
    for index in indexes:
        own = [numbers[pack] for pack in index.header.packs]
        created = index.header.created
        connection.executemany(
            statement,
            (
                (
                    *(entry.table, entry.id, key, own[pack], entry.offset, entry.length),
                    created if pushed is None else pushed,
                )
                for pack, entry, key, pushed in survey.read_records(index.name)
            ),
        )


def _copy_pack(
    connection: sqlite3.Connection,
    files: RemoteFiles,
    pack: IndexedPack,
    records: Iterable[IndexedRecord],
) -> None:
    """Take records from a pack, in the order in which pushes write them."""
    connection.executemany(
        "INSERT INTO rows VALUES (?, ?, ?, ?, ?, ?)",
        (
            (_place_of(entry.table), entry.id, entry.table, key, pushed, data)
            for (_, entry, key, pushed), data in read_checked(files, pack, records)
        ),
    )


def _place_of(table: int) -> int:
    """Return the place of a table; those of a newer program come last."""
    return _PLACES.get(TABLE_NAMES.get(table, ""), len(_PLACES) + table)
