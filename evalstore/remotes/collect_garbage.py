"""The clean-up of a remote: the one operation that deletes files of it.

Small packs are put together first. What is no longer needed is marked, and deleted by a later
clean-up after a time of grace, in which readers and writers that began before have ended. It may
be killed at any point, and run several times at once. An index is deleted only if living ones of
the same writer have all of its records, and a pack only if no index lists it, whatever marks say.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from evalstore.core.clock import now
from evalstore.remotes.indexes.indexes import IndexedRecord
from evalstore.remotes.packs.checked_packs import read_checked
from evalstore.remotes.packs.compaction import SignTime, plan_compactions, write_compaction
from evalstore.remotes.packs.packs import PackEntry
from evalstore.remotes.places.layout import RETIRED, SIGNATURE, pack_name, require_remote
from evalstore.remotes.places.remote_files import MissingFileError
from evalstore.remotes.retirement import Mark, read_marks, read_time, require_past, write_mark
from evalstore.remotes.survey import RemoteSurvey
from evalstore.remotes.temporary_tables import open_tables

if TYPE_CHECKING:
    import sqlite3

    from evalstore.remotes.indexes.index_cache import IndexCache
    from evalstore.remotes.indexes.index_writer import Sign
    from evalstore.remotes.places.remote_files import RemoteFiles
    from evalstore.remotes.progress import CopyListener


_ATTEMPTS = 3


@dataclass(slots=True)
class FileCounts:
    """Numbers of files of a remote."""

    indexes: int = 0
    packs: int = 0
    size: int = 0
    """Bytes of all these files."""

    def __bool__(self) -> bool:
        return bool(self.indexes or self.packs)


@dataclass(slots=True)
class Collected:
    """What a clean-up has done, or would do."""

    replaced: FileCounts = field(default_factory=FileCounts)
    """The indexes that were put together, and the packs that were rewritten."""
    written: FileCounts = field(default_factory=FileCounts)
    """What was written for them; nothing in a dry run."""
    deleted: FileCounts = field(default_factory=FileCounts)
    waiting: FileCounts = field(default_factory=FileCounts)
    """What is no longer needed, and not deleted yet."""
    others: int = 0
    """Indexes that should be put together, but only by those who have signed them."""


class GarbageCollection:
    """A clean-up of a remote. Every method raises `RemoteError`."""

    def __init__(
        self,
        files: RemoteFiles,
        cache: IndexCache,
        *,
        grace: int,
        sign: Sign | None,
        listener: CopyListener,
        dry_run: bool = False,
    ) -> None:
        """`grace` is in microseconds; with `dry_run`, nothing is written or deleted."""
        self._files = files
        self._cache = cache
        self._grace = grace
        self._sign = sign
        self._listener = listener
        self._dry_run = dry_run
        self.result = Collected()

    def run(self) -> Collected:
        """Put together, mark, and delete what was marked long enough ago."""
        require_remote(self._files)
        for _ in range(_ATTEMPTS - 1):
            with suppress(MissingFileError):  # another clean-up has deleted what this one reads
                return self._run()
        return self._run()

    def _run(self) -> Collected:
        if self._dry_run:  # what an interrupted try has found is found again
            self.result = Collected()
        self._survey = RemoteSurvey(self._files, self._cache.rules)
        self._time = self._read_time()
        require_past(self._files, self._survey.marks, self._time)
        self._forget_void_marks()
        self._put_together()
        if not self._dry_run:
            self._mark()
        self._delete()
        self._count_waiting()
        return self.result

    def _read_time(self) -> int:
        """Return the time of the remote, where the age of a file matters."""
        survey = self._survey
        unlisted = survey.packs.keys() - survey.find_listed_packs()
        is_needed = survey.marks or unlisted or survey.has_clock or survey.find_lone_parts()
        return read_time(self._files) if is_needed and not self._dry_run else now()

    def _forget_void_marks(self) -> None:
        """Delete the marks of indexes that nothing replaces: what replaced them was lost.

        When they are replaced again, they get a new mark, and the whole grace.
        """
        survey = self._survey
        replaced = {name for index in survey.indexes.values() for name in index.header.replaces}
        unreplaced = survey.indexes.keys() - replaced
        void = [mark for mark in survey.marks if not unreplaced.isdisjoint(mark.indexes)]
        for mark in void:
            survey.marks.remove(mark)
            if not self._dry_run:
                self._files.delete(mark.name)

    def _find_abandoned(self) -> set[str]:
        """Return the packs of interrupted pushes that are old, and in no mark yet."""
        survey = self._survey
        known = {digest for mark in survey.marks for digest in mark.packs}
        unlisted = survey.packs.keys() - survey.find_listed_packs() - known
        return {digest for digest in unlisted if self._is_old(survey.packs[digest].modified)}

    def _is_old(self, modified: int | None) -> bool:
        return modified is not None and self._time - modified >= self._grace

    def _put_together(self) -> None:
        compactions, self.result.others = plan_compactions(
            self._survey, SignTime(self._cache, self._sign, now())
        )
        self._listener.start(sum(compaction.records for compaction in compactions))
        replaced, written = self.result.replaced, self.result.written
        for compaction in compactions:
            if not self._dry_run:
                done = write_compaction(
                    self._files, self._cache, self._survey, compaction, self._listener, self._sign
                )
                written.indexes += len(done.indexes)
                written.packs += done.packs
                written.size += done.bytes_sent
            packs = compaction.small_packs()
            replaced.indexes += len(compaction.indexes)
            replaced.packs += len(packs)
            replaced.size += sum(
                index.size + self._survey.size_beside(index.name) for index in compaction.indexes
            )
            replaced.size += sum(pack.size for pack in packs)
        if compactions and not self._dry_run:
            self._survey.read_indexes()

    def _mark(self) -> None:
        """Mark what is no longer needed, and is in no mark yet."""
        survey = self._survey
        known = {name for mark in survey.marks for name in mark.indexes}
        indexes = survey.find_replaced() - known
        needed = {
            pack.digest
            for index in survey.indexes.values()
            if index.name not in indexes | known
            for pack in index.header.packs
        }
        packs = {pack.digest for name in indexes for pack in survey.indexes[name].header.packs}
        if indexes:
            write_mark(self._files, indexes, packs - needed)
        abandoned = self._find_abandoned()
        if abandoned:  # a push that goes on now must learn of it
            write_mark(self._files, (), abandoned)

    def _delete(self) -> None:
        for file in self._survey.find_lone_parts():  # left by a killed push or clean-up
            if self._is_old(file.modified):
                self.result.deleted.size += file.size
                if not self._dry_run:
                    self._files.delete(file.name)
        expired = [mark for mark in self._survey.marks if self._is_old(mark.modified)]
        if not expired:
            return
        for name in self._find_deletable(expired):
            self._delete_index(name)
        if not self._dry_run:
            self._survey.read_indexes()  # of pushes that have ended meanwhile
        listed = self._survey.find_listed_packs()
        for mark in expired:
            for digest in mark.packs:
                if digest in self._survey.packs and digest not in listed:
                    self._delete_pack(digest)
            gone = [name for name in mark.indexes if name not in self._survey.indexes]
            if not self._dry_run:
                for name in self._survey.signatures.keys() & gone:  # left by a killed clean-up
                    self._files.delete(name + SIGNATURE)
                if len(gone) == len(mark.indexes):
                    self._files.delete(mark.name)

    def _delete_index(self, name: str) -> None:
        index = self._survey.indexes.pop(name)
        self.result.deleted.indexes += 1
        self.result.deleted.size += index.size + self._survey.size_beside(name)
        if not self._dry_run:
            self._files.delete(name)
            if name in self._survey.signatures:
                self._files.delete(name + SIGNATURE)
            for file in self._survey.parts.get(name, ()):
                self._files.delete(file.name)

    def _delete_pack(self, digest: str) -> None:
        self.result.deleted.packs += 1
        self.result.deleted.size += self._survey.packs.pop(digest).size
        if not self._dry_run:
            self._files.delete(pack_name(digest))

    def _find_deletable(self, marks: Iterable[Mark]) -> list[str]:
        """Return the marked indexes whose records are all listed by living ones of their group."""
        survey = self._survey
        replaced = survey.find_replaced()
        marked = {name for mark in marks for name in mark.indexes} & replaced
        groups = {survey.find_group(name) for name in marked}
        deletable: list[str] = []
        for group in groups:
            names = sorted(name for name in marked if survey.find_group(name) == group)
            living = [
                index.name
                for index in survey.find_living()
                if index.header.replaces and survey.find_group(index.name) == group
            ]
            deletable += find_covered(self._files, survey, names, living)
        return deletable

    def _count_waiting(self) -> None:
        """Count the packs that are marked, and the indexes that others replace."""
        survey, waiting = self._survey, self.result.waiting
        indexes = survey.find_replaced()
        marks = survey.marks
        if not self._dry_run:
            marks = read_marks(self._files, self._files.iterate(RETIRED))
        listed = {
            pack.digest
            for index in survey.indexes.values()
            if index.name not in indexes
            for pack in index.header.packs
        }
        packs = {digest for mark in marks for digest in mark.packs} - listed
        if self._dry_run:  # they would be marked
            packs |= self._find_abandoned()
        packs &= survey.packs.keys()
        waiting.indexes = len(indexes)
        waiting.packs = len(packs)
        waiting.size = sum(
            survey.indexes[name].size + survey.size_beside(name) for name in indexes
        ) + sum(survey.packs[digest].size for digest in packs)


# --- finds index files that can be deleted, as the remote has all of their records elsewhere


_SCHEMA = """
CREATE TABLE wanted (kind INTEGER, id BLOB, PRIMARY KEY (kind, id)) WITHOUT ROWID;
CREATE TABLE found (
    kind INTEGER NOT NULL, id BLOB NOT NULL, pack INTEGER NOT NULL, start INTEGER NOT NULL,
    length INTEGER NOT NULL, lookup BLOB NOT NULL, PRIMARY KEY (kind, id)
) WITHOUT ROWID;
"""


def find_covered(
    files: RemoteFiles, survey: RemoteSurvey, names: Sequence[str], living: Sequence[str]
) -> list[str]:
    """Return those of these indexes whose records are all listed by living ones.

    Every such record is read from the pack in which it should be, as an index may be wrong. Raises
    `RemoteError` for one that is damaged.
    """
    with open_tables(_SCHEMA) as connection:
        for name in names:
            statement = "INSERT OR IGNORE INTO wanted VALUES (?, ?)"
            connection.executemany(statement, _iterate_ids(survey, name))
        for name in living:
            _find(connection, files, survey, name)
        query = "SELECT 1 FROM wanted WHERE kind = ? AND id = ?"
        return [
            name
            for name in names
            if not any(
                connection.execute(query, id).fetchone() for id in _iterate_ids(survey, name)
            )
        ]


def _iterate_ids(survey: RemoteSurvey, name: str) -> Iterator[tuple[int, bytes]]:
    return ((entry.table, entry.id) for _, entry, *_ in survey.read_records(name))


def _find(
    connection: sqlite3.Connection, files: RemoteFiles, survey: RemoteSurvey, name: str
) -> None:
    """Check the wanted records that an index lists; they are wanted no longer."""
    is_wanted = "EXISTS (SELECT 1 FROM wanted WHERE kind = ?1 AND id = ?2)"
    connection.executemany(
        f"INSERT OR IGNORE INTO found SELECT ?1, ?2, ?3, ?4, ?5, ?6 WHERE {is_wanted}",
        (
            (entry.table, entry.id, pack, entry.offset, entry.length, key)
            for pack, entry, key, _ in survey.read_records(name)
        ),
    )
    query = "SELECT pack, kind, id, start, length, lookup FROM found ORDER BY pack, start"
    rows = connection.execute(query).fetchall()
    for pack, group in itertools.groupby(rows, key=lambda row: row[0]):
        records = [IndexedRecord(pack, PackEntry(*row), key) for _, *row, key in group]
        connection.executemany(
            "DELETE FROM wanted WHERE kind = ? AND id = ?",
            (
                (record.entry.table, record.entry.id)
                for record, _ in read_checked(
                    files, survey.indexes[name].header.packs[pack], records
                )
            ),
        )
    connection.execute("DELETE FROM found")
