"""The command `fsck`: computes every id again, in the store or in a remote."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from evalstore.core.batches import in_batches
from evalstore.core.clock import iso
from evalstore.core.errors import ExcessiveError, NewerError, StoreError, StoreUnreachableError
from evalstore.core.runs import Run, restore_run
from evalstore.core.values import Json
from evalstore.exchange.sync.remotes import is_place, locate_remote
from evalstore.files.access import normal_path
from evalstore.planning.open_project import open_store, open_workspace
from evalstore.planning.options import Location
from evalstore.planning.settled_parts import CACHE
from evalstore.remotes.bundle_files import BundleFiles
from evalstore.remotes.download import RemoteCheck, check_remote
from evalstore.store.contents import all_as_bytes, as_bytes, kinds_of, not_readable
from evalstore.store.driver import Connection
from evalstore.store.location import is_url
from evalstore.store.records import CopyListener, StoredRecord, check_record
from evalstore.store.rows.row_tables import (
    CASE_NAMES,
    OF_KINDS,
    ROW_TABLES,
    ROWS_OF,
    build_rows,
    fill,
    iterate_contents,
)
from evalstore.store.schema.table_definitions import (
    EVENTS,
    RUN_SHARES,
    RUNNERS,
    SHARED_RUNS,
    TABLES,
    VERSIONS,
    TableColumns,
)
from evalstore.store.store import Store
from evalstore.store.trees.tree_nodes import count_cases, find_excessive


@dataclass(frozen=True, slots=True)
class FsckReport:
    """The result of `fsck`."""

    checked: int
    problems: list[Damage]
    removed: Mapping[str, int] = field(default_factory=dict)
    """How many rows were removed, by kind."""


def fsck(location: Location, *, repair: bool = False) -> FsckReport:
    """Check the whole store; with `repair`, remove before what can no longer be read."""
    removed: Mapping[str, int] = {}
    if repair:
        with open_store(location) as store:
            removed = repair_store(store)
        if removed:
            (open_workspace(location).private / CACHE).unlink(missing_ok=True)
    with open_store(location, inspect=True) as store:
        return FsckReport(*check_store(store), removed)


@dataclass(frozen=True, slots=True)
class BundleCheck:
    """The result of `fsck --remote` of a bundle."""

    file: str
    writer: str
    """Who has written it; not verified."""
    created: str
    """ISO 8601, by the clock of the writer."""
    presumes: Sequence[str]
    check: RemoteCheck = field(metadata={"json_inline": True})


@dataclass(frozen=True, slots=True)
class RemoteFsckReport:
    """The result of `fsck --remote`."""

    remote: str
    address: str
    check: RemoteCheck = field(metadata={"json_inline": True})


def fsck_remote(
    location: Location, name: str | None, listener: CopyListener | None = None
) -> RemoteFsckReport | BundleCheck:
    """Check all files of a remote, or a bundle; raises `EvalstoreError` if it cannot be read."""
    if name is not None and not is_url(name) and is_place(location, name):
        return verify_bundle(location.directory, Path(name), listener=listener)
    name, files = locate_remote(location, name)
    check = check_remote(files, listener or CopyListener())
    return RemoteFsckReport(name, files.address, check)


def verify_bundle(
    directory: Path, file: Path, *, listener: CopyListener | None = None
) -> BundleCheck:
    """Check a bundle without a workspace and a store; raises `RemoteError` if it cannot be read.

    Rows may refer to rows of the runs that it presumes, which are not looked for.
    """
    with BundleFiles.open(normal_path(directory, file)) as files:
        description = files.description
        check = check_remote(
            files, listener or CopyListener(), is_partial=bool(description.presumes)
        )
    return BundleCheck(
        str(file), description.writer, iso(description.created), description.presumes, check
    )


_REMOVABLE = {
    kind: {**VERSIONS, **EVENTS}[kind]
    for kind in ("judgement", "cases", "results", "tree", "sources", "run")
}
"""The tables of what a repair removes, by kind: a run makes it again from what is left."""
_IN_PROGRESS = (SHARED_RUNS.name, RUN_SHARES.name, RUNNERS.name)
_LONGEST = 500
"""The most characters of an id and a message: damaged values can be long."""


class Damage(NamedTuple):
    """A problem in the store."""

    kind: str
    id: str
    message: str


def check_store(store: Store) -> tuple[int, list[Damage]]:
    """Return the number of checked rows, and all problems."""
    check = Check(store)
    return check.checked, [
        # A damaged text may have bytes that are not UTF-8.
        Damage(*(text[:_LONGEST].encode("utf-8", "backslashreplace").decode() for text in damage))
        for damage in check.damages
    ]


def repair_store(store: Store) -> Mapping[str, int]:
    """Remove what can no longer be read; returns how many rows, by kind of row.

    That are runs that describe too much, and judgements, nodes and runs that refer to a row that
    is missing, or removed. Raises `StoreError` for a store that cannot be read whole: what it
    lacks is not known.
    """
    check = Check(store)
    if not check.is_whole:
        raise StoreError(
            f"the store '{store.path}' cannot be repaired, because it cannot be read whole",
            hint="'evalstore fsck' lists what is wrong; restore a copy of the store",
        )
    found = check.find_unreadable()
    removed = {kind: found[kind] for kind in _REMOVABLE if kind in found}

    def delete(connection: Connection) -> None:
        for kind, ids in removed.items():
            statement = f"DELETE FROM {_REMOVABLE[kind].name} WHERE id IN"
            for some in in_batches(ids):
                connection.change_in(statement, all_as_bytes(some))

        if removed or check.damages:
            for name in ROW_TABLES:
                connection.execute(f"DELETE FROM {name}")
            fill(connection)

    store.write(delete)
    counts = Counter[str]()
    for kind, ids in removed.items():
        counts["node" if kind in VERSIONS else kind] += len(ids)
    return counts


def _read_all(check: Check, store: Store) -> None:
    """Check everything in a store."""
    try:
        check.damages += [Damage("database", "", line) for line in store.database_problems()]
        check.damages += [Damage("database", "", extra.words) for extra in store.foreign]
        check.is_whole = not check.damages
        for table, row in store.iterate():
            check.row(table, row)
        if not any(extra.table in _IN_PROGRESS or extra.missing for extra in store.foreign):
            for run in store.find_shared_runs():
                if run.error:
                    check.damages.append(Damage("run in progress", run.id, str(run.error)))
    except StoreUnreachableError:
        raise
    except StoreError as error:  # reading ends here; earlier problems are kept
        check.is_whole = False
        check.damages.append(Damage("database", "", str(error)))
    check.references()
    if not any(extra.blocks_reading for extra in store.foreign):
        check.excessive = dict(find_excessive(store, check.runs))
    check.damages += [Damage("run", id, problem) for id, problem in check.excessive.items()]
    if not check.damages:  # rows follow from contents
        with store.snapshot() as connection:
            check.damages += [Damage(*wrong) for wrong in find_wrong_rows(connection)]


class Check:
    """The check of one store, and what it has found."""

    def __init__(self, store: Store) -> None:
        self.checked = 0
        self.is_whole = False
        """Whether all rows could be read."""
        self.runs: list[Run] = []
        self.excessive: dict[str, str] = {}
        """The ids of runs that describe too much to be read, with why."""
        self.damages: list[Damage] = []
        self._seen: set[tuple[str, str]] = set()
        self._present: set[str] = set()
        self._targets: list[tuple[str, str, str]] = []
        self._sizes: dict[str, int] = {}
        """How many cases are in nodes of cases."""
        self._counts: dict[str, dict[str, int]] = {}
        """What such nodes say of their parts."""
        self._impossible: list[tuple[str, str]] = []
        """The kinds and ids of nodes that do not describe what is there."""
        _read_all(self, store)

    def row(self, table: str, row: Mapping[str, Any]) -> None:
        """Check one row, and note what it refers to."""
        self.checked += 1
        id = row["id"].hex() if isinstance(row["id"], bytes) else str(row["id"])
        if (table, id) in self._seen:
            self.damages.append(Damage(_kind_of(table, row), id, "it is there twice"))
        self._seen.add((table, id))
        if len(id) == 32:
            self._present.add(id)
        try:
            checked = check_record(StoredRecord(table, id, row["content"], row.get("data")))
            kind, content = checked.kind, checked.content
            for name, value in row.items():
                expected = checked.row[name]
                if value != (as_bytes(expected) if name in TABLES[table].ids else expected):
                    problem = f"column '{name}' does not match the content"
                    error = not_readable(table, id, content, problem)
                    self.damages.append(Damage(kind, id, _problem_of(error, table, id)))
        except StoreError as error:
            damage = Damage(_kind_of(table, row), id, _problem_of(error, table, id))
            self.damages.append(damage)
            if isinstance(error, ExcessiveError):
                self._impossible.append((damage.kind, id))
            return
        self._targets += ((kind, id, target) for target in checked.references)
        if kind == "run":
            self.runs.append(restore_run(id, content))
        if kind == "cases":
            self._sizes[id] = count_cases(content)
            parts = zip(content.get("parts", ()), content.get("counts", ()), strict=False)
            self._counts[id] = dict(parts)

    def references(self) -> None:
        """Check that everything is stored that the rows refer to; called after all rows."""
        self.damages += [
            Damage(kind, id, f"refers to {target}, which is not there")
            for kind, id, target in self._targets
            if target not in self._present
        ]
        for id, parts in self._counts.items():
            if any(self._sizes.get(part, count) != count for part, count in parts.items()):
                self._impossible.append(("cases", id))
                message = "it gives the wrong number of cases in its parts"
                self.damages.append(Damage("cases", id, message))

    def find_unreadable(self) -> dict[str, set[str]]:
        """Return the ids of rows that may be removed as something below them is lost, by kind."""
        found: dict[str, set[str]] = {}
        for kind, id in (*self._impossible, *(("run", id) for id in self.excessive)):
            found.setdefault(kind, set()).add(id)
        present = self._present.difference(*found.values())
        is_done = False
        while not is_done:
            is_done = True
            for kind, id, target in self._targets:
                if kind in _REMOVABLE and id in present and target not in present:
                    present.discard(id)
                    found.setdefault(kind, set()).add(id)
                    is_done = False
        return found


def _kind_of(table: str, row: Mapping[str, Any]) -> str:
    """Return the kind to report for a row of a table that may not be readable."""
    kinds = kinds_of(table)
    with suppress(ValueError, KeyError, TypeError, RecursionError):
        if (kind := json.loads(row["content"])["kind"]) in kinds:
            return str(kind)
    return kinds[0] if len(kinds) == 1 else "node"


def _problem_of(error: StoreError, table: str, id: str) -> str:
    """Return what is wrong with a row; one of a newer program is not damaged."""
    text = error.problem if isinstance(error, NewerError) else str(error)
    for place in ("the store is damaged: ", f"row {id} of the table '{table}': "):
        text = text.removeprefix(place)
    if isinstance(error, NewerError):
        return f"it was written by a newer evalstore: {text}; upgrade"
    return text


# --- compares the rows of a store with its contents, for `fsck`, and writes them again


def find_wrong_rows(connection: Connection) -> Iterator[tuple[str, str, str]]:
    """Yield what differs: the table and the id of a content, or none, and a message."""
    for source, tables in ROWS_OF.items():
        for contents in iterate_contents(connection, source):
            for id in sorted(_compare(connection, tables, contents)):
                yield source, id.hex(), "its rows do not match its content"
        for table in (table for table in tables if table not in OF_KINDS):
            content = f"SELECT 1 FROM {source} c WHERE c.id = t.{_owner_of(table)}"
            query = f"SELECT count(*) FROM {table.name} t WHERE NOT EXISTS ({content})"
            if count := connection.execute(query).fetchall()[0][0]:
                yield table.name, "", f"{count} of its rows have no content"


def _compare(
    connection: Connection, tables: Iterable[TableColumns], contents: list[tuple[bytes, Json]]
) -> set[bytes]:
    """Return the ids of contents, or of kinds of cases, whose rows differ."""
    built, wrong = build_rows(contents), set[bytes]()
    for table in tables:
        expected = set(built.get(table.name, ()))
        place = list(table.columns).index(_owner_of(table))
        owners = {row[place] for row in expected}
        if table not in OF_KINDS:
            owners.update(id for id, _ in contents)
        query = f"SELECT {', '.join(table.columns)} FROM {table.name} WHERE {_owner_of(table)} IN"
        stored = {
            tuple(row) for some in in_batches(owners) for row in connection.select_in(query, some)
        }
        wrong.update(row[place] for row in expected ^ stored)
    return wrong


def _owner_of(table: TableColumns) -> str:
    """Return the column with the id of the content that a row follows from."""
    return "leaf" if table is CASE_NAMES else next(iter(table.columns))
