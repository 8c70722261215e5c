"""Finds the most urgent results of a run, reading only the parts of long files that have some."""

from __future__ import annotations

from heapq import nsmallest
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from evalstore.store.path_trees import read_tree
from evalstore.store.result_counts import VerdictCounts, count_in_text, iterate_texts
from evalstore.store.results import case_of, restore_cell
from evalstore.values import URGENCY

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from evalstore.results import Result
    from evalstore.runs import Run
    from evalstore.store import Store

_AT_ONCE = 64
"""How many nodes are read at once at most."""


class UrgentResults(NamedTuple):
    """The most urgent results of a run."""

    results: list[Result]
    """The most urgent ones first, those that are as urgent in the order of the run."""
    several: set[tuple[str, str]]
    """The cases of these, by file and row, that have results with several system prompts."""
    left_out: int
    """How many other results there are."""


def find_urgent_results(store: Store, run: Run, most: int) -> UrgentResults:
    """Return the most urgent results of a run, at most so many."""
    entries = sorted(read_tree(run.results, store.load_nodes).items())
    leaves: list[_Leaf] = []
    total = 0
    for path, node, text in iterate_texts(store, entries):
        leaf = _Leaf(path, node, total, count_in_text(node, text))
        total += leaf.counts.total()
        leaves.append(leaf)
    kept: list[tuple[int, int, Result]] = []
    several: set[tuple[str, str]] = set()
    for some in _by_urgency(leaves, most):
        if len(kept) == most and kept[-1][:2] < (some.least, some.leaves[0].first):
            break  # nothing that follows is more urgent
        known = {number for _, number, _ in kept}
        found: list[tuple[int, int, Result]] = []
        for leaf, results in _restore(store, some.leaves):
            several |= cases_with_several_prompts(results)
            numbered = enumerate(results, leaf.first)
            found += ((_urgency(word_of(result)), number, result) for number, result in numbered)
        fresh = (entry for entry in found if entry[1] not in known)
        kept = nsmallest(most, chain(kept, fresh), key=itemgetter(0, 1))
    shown = [result for _, _, result in kept]
    several &= {(result.file, result.row) for result in shown}
    return UrgentResults(shown, several, total - len(shown))


class _Leaf(NamedTuple):
    """A node with cells."""

    path: str
    node: str
    first: int
    """The number of its first result in the run."""
    counts: VerdictCounts

    def count(self, verdict: str | None) -> int:
        """Return how many of its results have a verdict."""
        return sum(count for (_, word), count in self.counts.items() if word == verdict)


class _Some(NamedTuple):
    """Nodes that are read at once."""

    least: int
    """The urgency that their results may have at most."""
    leaves: list[_Leaf]


def _by_urgency(leaves: Sequence[_Leaf], most: int) -> Iterator[_Some]:
    """Yield the nodes that may have some of the most urgent results, the most urgent ones first.

    Of each verdict as many as are needed. Whether a result without a verdict is pending is known
    only when its case is read.
    """
    words = [None if word == "pending" else word for word in URGENCY if word != "answered"]
    for word in words:
        left = most
        chosen: list[_Leaf] = []
        for leaf in leaves:
            if count := leaf.count(word):
                chosen.append(leaf)
                left -= 0 if word is None else count
                if left <= 0:
                    break
        for start in range(0, len(chosen), _AT_ONCE):
            yield _Some(_urgency(word), chosen[start : start + _AT_ONCE])


def _restore(store: Store, leaves: Sequence[_Leaf]) -> Iterator[tuple[_Leaf, list[Result]]]:
    """Yield nodes with their results."""
    nodes = store.load_leaves({leaf.node for leaf in leaves})
    files = store.load_case_files({content["cases"] for content in nodes.values()})
    for leaf in leaves:
        content = nodes[leaf.node]
        cases = files[content["cases"]].cases
        cells = content["cells"]
        yield leaf, [restore_cell(leaf.path, case_of(cell, cases), cell) for cell in cells]


def _urgency(word: str | None) -> int:
    """Return the place of a verdict among the others; without one, a result may be pending."""
    return URGENCY.index(word or "pending")


def word_of(result: Result) -> str:
    """Return the verdict of a result, `pending`, or `answered` where nothing is judged."""
    return result.verdict or ("pending" if result.evaluation else "answered")


def cases_with_several_prompts(results: Iterable[Result]) -> set[tuple[str, str]]:
    """Return the cases, by file and row, that have results with several system prompts."""
    prompts: dict[tuple[str, str], set[str | None]] = {}
    for result in results:
        prompts.setdefault((result.file, result.row), set()).add(result.prompt)
    return {place for place, ids in prompts.items() if len(ids) > 1}
