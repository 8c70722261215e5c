"""A comparison as notebooks show it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalstore.notebooks.html_tables import MOST_ROWS, block, line, strong, table, word

if TYPE_CHECKING:
    from evalstore.operations.diff import Diff


def diff_as_html(diff: Diff) -> str:
    """Return the pass rates of a comparison, and what changed."""
    changes = ("broke", "fixed", "changed", "new", "gone")
    pairs = [(change, pair) for change in changes for pair in getattr(diff, change)]
    counts = [f"{len(getattr(diff, change)):,} {change}" for change in changes]
    was, now = diff.rates
    return block(
        line(strong(f"{diff.names[0]} → {diff.names[1]}"), *diff.notes),
        line(", ".join([*counts, f"{len(diff.comparison.unchanged):,} unchanged"])),
        line(f"pass rate {was.text} → {now.text}, p = {diff.p_value:.2g}" if was.judged else ""),
        table(
            ["change", "file", "row", "model", *diff.names, "reason", "feedback"],
            [
                (
                    word(change),
                    pair.either.file,
                    pair.either.row,
                    pair.either.model,
                    word(pair.was.word) if pair.was else "",
                    word(pair.now.word) if pair.now else "",
                    diff.reason(pair) if pair.was and pair.now else "",
                    diff.feedback_of(pair.now),
                )
                for change, pair in pairs[:MOST_ROWS]
            ],
            len(pairs),
        ),
    )
