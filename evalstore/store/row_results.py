"""Finds the results of a few rows of long files, decoding few of the nodes of their results.

Of each leaf it keeps digests of the names of the cases, sorted, so that a row is looked up and not
searched for. What was decoded last stays in memory, as neighbouring rows are in the same node.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from evalstore.canonical_json import canonical_json
from evalstore.store.case_finder import names_in
from evalstore.store.contents import damaged
from evalstore.store.result_counts import find_divided, iterate_texts
from evalstore.store.results import case_of, iterate_entries, restore_cell

if TYPE_CHECKING:
    from evalstore.store import Store
    from evalstore.store.kept_results import Cells

_AT_ONCE = 256
_MOST_KEPT = 10_000
"""About how many results stay in memory."""
_BITS = 24
"""The bits of the number of a node, behind those of a digest."""
_CASES = re.compile('{"cases":"([0-9a-f]{32})"').match
"""Matches the node with the cases, which is the first field of a node of results."""


class RowCells(NamedTuple):
    """The results of some rows of a file, and of the others that are in the same nodes."""

    nodes: tuple[str, ...]
    """The nodes that have them."""
    cells: Cells
    """All results in these nodes, each with its case, in their order."""
    total: int
    """How many results the file has."""


class _Leaf(NamedTuple):
    """The nodes of the results of a long file."""

    nodes: list[str]
    cases: list[str]
    """The node with the cases of each."""
    total: int
    names: array[int]
    """The names of the cases, sorted: each a digest, and the number of the node with the case."""

    def find(self, names: Iterable[str]) -> set[int]:
        """Return the numbers of the nodes that may have cases with one of these names."""
        found: set[int] = set()
        for name in names:
            digest = _digest(canonical_json(name)[1:-1])
            at = bisect_left(self.names, digest)
            while at < len(self.names) and self.names[at] >> _BITS == digest >> _BITS:
                found.add(self.names[at] - digest)
                at += 1
        return found


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
                numbers = sorted(parts.find(names[path]))
                nodes = {parts.nodes[number]: parts.cases[number] for number in numbers}
                decoded = self._decode(path, nodes)
                cells = [cell for node in nodes for cell in decoded[node]]
                found[path] = RowCells((*nodes,), cells, parts.total)
        return found

    def _look_into(self, entries: Mapping[str, str]) -> None:
        """Find out where the rows are in leaves that are met for the first time."""
        kept = self._store.kept
        fresh = {
            leaf: path
            for path, leaf in entries.items()
            if leaf not in self._leaves and not (kept and kept.cells(path, leaf) is not None)
        }
        self._leaves.update(dict.fromkeys(fresh))
        for leaf in find_divided(self._store, fresh):
            self._leaves[leaf] = self._read_leaf(fresh[leaf], leaf)

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
            path: RowCells((leaf,), known[path, leaf], len(known[path, leaf]))
            for path, leaf in entries.items()
        }

    def _read_leaf(self, path: str, leaf: str) -> _Leaf:
        nodes, cases, total = list[str](), list[str](), 0
        for _, node, text in iterate_texts(self._store, [(path, leaf)]):
            found = _CASES(text)
            if found is None:
                raise damaged("nodes", node, "it does not say which cases it is about")
            nodes.append(node)
            cases.append(found[1])
            total += text.count('"case":')
        return _Leaf(nodes, cases, total, array("q", sorted(self._read_names(cases))))

    def _read_names(self, cases: list[str]) -> Iterator[int]:
        """Yield the digests of the names in these nodes of cases, each with the node's number."""
        for start in range(0, len(cases), _AT_ONCE):
            some = cases[start : start + _AT_ONCE]
            digests = {
                id: set(map(_digest, names_in(id, text)))
                for id, text in self._store.load_texts(dict.fromkeys(some))
            }
            for number, id in enumerate(some, start):
                yield from (digest + number for digest in digests[id])

    def _decode(self, path: str, nodes: Mapping[str, str]) -> dict[str, Cells]:
        """Return the results in these nodes; `nodes` names the node with the cases of each."""
        known = self._take((path, node) for node in nodes)
        fresh = [node for node in nodes if (path, node) not in known]
        for start in range(0, len(fresh), _AT_ONCE):
            some = fresh[start : start + _AT_ONCE]
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


def _digest(name: str) -> int:
    """Return the digest of a name as it stands in canonical JSON, with room for a number."""
    return hash(name) >> _BITS << _BITS
