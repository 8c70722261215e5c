"""Which rows may be copied when some versions of tests stay where they are.

It is decided anew by each push, from the rows of the store, and by their ids: few contents are
decoded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from evalstore.remotes.reachable import ReachedIds
from evalstore.store.contents import damaged
from evalstore.store.ids import as_bytes, as_id
from evalstore.store.records import COPIED_TABLES, ID_BYTES
from evalstore.store.references import OF_SESSIONS, OF_VERSIONS, iterate_references
from evalstore.store.schema.table_columns import (
    EVALUATIONS,
    FAILURES,
    NODES,
    RUNS,
    SESSIONS,
    VERSIONS,
)

if TYPE_CHECKING:
    from evalstore.core.values import Json
    from evalstore.remotes.differences import IdSource
    from evalstore.store import Store
    from evalstore.store.records import IdSnapshot

_EVALUATORS = VERSIONS["evaluator"].name
_REFERRING = tuple(VERSIONS[kind].name for kind in ("test", "evaluation", "evaluator", "prompt"))
"""The tables of versions that may refer to others, each before those that it refers to."""
_UNSHARED_SELECTIONS = frozenset({"name", "keepGoing"})
"""Selections of a run: by a text, and without files that have errors."""
_FIRST, _LAST = bytes(ID_BYTES), b"\xff" * ID_BYTES


class SharedRows(NamedTuple):
    """What may be copied."""

    ids: ReachedIds
    excluded_runs: ReachedIds
    """The runs that are not among them, as they refer to something excluded."""


def find_shared_rows(
    store: Store,
    shared: frozenset[bytes],
    excluded: frozenset[bytes],
    within: IdSource | None = None,
) -> SharedRows:
    """Return the answers, judgements and runs that may be copied, and all that these refer to.

    Both collections have ids of versions of tests, prompts and evaluations. All that an answer, a
    judgement or a case of a run refers to is shared, and no evaluator has an excluded prompt.
    Failed calls are not among them, nor runs that may name a test they were not about. With
    `within`, which has all that its rows refer to, only those that it has.
    """
    with store.snapshot_ids() as rows:  # what is written meanwhile is not examined
        sorting = _Sorting(rows, shared, excluded)
        sorting.sort_evaluators()
        sorting.sort_sessions()
        sorting.sort_judgements()
        sorting.sort_nodes()
        sorting.sort_runs(rows if within is None else within)
        sorting.reach_versions()
        chosen = {
            table: sorting.chosen & _ids_of(rows, table)
            for table in COPIED_TABLES
            if table != FAILURES.name
        }
    if within is not None:
        for table, ids in chosen.items():
            ids &= _ids_of(within, table)
    return SharedRows(_join(chosen), _join({RUNS.name: sorting.excluded_runs}))


def _ids_of(source: IdSource, table: str) -> set[bytes]:
    return {as_id(id) for (id,) in source.find_range(table, _FIRST, _LAST)}


def _join(rows: Mapping[str, set[bytes]]) -> ReachedIds:
    return ReachedIds({table: b"".join(sorted(ids)) for table, ids in rows.items() if ids})


class _Sorting:
    """Sorts the rows of a store, table by table, into those that may be copied and others."""

    def __init__(
        self, rows: IdSnapshot, shared: frozenset[bytes], excluded: frozenset[bytes]
    ) -> None:
        self._rows = rows
        self._shared = shared
        self._touched = set(excluded)
        """What is excluded, and the rows that refer, directly or not, to it."""
        self._below: dict[bytes, bytes] = {}
        """What a node refers to, concatenated, unless it is touched."""
        self.chosen: set[bytes] = set()
        """The rows that may be copied, and what they refer to."""
        self.excluded_runs: set[bytes] = set()

    def sort_evaluators(self) -> None:
        """Find the evaluators that must not be copied."""
        for id, content in self._rows.iterate_contents(_EVALUATORS):
            if not self._touched.isdisjoint(_references(content)):
                self._touched.add(id)

    def sort_sessions(self) -> None:
        """Choose the answers to questions that are shared."""
        for id, *fields in self._rows.iterate_fields(SESSIONS.name, OF_SESSIONS):
            references = [as_bytes(field) for field in fields]
            about = references[:2]  # the test and the prompt
            if all(each in self._shared for each in about if each is not None):
                self.chosen.update((id, *filter(None, references)))
            else:
                self._touched.add(id)

    def sort_judgements(self) -> None:
        """Choose the judgements of chosen answers whose instructions are shared."""
        names = ("evaluation", "evaluator", "sessions")
        for id, evaluation, evaluator, sessions in self._rows.iterate_fields(
            EVALUATIONS.name, names
        ):
            answers = _read_ids(id, sessions)
            judged_by = (as_bytes(evaluation), as_bytes(evaluator))
            if (
                judged_by[0] in self._shared
                and judged_by[1] not in self._touched
                and answers <= self.chosen
            ):
                self.chosen.update((id, *filter(None, judged_by)))
            else:
                self._touched.add(id)

    def sort_nodes(self) -> None:
        """Find the nodes that refer, maybe through others, to a row that must not be copied.

        A case that is not shared is such a row.
        """
        nodes = _ids_of(self._rows, NODES.name)
        inner: dict[bytes, set[bytes]] = {}
        """The nodes that a node refers to."""
        for id, content in self._rows.iterate_contents(NODES.name):
            references = set(_references(content))
            has_others = content["kind"] == "cases" and not references - nodes <= self._shared
            if has_others or not references.isdisjoint(self._touched):
                self._touched.add(id)
            else:
                self._below[id] = b"".join(references)
                inner[id] = nodes & references
        while more := [id for id, below in inner.items() if not below.isdisjoint(self._touched)]:
            self._touched.update(more)
            for id in more:
                del inner[id], self._below[id]

    def sort_runs(self, wanted: IdSource) -> None:
        """Choose those of these runs that refer to nothing that must not be copied, with nodes."""
        pending: list[bytes] = []
        runs = _ids_of(wanted, RUNS.name)
        for id, content in self._rows.iterate_contents(RUNS.name):
            if id not in runs:
                continue
            references = set(_references(content))
            is_named = _UNSHARED_SELECTIONS.intersection(content.get("selection", ()))
            if not is_named and self._touched.isdisjoint(references):
                self.chosen.add(id)
                pending += references
            else:
                self.excluded_runs.add(id)
        while pending:
            id = pending.pop()
            if id not in self.chosen:
                self.chosen.add(id)
                below = self._below.get(id, b"")
                pending += [below[at : at + ID_BYTES] for at in range(0, len(below), ID_BYTES)]

    def reach_versions(self) -> None:
        """Choose the versions that chosen versions refer to."""
        for table in _REFERRING:
            for id, content in self._rows.iterate_contents(table, OF_VERSIONS):
                if id in self.chosen:
                    self.chosen.update(_references(content))


def _references(content: Json) -> Iterator[bytes]:
    return map(bytes.fromhex, iterate_references(content["kind"], content))


def _read_ids(id: bytes, text: Any) -> set[bytes | None]:
    """Return the ids in a list of a judgement; raises `StoreError` for anything else."""
    if text.__class__ is not str:
        raise damaged(EVALUATIONS.name, id.hex(), "it is about no answer")
    return set(map(as_bytes, text.strip('[]"').split('","')))
