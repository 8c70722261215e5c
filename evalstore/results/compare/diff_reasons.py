"""Says which change explains a compared pair: of a definition, the answer or a judgement."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from evalstore.comparison.answer_pairs import ANOTHER
from evalstore.comparison.comparison import OTHER_JUDGEMENT, Pair, change_of_tests

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evalstore.core.results import Result

PairIds = tuple[tuple[str, ...], tuple[str, ...]]
"""The sessions, or the judgements, of both sides of a pair."""


@dataclass
class PairReasons:
    """What differs between the sides of pairs beside their definitions."""

    questions: Mapping[PairIds, str] = field(default_factory=dict)
    """Sessions of both sides -> how their questions differ, apart from test and prompt.

    In both directions.
    """
    judgements: Mapping[PairIds, Sequence[str]] = field(default_factory=dict)
    """Judgements of both sides -> labels and changes of evaluators between them.

    In both directions.
    """
    same_answers: Mapping[PairIds, bool] = field(default_factory=dict)
    """Sessions of both sides with the same answers to other questions, in both directions."""
    rules: tuple[str, str] = ("", "")
    """The rules by which several votes make a verdict, on both sides."""
    earlier: Mapping[Result, str] = field(default_factory=dict)
    """Results of the first side that its run lacks -> the id of the earlier run that has them."""
    is_within_run: bool = False
    """Whether the sides are two candidates, or system prompts, of one run: then only other
    definitions explain their pairs."""

    def swapped(self) -> PairReasons:
        """Return what explains the same pairs with the sides exchanged."""
        return replace(self, rules=(self.rules[1], self.rules[0]))

    def explain(self, pair: Pair) -> str:
        """Return the change that explains a pair; empty if none is known."""
        was, now = pair.was, pair.now
        if was is None or now is None:
            return "new" if was is None else "gone"
        is_other_prompt = was.prompt != now.prompt and not self.is_within_run
        changes = [
            *change_of_tests(was, now),
            *(["system prompt changed"] if is_other_prompt else []),
            *(["evaluation changed"] if was.evaluation != now.evaluation else []),
        ]
        if self.is_within_run:
            return ", ".join(changes)
        if not changes:
            changes = self._other_answer(was, now)
        if (was.sessions, now.sessions) in self.same_answers:
            changes.append("the same answer")
        changes += self.judgements.get((was.evaluations, now.evaluations), ())
        return ", ".join(changes) or self._other_judgement(was, now)

    def _other_answer(self, was: Result, now: Result) -> list[str]:
        """Return how the answers to the same question differ; empty if they are the same."""
        if was.sessions == now.sessions:
            return []
        if not was.sessions or not now.sessions:
            return ["not answered" if was.sessions else "answered"]
        return [self.questions.get((was.sessions, now.sessions), ANOTHER)]

    def _other_judgement(self, was: Result, now: Result) -> str:
        """Return how the judgement of the same answer differs; empty if it is the same."""
        if was.is_missing != now.is_missing:
            return "judged" if was.is_missing else "not judged"
        if was.evaluations != now.evaluations:
            return OTHER_JUDGEMENT
        is_filled_in = was in self.earlier or now in self.earlier
        if was.verdict != now.verdict and self.rules[0] != self.rules[1] and not is_filled_in:
            return f"verdict: {' -> '.join(self.rules)}"
        return ""
