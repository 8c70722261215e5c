"""The clean-up of a remote: the one operation that deletes files of it.

Small packs are put together first. What is no longer needed is marked, and deleted by a later
clean-up after a time of grace, in which readers and writers that began before have ended. It may
be killed at any point, and run several times at once. An index is deleted only if living ones of
the same writer have all of its records, and a pack only if no index lists it, whatever marks say.
"""

from __future__ import annotations

import itertools
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import NamedTuple

from evalstore.core.clock import now
from evalstore.core.errors import RemoteError
from evalstore.remotes.acceptance import LARGEST_SIGNATURE, Acceptance
from evalstore.remotes.index_cache import IndexCache
from evalstore.remotes.layout import (
    CLOCK,
    INDEXES,
    PACKS,
    RETIRED,
    SIGNATURE,
    ListedFile,
    Mark,
    MissingFileError,
    RemoteFiles,
    UnreadableFileError,
    digest_of_index,
    digest_of_pack,
    index_beside,
    pack_name,
    read_marks,
    read_time,
    require_past,
    require_remote,
    sha256,
    write_mark,
)
from evalstore.remotes.pack_reader import check_records, read_pack
from evalstore.remotes.packs import (
    LARGEST_INDEX,
    MOST_PACKS,
    MOST_RECORDS,
    MOST_REPLACED,
    MOST_TIMES,
    TABLE_NAMES,
    DamagedIndexError,
    IndexedPack,
    IndexedRecord,
    IndexHeader,
    PackEntry,
    is_small,
    read_index,
    write_index,
)
from evalstore.remotes.upload import IndexWriter, Sign, Written
from evalstore.store.records import COPIED_TABLES, CheckedRecord, CopyListener
from evalstore.store.sqlite.connection import open_tables

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
        is_needed = survey.marks or unlisted or survey.has_clock or survey.find_lone()
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
        compactions, self.result.others = plan_compactions(self._survey, self._cache, self._sign)
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
            packs = [pack for pack in compaction.packs() if is_small(pack.size)]
            replaced.indexes += len(compaction.indexes)
            replaced.packs += len(packs)
            replaced.size += sum(self._survey.size_of(index.name) for index in compaction.indexes)
            replaced.size += sum(pack.size for pack in packs)
        if compactions and not self._dry_run:
            self._survey.read_indexes()

    def _mark(self) -> None:
        """Mark what is no longer needed, and is in no mark yet."""
        survey = self._survey
        known = {name for mark in survey.marks for name in mark.indexes}
        indexes = survey.find_replaced() - known
        needed = survey.find_listed_packs(without=indexes | known)
        packs = {pack.digest for name in indexes for pack in survey.indexes[name].header.packs}
        if indexes:
            write_mark(self._files, indexes, packs - needed)
        abandoned = self._find_abandoned()
        if abandoned:  # a push that goes on now must learn of it
            write_mark(self._files, (), abandoned)

    def _delete(self) -> None:
        for file in self._survey.find_lone():  # left by a killed push or clean-up
            if self._is_old(file.modified):
                self.result.deleted.size += file.size
                if not self._dry_run:
                    self._files.delete(file.name)
        expired = [mark for mark in self._survey.marks if self._is_old(mark.modified)]
        if not expired:
            return
        for name in self._find_deletable(expired):
            self.result.deleted.indexes += 1
            self.result.deleted.size += self._survey.size_of(name)
            del self._survey.indexes[name]
            if not self._dry_run:
                self._files.delete(name)
                for file in self._survey.beside.get(name, ()):
                    self._files.delete(file.name)
        if not self._dry_run:
            self._survey.read_indexes()  # of pushes that have ended meanwhile
        listed = self._survey.find_listed_packs()
        for mark in expired:
            for digest in mark.packs:
                if digest in self._survey.packs and digest not in listed:
                    self.result.deleted.packs += 1
                    self.result.deleted.size += self._survey.packs.pop(digest).size
                    if not self._dry_run:
                        self._files.delete(pack_name(digest))
            gone = [name for name in mark.indexes if name not in self._survey.indexes]
            if not self._dry_run and len(gone) == len(mark.indexes):
                self._files.delete(mark.name)

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
        packs = {digest for mark in marks for digest in mark.packs}
        packs -= survey.find_listed_packs(without=indexes)
        if self._dry_run:  # they would be marked
            packs |= self._find_abandoned()
        packs &= survey.packs.keys()
        waiting.indexes = len(indexes)
        waiting.packs = len(packs)
        waiting.size = sum(map(survey.size_of, indexes))
        waiting.size += sum(survey.packs[digest].size for digest in packs)


# --- what a clean-up must know of a remote: every index file, pack and mark


class PushGroup(NamedTuple):
    """Pushes that count for the same people, so that one index may replace them."""

    writer: str
    """Who has written them, as it is verified; without signatures, as they say themselves."""
    named: str
    """Who has written them, as they say themselves."""
    is_signed: bool


class SurveyedIndex(NamedTuple):
    """An index file of a remote."""

    name: str
    size: int
    """Bytes."""
    header: IndexHeader

    @property
    def records(self) -> int:
        """Return how many records it lists."""
        return self.header.records


class RemoteSurvey:
    """What a remote has. Reading raises `RemoteError`, also for any index that is damaged."""

    def __init__(self, files: RemoteFiles, rules: Acceptance) -> None:
        self._files = files
        self._rules = rules
        self._groups: dict[str, PushGroup | None] = {}
        # Packs first: of a push that ends meanwhile, the index is seen.
        packs = ((digest_of_pack(file.name), file) for file in files.iterate(PACKS))
        self.packs: dict[str, ListedFile] = {digest: file for digest, file in packs if digest}
        retired = list(files.iterate(RETIRED))
        self.marks: list[Mark] = read_marks(files, retired)
        self.has_clock = any(file.name == CLOCK for file in retired)
        """Whether a clean-up was killed while it read the time."""
        self.indexes: dict[str, SurveyedIndex] = {}
        self.beside: dict[str, list[ListedFile]] = {}
        """The files that belong to indexes, by the names of these, which may be missing."""
        self.read_indexes()

    def read_indexes(self) -> None:
        """Read the index files that are new, and forget those that are gone."""
        self.beside, names = {}, list[str]()
        for file in self._files.iterate(INDEXES):
            if index := index_beside(file.name):
                self.beside.setdefault(index, []).append(file)
            elif digest_of_index(file.name):
                names.append(file.name)
        self.indexes = {name: self.indexes[name] for name in names if name in self.indexes}
        for name in names:
            if name not in self.indexes:
                try:
                    data = self._read(name)
                except MissingFileError:
                    continue  # another clean-up has deleted it
                with self._parsing(name):
                    self.indexes[name] = SurveyedIndex(name, len(data), read_index(data)[0])

    def _read(self, name: str) -> bytes:
        data = self._files.read(name, LARGEST_INDEX)
        if sha256(data) != digest_of_index(name):
            raise self._damaged(name, "it has changed since it was written")
        return data

    @contextmanager
    def _parsing(self, name: str) -> Iterator[None]:
        try:
            yield
        except DamagedIndexError as error:
            raise self._damaged(name, str(error)) from error

    def read_records(self, name: str) -> Iterator[IndexedRecord]:
        """Yield the records of an index."""
        with self._parsing(name):
            yield from read_index(self._read(name))[1]

    def _damaged(self, name: str, problem: str) -> RemoteError:
        return RemoteError(
            f"the remote '{self._files.address}' is damaged: '{name}': {problem}",
            hint="'evalstore fsck --remote' lists what is wrong; nothing was changed",
        )

    def find_group(self, name: str) -> PushGroup | None:
        """Return the group of an index; None where that cannot be verified, or it does not count.

        A signature means nothing without a file of allowed signers: then its index has no group.
        """
        if name not in self._groups:
            self._groups[name] = self._verify(name)
        return self._groups[name]

    def _verify(self, name: str) -> PushGroup | None:
        header, signature = self.indexes[name].header, None
        is_signed = any(file.name == name + SIGNATURE for file in self.beside.get(name, ()))
        if is_signed != self._rules.requires_signatures:
            return None
        data = b""
        if is_signed:
            data = self._read(name)
            try:
                signature = self._files.read(name + SIGNATURE, LARGEST_SIGNATURE)
            except (MissingFileError, UnreadableFileError):
                return None
        decision = self._rules.decide(data, header, signature)
        if decision.refusal is not None:
            return None
        return PushGroup(decision.writer, header.writer, is_signed)

    def find_lone(self) -> list[ListedFile]:
        """Return the files that belong to indexes that are not there, or no longer."""
        lone = sorted(self.beside.keys() - self.indexes.keys())
        return [file for name in lone for file in self.beside[name]]

    def size_of(self, name: str) -> int:
        """Return the bytes of an index and of the files that belong to it."""
        beside = sum(file.size for file in self.beside.get(name, ()))
        return self.indexes[name].size + beside

    def find_replaced(self) -> set[str]:
        """Return the indexes that others of their group replace, as these say themselves."""
        return {
            name
            for index in self.indexes.values()
            if index.header.replaces and (group := self.find_group(index.name))
            for name in index.header.replaces
            if name in self.indexes and self.find_group(name) == group
        }

    def find_living(self) -> list[SurveyedIndex]:
        """Return the indexes that no other replaces, by name."""
        replaced = self.find_replaced()
        return [index for name, index in sorted(self.indexes.items()) if name not in replaced]

    def find_listed_packs(self, without: Collection[str] = ()) -> set[str]:
        """Return the SHA-256 of the packs that any index lists, `without` these."""
        indexes = [index for name, index in self.indexes.items() if name not in without]
        return {pack.digest for index in indexes for pack in index.header.packs}


# --- the small packs of many pushes in one, and one index in place of theirs
#
# Pushes are put together only with those of the same writer, so that who trusts whom stays as it
# is. Records are copied as they are, after they were checked. The same pushes make the same packs
# and the same index, so that an interrupted clean-up is completed by the next one.


_ENTRIES = """
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
    survey: RemoteSurvey, cache: IndexCache, sign: Sign | None
) -> tuple[list[Compaction], int]:
    """Return what should be put together, and how many pushes only their writers can."""
    groups: dict[PushGroup, list[SurveyedIndex]] = {}
    left = 0
    for index in survey.find_living():
        group = survey.find_group(index.name)
        if group is not None:
            groups.setdefault(group, []).append(index)
    time = now()
    signer = _find_signer(cache, sign, time) if any(each.is_signed for each in groups) else None
    compactions: list[Compaction] = []
    for group, members in sorted(groups.items()):
        for part in choose_indexes(members):
            if group.is_signed and signer != group.writer:
                left += len(part)
                continue
            # A key signs for today: it may not have been valid at the time of the pushes.
            created = time if group.is_signed else max(index.header.created for index in part)
            compactions.append(Compaction(group, part, created))
    return compactions, left


def _find_signer(cache: IndexCache, sign: Sign | None, time: int) -> str | None:
    """Return who signs here, by the signature of an empty index, which is not kept."""
    if sign is None:
        return None
    header = IndexHeader("", time, ())
    data = write_index(header, ())
    decision = cache.rules.decide(data, header, sign(data))
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
    with open_tables(_ENTRIES) as connection:
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
    """Take records from a pack, in the order in which pushes write them; unknown tables last."""
    connection.executemany(
        "INSERT INTO rows VALUES (?, ?, ?, ?, ?, ?)",
        (
            (
                _PLACES.get(TABLE_NAMES.get(entry.table, ""), len(_PLACES) + entry.table),
                *(entry.id, entry.table, key, pushed, data),
            )
            for (_, entry, key, pushed), data, _ in _read_checked(files, pack, records)
        ),
    )


def _read_checked(
    files: RemoteFiles, pack: IndexedPack, records: Iterable[IndexedRecord]
) -> Iterator[tuple[IndexedRecord, bytes, CheckedRecord | None]]:
    """Yield records of a pack with their bytes; raises as `check_records`."""
    content = read_pack(files, pack, _left_alone)
    return check_records(files, pack, content, records, _left_alone)


def _left_alone(_pack: IndexedPack) -> str:
    return "'evalstore fsck --remote' lists what is wrong; nothing was deleted"


# --- index files that can be deleted, as the remote has all of their records elsewhere


_COVERAGE = """
CREATE TABLE wanted (kind INTEGER, id BLOB, name TEXT, PRIMARY KEY (kind, id, name)) WITHOUT ROWID;
"""


def find_covered(
    files: RemoteFiles, survey: RemoteSurvey, names: Sequence[str], living: Sequence[str]
) -> list[str]:
    """Return those of these indexes whose records are all listed by living ones.

    Every such record is read from the pack in which it should be, as an index may be wrong. Raises
    `RemoteError` for one that is damaged.
    """
    with open_tables(_COVERAGE) as connection:
        for name in names:
            connection.executemany(
                "INSERT OR IGNORE INTO wanted VALUES (?, ?, ?)",
                ((entry.table, entry.id, name) for _, entry, *_ in survey.read_records(name)),
            )
        for name in living:
            _check_wanted(connection, files, survey, name)
        lacking = {name for (name,) in connection.execute("SELECT DISTINCT name FROM wanted")}
    return [name for name in names if name not in lacking]


def _check_wanted(
    connection: sqlite3.Connection, files: RemoteFiles, survey: RemoteSurvey, name: str
) -> None:
    """Check the wanted records that an index lists; they are wanted no longer."""
    query = "SELECT 1 FROM wanted WHERE kind = ? AND id = ?"
    by_pack: dict[int, list[IndexedRecord]] = {}
    for record in survey.read_records(name):
        if connection.execute(query, (record.entry.table, record.entry.id)).fetchone():
            by_pack.setdefault(record.pack, []).append(record)
    for pack, records in by_pack.items():
        checked = _read_checked(files, survey.indexes[name].header.packs[pack], records)
        connection.executemany(
            "DELETE FROM wanted WHERE kind = ? AND id = ?",
            ((record.entry.table, record.entry.id) for record, *_ in checked),
        )
