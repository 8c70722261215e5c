"""Compares the results of two candidates, or two system prompts, within one run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from evalstore.comparison.comparison import Comparison, sort_pairs
from evalstore.comparison.pair_groups import Pairing, pair_by_cells
from evalstore.comparison.placed_results import PlacedResults

if TYPE_CHECKING:
    from evalstore.core.results import Result


def compare_models(was: Iterable[Result], now: Iterable[Result]) -> Comparison:
    """Pair the results of two candidates in the same cases, with the same system prompts.

    Their answers differ in any case: only verdicts count as changed.
    """
    return _compare_within(was, now, lambda result: result.prompt_number, str)


def compare_prompts(
    was: Iterable[Result], now: Iterable[Result], candidates: Callable[[str], Any]
) -> Comparison:
    """Pair the results with two system prompts, of the same candidates in the same cases.

    `candidates` is the sort key of candidates. Only verdicts count as changed.
    """
    return _compare_within(was, now, lambda result: result.model, candidates)


def _compare_within(
    was: Iterable[Result],
    now: Iterable[Result],
    rest: Callable[[Result], object],
    candidates: Callable[[str], Any],
) -> Comparison:
    """Pair the results of one run by their cases and the rest of what both sides have."""
    old, new = PlacedResults(was), PlacedResults(now)
    pairs = pair_by_cells(_cells(old, rest), _cells(new, rest))
    numbers = range(len(old)), range(len(new))
    return sort_pairs(Pairing(old, new, numbers, pairs, candidates), answers=False)


def _cells(results: PlacedResults, rest: Callable[[Result], object]) -> Iterator[tuple[int, int]]:
    """Yield the number of each result with a digest of its case and the rest."""
    for number, result in enumerate(results):
        yield number, hash((result.file, result.row, rest(result)))
