"""Formats compared pairs as an HTML table for notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalstore.notebooks.html_tables import Html, table, word

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from evalstore.reports.comparison import Pair


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
