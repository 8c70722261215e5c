"""Finds the two results between which a compared verdict flipped, where other runs lie between."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from evalstore.comparison.comparison import Pair
from evalstore.core.display import WORKSPACE
from evalstore.core.results import Result
from evalstore.planning.cells.earlier_results import EarlierRuns, find_cells, is_judged
from evalstore.planning.reasons.path_history import PathHistory
from evalstore.results.compare.compared_side import PromptsOfCase, Side, SidePrompts
from evalstore.store.rows.row_results import RowResults
from evalstore.store.trees.case_finder import CaseFinder

if TYPE_CHECKING:
    from evalstore.store import Store

_MOST_CELLS = 20_000
"""The most results that are looked for in the runs between; with more, no pair has a flip."""


class FlipFinder:
    """Looks for pairs in the runs between both sides, newest first, as a history does."""

    def __init__(self, store: Store, folder: str, was: Side, now: Side, finder: CaseFinder) -> None:
        """`folder` is that of the test files. Nothing lies between if the first side is newer."""
        self._store, self._folder, self._now, self._finder = store, folder, now, finder
        self._left = _MOST_CELLS
        self._newest = None if now.name == WORKSPACE else store.load_run(now.name)
        newer = enumerate(store.find_recent_runs(before=self._newest))
        self._count = next((count for count, run in newer if run.id == was.name), 0)
        """How many runs lie between."""
        self.is_cut = False
        """Whether more results would have to be looked for than are."""

    def find(self, pairs: Sequence[Pair]) -> dict[Pair, Pair]:
        """Return the results at the last change from or to a pass, for pairs with such a change.

        Both are of runs that judged the case one after the other. Those are left out that changed
        between just the two sides, and all of them beyond a limit.
        """
        results = (
            [pair.now for pair in pairs if pair.now] if self._count and not self.is_cut else []
        )
        if not results:
            return {}
        prompts = SidePrompts(self._now, self._finder, results)
        waiting: dict[Pair, tuple[Result, Iterable[str | None]]] = {}
        waiting |= {
            pair: (pair.now, PromptsOfCase(prompts, pair.now)) for pair in pairs if pair.now
        }
        rows = RowResults(self._store)
        paths, found = {pair.either.file for pair in waiting}, dict[Pair, Pair]()
        history = PathHistory(self._store, self._folder, self._now.nodes, self._now.files)
        runs = EarlierRuns(self._store, history).before(self._newest, paths, limit=self._count)
        for _, entries in runs:
            here = [pair for pair in waiting if pair.either.file in entries]
            self._left -= len(here)
            if self._left < 0:
                self.is_cut = True
                return {}
            cells = [waiting[pair] for pair in here]
            for pair, match in zip(here, find_cells(rows, entries, cells, is_judged), strict=True):
                if match is None:
                    continue
                result, case = match
                if (result.verdict == "pass") == (pair.either.verdict == "pass"):
                    waiting[pair] = result, case.prompts
                else:
                    found[pair] = Pair(result, waiting.pop(pair)[0])
            paths &= {pair.either.file for pair in waiting}
        rest = ((pair, Pair(pair.was, result)) for pair, (result, _) in waiting.items())
        return found | {pair: flip for pair, flip in rest if flip != pair}
