"""Finds the most urgent results of a run, reading only the nodes that have them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from evalstore.store.results import case_of, restore_cell

if TYPE_CHECKING:
    from collections.abc import Iterable

    from evalstore.core.results import Result
    from evalstore.core.runs import Run
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
    places, total = store.find_most_urgent(run.results, most)
    nodes = store.load_leaves(dict.fromkeys(node for _, node, _ in places))
    files = store.load_case_files({content["cases"] for content in nodes.values()})
    known: dict[tuple[str, str], list[Result]] = {}
    several: set[tuple[str, str]] = set()
    for path, node, _ in places:
        if (path, node) not in known:
            cells, cases = nodes[node]["cells"], files[nodes[node]["cases"]].cases
            known[path, node] = [restore_cell(path, case_of(cell, cases), cell) for cell in cells]
            several |= cases_with_several_prompts(known[path, node])
    shown = [known[path, node][place] for path, node, place in places]
    several &= {(result.file, result.row) for result in shown}
    return UrgentResults(shown, several, total - len(shown))


def word_of(result: Result) -> str:
    """Return the verdict of a result, `pending`, or `answered` where nothing is judged."""
    return result.verdict or ("pending" if result.evaluation else "answered")


def cases_with_several_prompts(results: Iterable[Result]) -> set[tuple[str, str]]:
    """Return the cases, by file and row, that have results with several system prompts."""
    prompts: dict[tuple[str, str], set[str | None]] = {}
    for result in results:
        prompts.setdefault((result.file, result.row), set()).add(result.prompt)
    return {place for place, ids in prompts.items() if len(ids) > 1}
