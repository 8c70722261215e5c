"""Formats the runs in progress as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalstore.core.display import ago, plural, safe, short

if TYPE_CHECKING:
    from evalstore.store.shared_runs import RunInProgress


def in_progress_text(run: RunInProgress) -> str:
    """Return what is known of a run in progress, with the command that takes part in it."""
    return in_progress_texts(run)[0]


def in_progress_texts(run: RunInProgress) -> tuple[str, ...]:
    """Return what is known of a run in progress in ever fewer words, and how far it is in all.

    What is left out first is the command that takes part in it, last is when it began.
    """
    by = f" by {safe(run.author)}" if run.author else ""
    answers = _done(run.asked, run.to_ask, "answer")
    done = f"{answers} and {_done(run.judged, run.to_judge, 'verdict')} so far"
    age = ago(0, 1_000_000 * run.seconds)
    begun = f"begun{by} {age}"
    id = short(run.run)
    join = f"'evalstore run --join {id}'"
    numbers = f"{_share(run.asked, run.to_ask)} asked, {_share(run.judged, run.to_judge)} judged"
    if run.programs:
        text = f"Run {id} is in progress, {begun}, in {plural(run.programs, 'program')}"
        whole = f"{text}: {done}" + (f"; {join} takes part." if run.joinable else ".")
    else:
        text = f"Run {id}, {begun}, has no live program"
        whole = f"{text}: {done}; {join} continues it."
    state = "" if run.programs else ", no live program"
    return (
        whole,
        f"{text}: {done}.",
        f"run {id}{by}, {age}{state}: {done}",
        f"{id}{by}, {age}{state}: {numbers}",
        f"{id}{by}, {_brief_age(run.seconds)}{state}: {numbers}",
        f"{id}{by}{state}: {numbers}",
        f"{id}{state}: {numbers}",
    )


def _brief_age(seconds: int) -> str:
    """Return how long ago something was with the symbol of the unit, such as `3 h ago`."""
    for size, symbol in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size} {symbol} ago"
    return f"{seconds} s ago"


def _done(count: int, planned: int | None, word: str) -> str:
    """Return `3 of 60 answers`, or `3 answers` where it is not known how many were planned."""
    if planned is None or count > planned:
        return plural(count, word)
    return f"{count:,} of {plural(planned, word)}"


def _share(count: int, planned: int | None) -> str:
    """Return `3/60`, or `3` where it is not known how many were planned."""
    return f"{count:,}" if planned is None or count > planned else f"{count:,}/{planned:,}"
