"""Formats the runs in progress as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalstore.display import ago, plural, safe, short

if TYPE_CHECKING:
    from evalstore.operations.runs_in_progress import RunInProgress


def in_progress_text(run: RunInProgress) -> str:
    """Return what is known of a run in progress, with the command that takes part in it."""
    by = f" by {safe(run.author)}" if run.author else ""
    answers = _done(run.asked, run.to_ask, "answer")
    done = f"{answers} and {_done(run.judged, run.to_judge, 'judgement')} so far"
    begun = f"begun{by} {ago(0, 1_000_000 * run.seconds)}"
    join = f"'evalstore run --join {short(run.run)}'"
    if not run.programs:
        return f"Run {short(run.run)}, {begun}, has no live program: {done}; {join} continues it."
    programs = plural(run.programs, "program")
    text = f"Run {short(run.run)} is in progress, {begun}, in {programs}: {done}"
    return f"{text}; {join} takes part." if run.joinable else f"{text}."


def _done(count: int, planned: int | None, word: str) -> str:
    """Return `3 of 60 answers`, or `3 answers` where it is not known how many were planned."""
    if planned is None or count > planned:
        return plural(count, word)
    return f"{count:,} of {plural(planned, word)}"
