"""Finds the most urgent results of a run, reading only the parts of long files that have some."""

from __future__ import annotations

from heapq import nsmallest
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from evalstore.store.contents import decode_content
from evalstore.store.path_trees import read_tree
from evalstore.store.result_counts import count_in_text, iterate_texts
from evalstore.store.results import case_of, restore_cell
from evalstore.values import URGENCY

if TYPE_CHECKING:
    from collections.abc import Iterable

    from evalstore.results import Result
    from evalstore.runs import Run
    from evalstore.store import Store


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
    kept: list[tuple[int, int, Result]] = []
    several: set[tuple[str, str]] = set()
    total = 0
    entries = read_tree(run.results, store.load_nodes)
    for path, node, text in iterate_texts(store, sorted(entries.items())):
        counts = count_in_text(node, text)
        first = min((_urgency(verdict) for _, verdict in counts), default=len(URGENCY))
        if len(kept) < most or first < kept[-1][0]:
            results = _restore(store, path, node, text)
            several |= cases_with_several_prompts(results)
            numbered = enumerate(results, total)
            found = ((_urgency(word_of(result)), number, result) for number, result in numbered)
            kept = nsmallest(most, chain(kept, found), key=itemgetter(0, 1))
        total += counts.total()
    shown = [result for _, _, result in kept]
    several &= {(result.file, result.row) for result in shown}
    return UrgentResults(shown, several, total - len(shown))


def _restore(store: Store, path: str, node: str, text: str) -> list[Result]:
    """Return the results in a node with cells."""
    content = decode_content("nodes", node, text, "results")
    (file,) = store.load_case_files([content["cases"]]).values()
    return [restore_cell(path, case_of(cell, file.cases), cell) for cell in content["cells"]]


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
