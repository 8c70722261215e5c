"""The clean-up of a remote: the one operation that deletes files of it.

Small packs are put together first. What is replaced is deleted by a later clean-up after a time of
grace, in which readers and writers that began before have ended. An index is unneeded since the
file was written that replaces it; a pack is, once no index lists it. A clean-up may be killed at
any point, and run several times at once. An index is deleted only if living ones of the same writer
have all of its records.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

from evalstore.core.clock import now
from evalstore.remotes.acceptance import LARGEST_SIGNATURE, Acceptance
from evalstore.remotes.download import PackReader
from evalstore.remotes.index_cache import IndexCache
from evalstore.remotes.layout import (
    CLOCK,
    GRACE,
    INDEXES,
    PACKS,
    RETIRED,
    SIGNATURE,
    ListedFile,
    MissingFileError,
    RemoteFiles,
    UnreadableFileError,
    digest_of_index,
    digest_of_pack,
    index_beside,
    pack_name,
    read_time,
    require_remote,
)
from evalstore.remotes.packs import (
    MOST_PACKS,
    MOST_RECORDS,
    MOST_REPLACED,
    MOST_TIMES,
    TABLE_NAMES,
    IndexedRecord,
    IndexHeader,
    explaining_damage,
    is_small,
    load_index,
    read_index,
    write_index,
)
from evalstore.remotes.upload import IndexWriter, Sign, Written
from evalstore.store.records import COPIED_TABLES, CopyListener
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


def collect_garbage(
    files: RemoteFiles,
    cache: IndexCache,
    *,
    grace: int,
    sign: Sign | None,
    listener: CopyListener,
    dry_run: bool = False,
) -> Collected:
    """Put small pushes together, and delete what has been unneeded for so long.

    `grace` is in microseconds; with `dry_run`, nothing is written or deleted. Raises `RemoteError`.
    """
    require_remote(files)
    done = Collected()
    for _ in range(_ATTEMPTS - 1):
        with suppress(MissingFileError):  # another clean-up has deleted what this one reads
            return _Collection(files, cache, grace, sign, listener, dry_run, done).run()
        if dry_run:  # what an interrupted try has found is found again
            done = Collected()
    return _Collection(files, cache, grace, sign, listener, dry_run, done).run()


@dataclass
class _Collection:
    files: RemoteFiles
    cache: IndexCache
    grace: int
    sign: Sign | None
    listener: CopyListener
    dry_run: bool
    result: Collected

    def __post_init__(self) -> None:
        self.survey = RemoteSurvey(self.files, self.cache.rules)
        self.time = now() if self.dry_run else read_time(self.files)

    def run(self) -> Collected:
        self._put_together()
        self._delete()
        self._count_waiting()
        return self.result

    def _is_old(self, modified: int | None, least: int = 0) -> bool:
        return modified is not None and self.time - modified >= max(self.grace, least)

    def _put_together(self) -> None:
        compactions, self.result.others = plan_compactions(self.survey, self.cache, self.sign)
        self.listener.start(
            sum(index.header.records for each in compactions for index in each.indexes)
        )
        replaced, written = self.result.replaced, self.result.written
        for compaction in compactions:
            if not self.dry_run:
                done = write_compaction(
                    self.files, self.cache, self.survey, compaction, self.listener, self.sign
                )
                written.indexes += len(done.indexes)
                written.packs += done.packs
                written.size += done.bytes_sent
            packs = {pack for index in compaction.indexes for pack in index.header.packs}
            small = [pack for pack in packs if is_small(pack.size)]
            replaced.indexes += len(compaction.indexes)
            replaced.packs += len(small)
            replaced.size += sum(self.survey.size_of(index.name) for index in compaction.indexes)
            replaced.size += sum(pack.size for pack in small)
        if compactions and not self.dry_run:
            self.survey.read_indexes()

    def _delete(self) -> None:
        survey, deleted = self.survey, self.result.deleted
        for file in survey.find_lone():  # left by a killed push or clean-up
            if self._is_old(file.modified):
                deleted.size += file.size
                self._remove(file.name)
        replaced = survey.find_replaced()
        unneeded = set[str]()
        for name in self._find_covered([name for name in replaced if self._is_old(replaced[name])]):
            deleted.indexes += 1
            deleted.size += survey.size_of(name)
            unneeded |= {pack.digest for pack in survey.indexes.pop(name).header.packs}
            self._remove(name)
            for file in survey.beside.get(name, ()):
                self._remove(file.name)
        if not self.dry_run:
            survey.read_indexes()  # of pushes that have ended meanwhile
        listed = survey.find_listed_packs()
        for digest, file in list(survey.packs.items()):
            # A push writes packs before the index that lists them.
            least = 0 if digest in unneeded else GRACE * 1_000_000
            if digest not in listed and self._is_old(file.modified, least):
                deleted.packs += 1
                deleted.size += survey.packs.pop(digest).size
                self._remove(pack_name(digest))

    def _remove(self, name: str) -> None:
        if not self.dry_run:
            self.files.delete(name)

    def _find_covered(self, names: Collection[str]) -> Iterator[str]:
        """Yield those of these indexes whose records are all listed by living ones of their group.

        Every such record is read from the pack in which it should be, as an index may be wrong.
        Raises `RemoteError` for one that is damaged.
        """
        survey = self.survey
        groups = defaultdict[PushGroup | None, list[str]](list)
        for name in sorted(names):
            groups[survey.find_group(name)].append(name)
        for group, members in groups.items():
            with IndexCache.open(None, self.files.address) as living:
                for index in survey.find_living():
                    if index.header.replaces and survey.find_group(index.name) == group:
                        survey.add_to(living, index)
                reader = PackReader(self.files, living, CopyListener())
                for name in members:
                    ids = defaultdict[int, set[bytes]](set)
                    for record in survey.read_records(name):
                        ids[record.entry.table].add(record.entry.id)
                    places = [
                        place
                        for table in ids
                        for place in living.find_places(table, sorted(ids[table]))
                    ]
                    places.sort(key=lambda place: (place.pack, place.entry.offset))
                    if sum(1 for _ in reader.read_places(places)) == sum(map(len, ids.values())):
                        yield name

    def _count_waiting(self) -> None:
        """Count the indexes that others replace, and the packs that only these list."""
        survey, waiting = self.survey, self.result.waiting
        replaced = survey.find_replaced()
        packs = {pack.digest for name in replaced for pack in survey.indexes[name].header.packs}
        packs &= survey.packs.keys() - survey.find_listed_packs(without=replaced)
        waiting.indexes = len(replaced)
        waiting.packs = len(packs)
        waiting.size = sum(map(survey.size_of, replaced))
        waiting.size += sum(survey.packs[digest].size for digest in packs)


# --- what a clean-up must know of a remote: every index file and pack


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
    modified: int | None = None
    """As in `ListedFile`."""


class RemoteSurvey:
    """What a remote has. Reading raises `RemoteError`, also for any index that is damaged."""

    def __init__(self, files: RemoteFiles, rules: Acceptance) -> None:
        self._files = files
        self._rules = rules
        self._groups: dict[str, PushGroup | None] = {}
        # Packs first: of a push that ends meanwhile, the index is seen.
        packs = ((digest_of_pack(file.name), file) for file in files.iterate(PACKS))
        self.packs: dict[str, ListedFile] = {digest: file for digest, file in packs if digest}
        self.indexes: dict[str, SurveyedIndex] = {}
        self.beside: dict[str, list[ListedFile]] = {}
        """The files that belong to indexes, by the names of these, which may be missing."""
        self.read_indexes()

    def read_indexes(self) -> None:
        """Read the index files that are new, and forget those that are gone."""
        self.beside, found = {}, dict[str, SurveyedIndex]()
        for file in self._files.iterate(INDEXES):
            name = file.name
            if index := index_beside(name):
                self.beside.setdefault(index, []).append(file)
            elif name in self.indexes:
                found[name] = self.indexes[name]
            elif digest_of_index(name):
                with (
                    suppress(MissingFileError),
                    explaining_damage(self._files, name),
                ):  # just deleted by another
                    data = self.read(name)
                    found[name] = SurveyedIndex(name, len(data), read_index(data)[0], file.modified)
        self.indexes = found

    def read(self, name: str) -> bytes:
        """Return the bytes of an index file."""
        with explaining_damage(self._files, name):
            return load_index(self._files, name)

    def read_records(self, name: str) -> Iterator[IndexedRecord]:
        """Yield the records of an index."""
        with explaining_damage(self._files, name):
            yield from read_index(self.read(name))[1]

    def add_to(self, cache: IndexCache, index: SurveyedIndex) -> None:
        """Add the records of an index to a cache."""
        with explaining_damage(self._files, index.name):
            cache.add(index.name, self.read(index.name), index.header.writer)

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
            data = self.read(name)
            try:
                signature = self._files.read(name + SIGNATURE, LARGEST_SIGNATURE)
            except (MissingFileError, UnreadableFileError):
                return None
        decision = self._rules.decide(data, header, signature)
        if decision.refusal is not None:
            return None
        return PushGroup(decision.writer, header.writer, is_signed)

    def find_lone(self) -> list[ListedFile]:
        """Return the files that belong to indexes that are not there, and those of `RETIRED`."""
        lone = sorted(self.beside.keys() - self.indexes.keys())
        retired = [file for file in self._files.iterate(RETIRED) if file.name != CLOCK]
        return [*(file for name in lone for file in self.beside[name]), *retired]

    def size_of(self, name: str) -> int:
        """Return the bytes of an index and of the files that belong to it."""
        beside = sum(file.size for file in self.beside.get(name, ()))
        return self.indexes[name].size + beside

    def find_replaced(self) -> dict[str, int | None]:
        """Return the indexes that others of their group replace, as these say themselves.

        With each is the time since which one is there that replaces it.
        """
        replaced: dict[str, int | None] = {}
        for index in self.indexes.values():
            group = self.find_group(index.name) if index.header.replaces else None
            for name in index.header.replaces if group else ():
                if name in self.indexes and self.find_group(name) == group:
                    times = (index.modified, replaced.get(name))
                    replaced[name] = min((time for time in times if time is not None), default=None)
        return replaced

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


_ROWS = """
CREATE TABLE rows (
    place INTEGER NOT NULL, kind INTEGER NOT NULL, id BLOB NOT NULL, data BLOB NOT NULL,
    lookup BLOB NOT NULL, pushed INTEGER NOT NULL, PRIMARY KEY (place, id)
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


def choose_indexes(indexes: Iterable[SurveyedIndex]) -> list[list[SurveyedIndex]]:
    """Return which indexes of a group should be put together.

    The smallest ones are, as long as the next one has less than twice their records. So an index
    is rewritten only after as much has been added to it, and few indexes remain: the logarithm of
    the number of records.
    """
    waiting = sorted(
        (index for index in indexes if 2 * index.header.records <= MOST_RECORDS),
        key=lambda index: (index.header.records, index.name),
    )
    chosen, total = 0, 0
    for count, index in enumerate(waiting, start=1):
        if index.header.records < 2 * total:
            chosen = count
        total += index.header.records
    parts: list[list[SurveyedIndex]] = [[]]
    for index in waiting[:chosen]:
        if not _fits([*parts[-1], index]):
            parts.append([])
        parts[-1].append(index)
    return [part for part in parts if len(part) > 1]


def _fits(indexes: Sequence[SurveyedIndex]) -> bool:
    return (
        sum(index.header.records for index in indexes) <= MOST_RECORDS
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
    with IndexCache.open(None, files.address) as merged, open_tables(_ROWS) as connection:
        for index in sorted(compaction.indexes, key=lambda index: (index.header.created, index)):
            survey.add_to(merged, index)
        reader = PackReader(files, merged, CopyListener())
        for pack, records in merged.iterate_packs():
            if not is_small(pack.size):
                writer.list_pack(pack, records)
                listener.advance(len(records), 0)
                continue
            rows = (
                (place, table, record.entry.id, data, *record[2:])
                for record, data, _ in reader.read_places(records)
                for table in [record.entry.table]  # those of unknown tables are last
                for place in [_PLACES.get(TABLE_NAMES.get(table, ""), len(_PLACES) + table)]
            )
            connection.executemany("INSERT INTO rows VALUES (?, ?, ?, ?, ?, ?)", rows)
        if reader.missing_packs:
            raise MissingFileError(
                f"the remote '{files.address}' has no file '{pack_name(min(reader.missing_packs))}'"
            )
        query = "SELECT kind, id, data, lookup, pushed FROM rows ORDER BY place, id"
        for row in connection.execute(query):
            writer.copy(*row)
    writer.finish_index()
    return writer.written
