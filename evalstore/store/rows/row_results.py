"""Finds the results of a few rows of long files, decoding few of the nodes of their results.

What was decoded last stays in memory, as neighbouring rows are in the same node.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from evalstore.core.batches import in_small_batches
from evalstore.core.results import Result
from evalstore.core.values import Case
from evalstore.store import Store
from evalstore.store.results import case_of, iterate_entries, restore_cell
from evalstore.store.rows.row_queries import ResultLeaf

Cells = list[tuple["Result", "Case"]]
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
        short = {path: leaf for path, leaf in entries.items() if self._leaves.get(leaf) is None}
        found = self._read_short(short)
        for path, leaf in entries.items():
            if parts := self._leaves.get(leaf):
                named = self._store.find_named_leaves(names[path])
                nodes = {node.id: node.cases for node in parts.nodes if node.cases in named}
                decoded = self._decode(path, nodes)
                cells = [cell for node in nodes for cell in decoded[node]]
                found[path] = RowCells(cells, parts.total)
        return found

    def _look_into(self, entries: Mapping[str, str]) -> None:
        """Find out where the rows are in leaves that are met for the first time."""
        fresh = dict.fromkeys(leaf for leaf in entries.values() if leaf not in self._leaves)
        self._leaves.update(fresh)
        for leaf in self._store.find_divided(fresh):
            total = sum(self._store.count_results(leaf).values())
            self._leaves[leaf] = _Leaf(self._store.find_result_leaves(leaf), total)

    def _read_short(self, entries: Mapping[str, str]) -> dict[str, RowCells]:
        """Return all results of files without parts."""
        known = self._take(entries.items())
        fresh: dict[str, Cells] = {
            path: [] for path, leaf in entries.items() if (path, leaf) not in known
        }
        for batch in iterate_entries(self._store, {path: entries[path] for path in fresh}):
            for cell in batch:
                fresh[cell[0].file].append(cell)
        known |= {(path, entries[path]): cells for path, cells in fresh.items()}
        self._keep(known)
        return {
            path: RowCells(known[path, leaf], len(known[path, leaf]))
            for path, leaf in entries.items()
        }

    def _decode(self, path: str, nodes: Mapping[str, str]) -> dict[str, Cells]:
        """Return the results in these nodes; `nodes` names the node with the cases of each."""
        known = self._take((path, node) for node in nodes)
        fresh = [node for node in nodes if (path, node) not in known]
        for some in in_small_batches(fresh):
            contents = self._store.load_leaves(some)
            files = self._store.load_case_files({nodes[node] for node in some})
            for node in some:
                cases = files[nodes[node]].cases
                known[path, node] = [
                    (restore_cell(path, case, cell), case)
                    for cell in contents[node]["cells"]
                    for case in (case_of(cell, cases),)
                ]
        self._keep(known)
        return {node: known[path, node] for node in nodes}

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
