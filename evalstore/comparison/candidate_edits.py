"""Compares the candidates of two runs: which are new, removed or defined differently."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from evalstore.comparison.version_diff import Difference, Find, differ_models

if TYPE_CHECKING:
    from evalstore.core.runs import Run, RunCandidate

Candidates = Mapping[str, "RunCandidate"]
"""The candidates of a run by display id."""


def candidates_after(before: Candidates, run: Run) -> Candidates:
    """Return the candidates as of a run; one that was limited to some of them removes none."""
    here = {candidate.id: candidate for candidate in run.candidates}
    return {**before, **here} if "models" in run.selection else here


def differ_candidates(
    was: Candidates,
    now: Candidates,
    shown: Iterable[str],
    find: Find,
    *,
    with_temperature: bool = True,
) -> Iterator[tuple[str, Difference]]:
    """Yield the differences between the candidates of two runs, of those in `shown`, with ids.

    The temperature does not matter to cases that have their own.
    """
    listed = set(shown)
    for id in dict.fromkeys((*now, *was)):
        if id not in listed:
            continue
        if id not in was:
            yield id, Difference(f"new candidate {id}")
        elif id not in now:
            yield id, Difference(f"candidate {id} removed")
        else:
            old = was[id] if with_temperature else was[id]._replace(temperature=now[id].temperature)
            yield from ((id, each) for each in differ_candidate(old, now[id], find))


def differ_candidate(was: RunCandidate, now: RunCandidate, find: Find) -> Iterator[Difference]:
    """Yield how the definition of a candidate changed: its model, then its temperature."""
    if was.model != now.model:
        old, new = (find("model", each.model) or {} for each in (was, now))
        for difference in differ_models(old, new):
            yield replace(difference, subject=f"{now.id}: {difference.subject}")
    if was.temperature != now.temperature:
        values = (number_or_none(each.temperature) for each in (was, now))
        yield Difference(f"temperature of {now.id}", *values)


def number_or_none(value: float | None) -> str:
    """Return a temperature in words: `none` where none is sent."""
    return "none" if value is None else f"{value:g}"
