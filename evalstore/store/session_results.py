"""Finds the results with a session in the result trees of runs, decoding few of their nodes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from evalstore.store.results import case_of, restore_cell

if TYPE_CHECKING:
    from evalstore.core.results import Result
    from evalstore.store import Store
    from evalstore.store.rows.row_queries import ResultLeaf

_ID = re.compile("[0-9a-f]{32}")


class SessionResults:
    """Finds the results with a session in result trees."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._trees: dict[str, list[tuple[str, ResultLeaf]]] = {}
        """The nodes of the result trees that were searched."""

    def find(self, root: str, session: str) -> list[Result]:
        """Return the results in a result tree that have the session, in their order."""
        if not _ID.fullmatch(session):
            return []
        if root not in self._trees:
            self._store.load_nodes([root])  # raises StoreError where it is missing
            self._trees[root] = self._store.find_tree_leaves(root)
        asked = self._store.find_asked_leaves(session)
        places = [(path, leaf.id) for path, leaf in self._trees[root] if leaf.cases in asked]
        contents = self._store.load_leaves(node for _, node in places)
        files = self._store.load_case_files({content["cases"] for content in contents.values()})
        return [
            restore_cell(path, case_of(cell, files[contents[node]["cases"]].cases), cell)
            for path, node in places
            for cell in contents[node]["cells"]
            if session in cell.get("sessions", ())
        ]
