"""Finds the results with a session in the result trees of runs, decoding few of their nodes.

Of each tree it keeps digests of the sessions, sorted, so that a session is looked up and not
searched for.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from typing import TYPE_CHECKING, NamedTuple

from evalstore.store.path_trees import read_tree
from evalstore.store.result_counts import iterate_texts
from evalstore.store.results import case_of, restore_cell

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evalstore.results import Result
    from evalstore.store import Store

_MOST_KEPT = 4_000_000
"""Of about so many sessions the digests stay in memory: 30 MiB."""
_BITS = 24
"""The bits of the number of a node, behind those of a digest."""
_DIGITS = 10
"""The digits of an id that are its digest."""
_SESSIONS = re.compile(r'"sessions":\[([^\]]*)\]').findall
"""Finds the sessions of cells in canonical JSON, where a quote inside of a string is escaped."""
_IDS = re.compile('"([0-9a-f]{32})"')
"""Finds ids; a damaged node may have other texts in their places, which are ids of no session."""


class _Tree(NamedTuple):
    """The nodes of the results of a run."""

    nodes: list[tuple[str, str]]
    """The path of the file of each, and its id."""
    sessions: array[int]
    """The sessions, sorted: each a digest, and the number of the node that names it."""

    def find(self, session: str) -> Iterator[tuple[str, str]]:
        """Yield the nodes that may have results with a session, in their order."""
        digest = _digest(session)
        at = bisect_left(self.sessions, digest)
        while at < len(self.sessions) and self.sessions[at] >> _BITS == digest >> _BITS:
            yield self.nodes[self.sessions[at] - digest]
            at += 1


class SessionResults:
    """Finds the results with a session in result trees; those who look for several share it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._trees: dict[str, _Tree] = {}
        """The result trees by id, those used last at the end."""

    def find(self, root: str, session: str) -> list[Result]:
        """Return the results in a result tree that have the session, in their order."""
        if not _IDS.fullmatch(f'"{session}"'):
            return []
        tree = self._trees.pop(root, None) or self._read(root)
        self._keep(root, tree)
        places = dict.fromkeys(tree.find(session))
        contents = self._store.load_leaves(node for _, node in places)
        files = self._store.load_case_files({content["cases"] for content in contents.values()})
        return [
            restore_cell(path, case_of(cell, files[contents[node]["cases"]].cases), cell)
            for path, node in places
            for cell in contents[node]["cells"]
            if session in cell.get("sessions", ())
        ]

    def _read(self, root: str) -> _Tree:
        leaves = read_tree(root, self._store.load_nodes)
        nodes, sessions = list[tuple[str, str]](), array("Q")
        for path, node, text in iterate_texts(self._store, sorted(leaves.items())):
            number = len(nodes)
            nodes.append((path, node))
            for ids in _SESSIONS(text):
                sessions.extend(_digest(id) + number for id in _IDS.findall(ids))
        return _Tree(nodes, array("Q", sorted(sessions)))

    def _keep(self, root: str, tree: _Tree) -> None:
        """Keep a tree, and forget those used longest ago; the last one stays."""
        self._trees[root] = tree
        while len(self._trees) > 1 and self._count > _MOST_KEPT:
            self._trees.pop(next(iter(self._trees)))

    @property
    def _count(self) -> int:
        return sum(len(tree.sessions) for tree in self._trees.values())


def _digest(session: str) -> int:
    """Return the digest of an id, with room for a number."""
    return int(session[:_DIGITS], 16) << _BITS
