"""Finds the cells that failed in a run by the numbers of their cases, where the rows are the same.

The rows of a long file that are the same in a run, in the same order, have their results at the
same numbers, so that nothing need be looked for by the values of rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalstore.planning.cells.cell_layout import RowNames
from evalstore.planning.cells.numbered_cases import alike_cases
from evalstore.store.contents import damaged
from evalstore.store.results import lacks_answers, place_of, verdict_of
from evalstore.store.trees.case_files import StoredCases

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evalstore.core.values import Json
    from evalstore.planning.cells.cell_layout import AlikeCells, CellLayout
    from evalstore.planning.project import Project
    from evalstore.store import Store

_FOUND = 2
"""Marks a cell that waits, but has a result in the run that is read."""


class NumberedResults:
    """The results of long files in earlier runs, by the numbers of the workspace's cases."""

    def __init__(self, project: Project, layout: CellLayout) -> None:
        self._store, self._layout = project.store, layout
        self._nodes: Mapping[str, str] = project.reading.nodes
        self._names: dict[str, RowNames] = {}
        """By file, where each row has a name of its own."""
        for file, names in (layout.names or {}).items():
            cases = project.reading.files[file].cases
            if isinstance(cases, StoredCases) and len(cases) == len(names):
                self._names[file] = names
        self._distinct: dict[str, bool] = {}
        self._same: dict[tuple[str, str], RowNames | None] = {}
        self._seen: set[tuple[str, str]] = set()

    def look_up(self, file: str, leaf: str, waiting: bytearray, failed: bytearray) -> bool:
        """Note which of the waiting cells of a file failed in a run; what it has waits no more.

        `leaf` is the node of the results. False if other rows are in that run.
        """
        if file not in self._names:
            return False
        content = self._store.load_leaves([leaf])[leaf]
        names = self._find_same(file, content["cases"])
        if names is None:
            return False
        if (file, leaf) not in self._seen:
            self._seen.add((file, leaf))
            self._read(file, leaf, names, waiting, failed)
        return True

    def _find_same(self, file: str, node: str) -> RowNames | None:
        """Return the names of the rows in a node; None unless they are those of the workspace."""
        ours = self._names[file]
        if file not in self._distinct:
            self._distinct[file] = ours.are_distinct()
        if not self._distinct[file]:
            return None
        if node == self._nodes[file]:
            return ours
        if (file, node) not in self._same:
            names = _read_names(self._store, node, len(ours))
            self._same[file, node] = names if names == ours else None
        return self._same[file, node]

    def _read(
        self, file: str, leaf: str, names: RowNames, waiting: bytearray, failed: bytearray
    ) -> None:
        stretch: AlikeCells | None = None
        first = end = 0
        for parts in self._store.iterate_results([leaf]):
            for part in parts:
                for cell in part.content["cells"]:
                    of_part, prompt, name = place_of(cell)
                    number = part.first + of_part
                    if not first <= number < end:
                        stretch = self._layout.find(file, number)
                        if stretch is None:
                            raise damaged("nodes", leaf, "a result in it belongs to no case")
                        first, end = stretch.number, stretch.number + stretch.cases
                        kind = stretch.kind
                        size, prompts = kind.cells, len(kind.placed.case.prompts)
                        models = {
                            candidate.id: place * prompts
                            for place, (candidate, _) in enumerate(kind.placed.candidates)
                        }
                        start = stretch.start - first * size
                    if prompt >= prompts:
                        raise damaged("nodes", leaf, "a result in it belongs to no case")
                    model = models.get(name)
                    if model is not None:
                        place = start + number * size + model + prompt
                        if waiting[place]:  # the last of several results of a cell counts
                            failed[place] = _has_failed(cell, is_judged=bool(names.judged[number]))
                            waiting[place] = _FOUND
        waiting[:] = waiting.replace(bytes([_FOUND]), b"\0")


def _read_names(store: Store, node: str, count: int) -> RowNames | None:
    """Return the names of the rows of a long file; None if it has not so many."""
    file = store.find_case_files([node]).get(node)
    if file is None or not isinstance(file.cases, StoredCases) or len(file.cases) != count:
        return None
    names = RowNames()
    for alike in alike_cases(file):
        is_judged = alike.first.evaluation is not None
        names.add(alike.first.prompts, alike.keys, alike.rows, is_judged=is_judged)
    return names


def _has_failed(cell: Json, *, is_judged: bool) -> bool:
    """Return whether a stored result has failed; an answered case without an evaluation has not."""
    verdict = verdict_of(cell)
    if verdict is None:
        return is_judged or lacks_answers(cell)
    return verdict != "pass"
