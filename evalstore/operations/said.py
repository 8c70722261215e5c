"""What people have said of answers, beside the verdicts that runs have recorded.

A run never changes: what somebody says later stands beside its verdict, and counts in the
workspace and in the runs to come.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evalstore.report.compare import Result
    from evalstore.store import Store
    from evalstore.values import Verdict


@dataclass(frozen=True, slots=True)
class Said:
    """The last word of a person on an answer."""

    id: str
    """Of the judgement."""
    person: str
    verdict: Verdict
    note: str
    at: int
    """Microseconds since 1970, UTC."""
    sessions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Opinions:
    """All last words, by what they are about."""

    by_place: Mapping[tuple[str, str], tuple[Said, ...]] = field(default_factory=dict)
    """By the evaluation version and the first session of what was judged."""

    def of(self, result: Result) -> list[Said]:
        """What people have said of a cell, under what it was judged by."""
        if not self.by_place or result.evaluation is None:
            return []
        return [
            one
            for session in dict.fromkeys(result.sessions)
            for one in self.by_place.get((result.evaluation, session), ())
            if set(one.sessions) <= set(result.sessions)
        ]

    def later(self, result: Result) -> list[Said]:
        """Those of them that its verdict does not count: they were said after the run."""
        return [one for one in self.of(result) if one.id not in result.evaluations]

    def word(self, result: Result) -> Verdict | None:
        """What people have said later; `undecided` when they disagree."""
        words = {one.verdict for one in self.later(result)}
        return None if not words else words.pop() if len(words) == 1 else "undecided"


def read_opinions(store: Store) -> Opinions:
    """What people have said, of everything that is stored."""
    last: dict[tuple[str, tuple[str, ...], str], Said] = {}
    for label in store.find_labels():
        one = label.evaluation
        said = Said(label.id, label.person, one.verdict, one.feedback, label.at, one.sessions)
        last[one.evaluation, one.sessions, label.person] = said
    found: dict[tuple[str, str], tuple[Said, ...]] = {}
    for (evaluation, sessions, _), said in last.items():
        place = (evaluation, sessions[0])
        found[place] = (*found.get(place, ()), said)
    return Opinions(found)
