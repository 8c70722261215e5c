"""Finds the results of a few rows of long files, decoding few of the nodes of their results.

What was decoded last stays in memory, as neighbouring rows are in the same node.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from evalstore.core.batches import in_small_batches
from evalstore.core.results import Result
from evalstore.store import Store
from evalstore.store.results import Cells, read_cells
from evalstore.store.rows.row_queries import ResultLeaf

_MOST_KEPT = 10_000
"""About how many results stay in memory."""


class RowCells(NamedTuple):
    """The results of some rows of a file, and of the others that are in the same nodes."""

    cells: Cells
    """All results in the nodes that have them, each with its case, in their order."""
    total: int
    """How many results the file has."""


class _Leaf(NamedTuple):
    """The nodes of the results of a long file, in order."""

    nodes: list[ResultLeaf]
    total: int


class RowResults:
    """Finds results of test files by the names of their cases: their keys and their labels."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._leaves: dict[str, _Leaf | None] = {}
        """The leaves that were looked into; None for one without parts."""
        self._decoded: dict[tuple[str, str], Cells] = {}
        """The results of nodes by path and node, those used last at the end."""
        self._count = 0
        """How many these are."""

    def find(
        self, entries: Mapping[str, str], names: Mapping[str, Collection[str]]
    ) -> dict[str, RowCells]:
        """Return the results of cases with some names, with their neighbours, by test file.

        `entries` are entries of a result tree, and `names` are those of each of these files. All
        results of a file without parts are read, and such files are read together.
        """
        self._look_into(entries)
        nodes = {}
        for path, leaf in entries.items():
            nodes[path] = [leaf]
            if parts := self._leaves[leaf]:
                named = self._store.find_named_leaves(names[path])
                nodes[path] = [node.id for node in parts.nodes if node.cases in named]
        decoded = self._decode([(path, node) for path in nodes for node in nodes[path]])
        found: dict[str, RowCells] = {}
        for path, leaf in entries.items():
            cells = [cell for node in nodes[path] for cell in decoded[path, node]]
            parts = self._leaves[leaf]
            found[path] = RowCells(cells, parts.total if parts else len(cells))
        return found

    def _look_into(self, entries: Mapping[str, str]) -> None:
        """Find out where the rows are in leaves that are met for the first time."""
        fresh = dict.fromkeys(leaf for leaf in entries.values() if leaf not in self._leaves)
        self._leaves.update(fresh)
        levels = self._store.find_levels(fresh)
        for leaf in [leaf for leaf in fresh if levels.get(leaf) != 0]:
            nodes = self._store.find_result_leaves(leaf)
            counts = self._store.count_by_candidate(node.id for node in nodes)
            self._leaves[leaf] = _Leaf(nodes, sum(each.total() for each in counts.values()))

    def _decode(self, places: Sequence[tuple[str, str]]) -> dict[tuple[str, str], Cells]:
        """Return the results in these nodes, each given with the path of its file."""
        known = self._take(places)
        for some in in_small_batches([place for place in places if place not in known]):
            known |= zip(some, read_cells(self._store, some), strict=True)
        self._keep(known)
        return known

    def _take(self, places: Iterable[tuple[str, str]]) -> dict[tuple[str, str], Cells]:
        """Return the results of those nodes that are in memory, and take them out of it."""
        taken = {place: self._decoded.pop(place) for place in places if place in self._decoded}
        self._count -= sum(map(len, taken.values()))
        return taken

    def _keep(self, decoded: Mapping[tuple[str, str], Cells]) -> None:
        """Keep the results of nodes, and forget those used longest ago; the last one stays."""
        self._decoded.update(decoded)
        self._count += sum(map(len, decoded.values()))
        while self._count > _MOST_KEPT and len(self._decoded) > 1:
            self._count -= len(self._decoded.pop(next(iter(self._decoded))))


def results_of(
    store: Store, path: str, rows: Mapping[str, Collection[str]]
) -> dict[str, list[Result]]:
    """Return the cells of rows of a file by node of its results; `rows` are the labels by node."""
    found = RowResults(store).find({node: node for node in rows}, rows)
    return {
        node: [
            result._replace(file=path)
            for result, _ in found[node].cells
            if result.row in rows[node]
        ]
        for node in rows
    }
