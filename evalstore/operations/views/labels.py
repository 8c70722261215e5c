"""The labels of people, beside the verdicts that runs have recorded.

A run never changes: what somebody says later stands beside its verdict, and counts in the
workspace and in the runs to come.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evalstore.results import Result
    from evalstore.store import Store
    from evalstore.values import Word


@dataclass(frozen=True, slots=True)
class PersonLabel:
    """A word of a person on an answer."""

    id: str
    """Of the judgement."""
    person: str
    verdict: Word
    """`none`: the label is removed."""
    note: str
    at: int
    """Microseconds since 1970, UTC."""
    sessions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LabelIndex:
    """All labels of people, by the results that they are about."""

    by_place: Mapping[tuple[str, str], Sequence[PersonLabel]] = field(default_factory=dict)
    """By the evaluation version and the first session of what was judged; oldest first."""

    def of(self, result: Result) -> list[PersonLabel]:
        """What people have said of a cell, under what it was judged by.

        That is what counts in its verdict, and the last word of each person since then. A label
        that does not count and is taken back is left out.
        """
        if not self.by_place or result.evaluation is None:
            return []
        words = [
            label
            for session in dict.fromkeys(result.sessions)
            for label in self.by_place.get((result.evaluation, session), ())
            if set(label.sessions) <= set(result.sessions)
        ]
        if not words:
            return []
        last = {(word.person, word.sessions): word.id for word in words}
        counted = {(word.person, word.sessions) for word in words if word.id in result.evaluations}
        return [
            word
            for word in words
            if word.id in result.evaluations
            or (
                word.id == last[word.person, word.sessions]
                and (word.verdict != "none" or (word.person, word.sessions) in counted)
            )
        ]

    def later(self, result: Result) -> list[PersonLabel]:
        """Those of them that its verdict does not count: they were said after the run."""
        return [label for label in self.of(result) if label.id not in result.evaluations]

    def word(self, result: Result) -> Word | None:
        """What people have said later; `undecided` when they disagree."""
        words = {label.verdict for label in self.later(result)}
        words = words - {"none"} or words
        return None if not words else words.pop() if len(words) == 1 else "undecided"

    def decides(self, result: Result) -> bool:
        """Whether its verdict is what people have said."""
        return any(label.id in result.evaluations for label in self.of(result))


def read_opinions(store: Store) -> LabelIndex:
    """All labels in the store."""
    labels_of: dict[tuple[str, str], list[PersonLabel]] = {}
    for label in store.find_labels():
        evaluation = label.evaluation
        person_label = PersonLabel(
            label.id,
            label.person,
            evaluation.verdict,
            evaluation.feedback,
            label.at,
            evaluation.sessions,
        )
        labels_of.setdefault((evaluation.evaluation, evaluation.sessions[0]), []).append(
            person_label
        )
    return LabelIndex(labels_of)
