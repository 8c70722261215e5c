"""Which rows may be copied when some versions of tests stay where they are."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from evalstore.sharing.push import iterate_records
from evalstore.sharing.reachable import ReachedIds, find_reached
from evalstore.store.contents import decode_content
from evalstore.store.ids import as_id
from evalstore.store.references import iterate_references
from evalstore.store.table_columns import EVALUATIONS, NODES, RUNS, SESSIONS, VERSIONS
from evalstore.values import Json

if TYPE_CHECKING:
    from evalstore.sharing.differences import IdSource
    from evalstore.store import Store

_Rows = Mapping[str, frozenset[bytes]]
"""The ids of rows, by table."""
_EVALUATORS = VERSIONS["evaluator"]
_TABLES = (_EVALUATORS, SESSIONS, EVALUATIONS, NODES, RUNS)
_UNSHARED_SELECTIONS = frozenset({"name", "keepGoing"})
"""Selections of a run: by a text, and without files that have errors."""
_FIRST, _LAST = bytes(16), b"\xff" * 16


class SharedRows(NamedTuple):
    """What may be copied."""

    ids: ReachedIds
    excluded_runs: int
    """How many runs refer to something excluded, and so are not among them."""


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
    `within`, only those that it has.
    """
    with store.snapshot_ids() as ids:  # what is written meanwhile is not examined
        rows = _ids_of(ids)
    wanted = rows if within is None else _ids_of(within)
    touched = set(excluded)
    """What is excluded, and the rows that refer, directly or not, to it."""
    chosen: set[bytes] = set()
    for id, content in _contents(store, _EVALUATORS.name, rows):
        if not touched.isdisjoint(_references(content)):
            touched.add(id)
    for id, content in _contents(store, SESSIONS.name, rows):
        about = {bytes.fromhex(content[name]) for name in ("test", "prompt") if name in content}
        (chosen if about <= shared else touched).add(id)
    for id, content in _contents(store, EVALUATIONS.name, rows):
        is_shared = bytes.fromhex(content["evaluation"]) in shared
        is_touched = not is_shared or not touched.isdisjoint(_references(content))
        (touched if is_touched else chosen).add(id)
    touched |= _touched_nodes(store, rows, touched, shared)
    excluded_runs = 0
    for id, content in _contents(store, RUNS.name, rows):
        is_named = _UNSHARED_SELECTIONS.intersection(content.get("selection", ()))
        if not is_named and touched.isdisjoint(_references(content)):
            chosen.add(id)
        elif id in wanted[RUNS.name]:
            excluded_runs += 1
    chosen &= frozenset[bytes]().union(*wanted.values())
    return SharedRows(find_reached(store, chosen, with_judgements=False), excluded_runs)


def _ids_of(source: IdSource) -> _Rows:
    return {
        table.name: frozenset(as_id(id) for (id,) in source.find_range(table.name, _FIRST, _LAST))
        for table in _TABLES
    }


def _touched_nodes(
    store: Store, rows: _Rows, touched: Collection[bytes], shared: frozenset[bytes]
) -> set[bytes]:
    """Return the nodes that refer to one of these rows, or have a case that is not shared.

    They may do so through other nodes.
    """
    nodes = rows[NODES.name]
    inner: dict[bytes, frozenset[bytes]] = {}
    """The nodes that a node refers to."""
    found: set[bytes] = set()
    for id, content in _contents(store, NODES.name, rows):
        references = frozenset(_references(content))
        has_others = content["kind"] == "cases" and not references - nodes <= shared
        if has_others or not references.isdisjoint(touched):
            found.add(id)
        elif below := nodes & references:
            inner[id] = below
    while more := [id for id, below in inner.items() if not below.isdisjoint(found)]:
        found.update(more)
        for id in more:
            del inner[id]
    return found


def _references(content: Json) -> Iterator[bytes]:
    return map(bytes.fromhex, iterate_references(content["kind"], content))


def _contents(store: Store, table: str, rows: _Rows) -> Iterator[tuple[bytes, Json]]:
    for record in iterate_records(store, {table: b"".join(sorted(rows[table]))}):
        yield bytes.fromhex(record.id), decode_content(table, record.id, record.content)
