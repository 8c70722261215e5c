"""Keeps decoded results of test files in memory, for commands that read the same ones repeatedly.

A node is named by its content, so what was decoded and checked once never needs to be again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from evalstore.results import Result
    from evalstore.values import Case, CaseFile

Cells = list[tuple["Result", "Case"]]
MOST_RESULTS = 50_000
"""The most results that are kept, with their cases: about 60 MB."""
_MOST_CASES = 10_000
"""The most cases that are kept alone: they are read less often, and decoded sooner."""


class KeptResults:
    """The results and the cases of the test files that were read first, while there is room.

    Nothing is dropped for newer ones: many more results than fit are usually read from the first to
    the last, and the last ones would have replaced those that are read next.
    """

    def __init__(self, most: int | None = None) -> None:
        self._room = {
            "cells": most or MOST_RESULTS,
            "files": min(most or MOST_RESULTS, _MOST_CASES),
        }
        self._cells: dict[tuple[str, str], Cells] = {}
        self._files: dict[str, CaseFile] = {}

    def cells(self, path: str, leaf: str) -> Cells | None:
        """Return the results of a file with their cases; None if they are not kept."""
        return self._cells.get((path, leaf))

    def files(self, nodes: Collection[str]) -> dict[str, CaseFile]:
        """Return the case files of those of these nodes that are kept, by node."""
        return {node: self._files[node] for node in nodes if node in self._files}

    def add_cells(self, path: str, leaf: str, cells: Cells) -> None:
        """Keep all results of a file, if there is room."""
        if self._take("cells", cells):
            self._cells[path, leaf] = cells

    def add_file(self, node: str, file: CaseFile) -> None:
        """Keep the cases of a file, if there is room and they are in memory anyway."""
        if isinstance(file.cases, tuple) and self._take("files", file.cases):
            self._files[node] = file

    @property
    def room(self) -> int:
        """Return how many more results may be kept."""
        return self._room["cells"]

    def _take(self, kind: str, items: Sequence[object]) -> bool:
        if len(items) > self._room[kind]:
            return False
        self._room[kind] -= len(items)
        return True
