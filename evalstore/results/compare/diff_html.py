"""Formats compared pairs as an HTML table for notebooks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from evalstore.core.notebook_tables import MOST_ROWS, Html, block, line, strong, table, word
from evalstore.results.compare.same_answers import same_answer_text

if TYPE_CHECKING:
    from evalstore.comparison.comparison import Comparison, Pair


def pairs_table(
    names: tuple[str, str],
    pairs: Sequence[tuple[str, Pair]],
    count: int,
    reason: Callable[[Pair], str],
    feedback: Callable[[Pair], str],
) -> Html:
    """Return the table of the first of `count` pairs; `names` are those of the sides."""
    return table(
        ["change", "file", "row", "model", *names, "reason", "feedback"],
        [
            (
                word(change),
                pair.either.file,
                pair.either.row,
                pair.either.model,
                word(pair.was.word) if pair.was else "",
                word(pair.now.word) if pair.now else "",
                reason(pair) if pair.was and pair.now else "",
                feedback(pair),
            )
            for change, pair in pairs
        ],
        count,
    )


def describe(
    comparison: Comparison,
    names: tuple[str, str],
    notes: Sequence[str],
    causes_text: Callable[[str], str],
    reason: Callable[[Pair], str],
    feedback: Callable[[Pair], str],
) -> str:
    """Return the pass rates of a comparison, and what changed; `names` are those of the sides."""
    changes = ("broke", "fixed", "changed", "new", "gone")
    listed = {change: getattr(comparison, change) for change in changes}
    pairs = ((change, pair) for change in changes for pair in listed[change])
    same = len(comparison.same_answer)
    counts = [
        *(f"{len(listed[change]):,} {change}{causes_text(change)}" for change in changes),
        *([same_answer_text(same)] if same else []),
    ]
    rates = comparison.rates_text.replace("->", "→")
    p = "" if comparison.by_verdict else f", p = {comparison.change().p:.2g}"
    return block(
        line(strong(f"{names[0]} → {names[1]}"), *notes),
        line(", ".join([*counts, f"{comparison.unchanged_count:,} unchanged"])),
        line(f"{rates}{p}" if comparison.rates()[0].judged else ""),
        pairs_table(
            names, [*islice(pairs, MOST_ROWS)], sum(map(len, listed.values())), reason, feedback
        ),
    )
