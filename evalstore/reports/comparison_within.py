"""Compares the results of two candidates, or two system prompts, within one run."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from evalstore.reports.comparison import Comparison, Pair, add_pair, order_of_rows

if TYPE_CHECKING:
    from evalstore.results import Result


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
    was, now = list(was), list(now)
    order = order_of_rows([*now, *was], candidates)
    waiting = {(result.file, result.row, rest(result)): result for result in was}
    pairs = [
        Pair(waiting.pop((result.file, result.row, rest(result)), None), result) for result in now
    ]
    pairs += [Pair(result, None) for result in waiting.values()]
    comparison = Comparison(order=order)
    for pair in sorted(pairs, key=order):
        add_pair(pair, comparison, answers=False)
    return comparison
