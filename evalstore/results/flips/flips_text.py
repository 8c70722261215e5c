"""Formats the verdicts of a run that changed, as one line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalstore.comparison.pair_groups import OLDER, cause_texts, same_answer_text
from evalstore.core.display import StyledLine, StyledSpan, plural, short
from evalstore.results.compare.diff_text import FLIPS

if TYPE_CHECKING:
    from evalstore.results.flips.verdict_changes import VerdictChanges

_COLOURS = {**FLIPS, "now pending": "pending", "now undecided": "undecided"}


def changes_line(changes: VerdictChanges, last: str = "the last run") -> StyledLine:
    """Return `since the last run: 2 broke, 1 fixed, 1 new failure (1 by a label)`.

    Where the run before covered other cases, it says since which run, or of each case. `last` are
    the words for the run before.
    """
    counts = (
        (len(changes.broke), "broke"),
        (len(changes.fixed), "fixed"),
        (len(changes.changed), "changed"),
        (len(changes.undecided), "now undecided"),
        (len(changes.pending), "now pending"),
    )
    since = last if changes.since == changes.last else f"run {short(changes.since)}"
    if changes.is_of_several:
        since = "the last verdict on each case"
    spans = [StyledSpan(f"since {since}: ")]
    for count, word in counts:
        if count:
            spans += [StyledSpan(", ")] if len(spans) > 1 else []
            spans.append(StyledSpan(f"{count:,} {word}", _COLOURS.get(word, "")))
    causes = {OLDER: changes.older}
    causes |= {cause: len(rows) for cause, rows in sorted(changes.causes.items())}
    listed = cause_texts(causes.items(), sum(count for count, _ in counts))
    spans += [StyledSpan(f" ({', '.join(listed)})")] if listed else []
    if changes.same_answer:
        spans += [StyledSpan(", ")] if len(spans) > 1 else []
        spans.append(StyledSpan(same_answer_text(len(changes.same_answer))))
    if len(spans) == 1:
        spans.append(StyledSpan("nothing broke or was fixed"))
    if changes.new:
        spans += [StyledSpan(", "), StyledSpan(plural(len(changes.new), "new failure"), "fail")]
    if changes.new_undecided:
        text = f"{len(changes.new_undecided):,} new and undecided"
        spans += [StyledSpan(", "), StyledSpan(text, "undecided")]
    if count := changes.more_results:
        word = "more" if count > 0 else "fewer"
        spans.append(StyledSpan(f", {plural(abs(count), f'{word} result')} than in {last}"))
    return StyledLine(tuple(spans))
