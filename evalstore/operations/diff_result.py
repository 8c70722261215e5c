"""What `diff` finds: two sides compared case by case, each a run or the workspace."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from evalstore.operations.diff_attempts import (
    change_text,
    choose_attempts,
    count_attempts,
    sessions_to_show,
)
from evalstore.operations.diff_causes import Causes
from evalstore.operations.json_output import to_json
from evalstore.operations.prompt_names import name_field
from evalstore.operations.side_names import WORKSPACE
from evalstore.reports.comparison import OTHER_JUDGEMENT, Comparison, Pair, change_of_tests
from evalstore.reports.version_diff import Difference, unified
from evalstore.results import Result
from evalstore.store.results import join_feedback
from evalstore.values import Json

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evalstore.operations.attempts import Attempt, Attempts
    from evalstore.operations.diff_attempts import PairAttempts
    from evalstore.operations.diff_notes import Sessions
    from evalstore.operations.judgement_changes import Judgements
    from evalstore.reports.paired_tests import RateChange
    from evalstore.reports.statistics import Rate


@dataclass
class Diff:
    """The differences between two sides."""

    was: str
    now: str
    """A run's id, or `workspace`."""
    comparison: Comparison
    edits: dict[str, list[Difference]]
    """Test file -> the edits of its cases."""
    feedback: dict[str, str]
    """The feedback by the id of its judgement."""
    answers: dict[str, str] = field(default_factory=dict)
    """Session id -> its answer, when answers were requested."""
    attempts: tuple[Attempts, Attempts] = field(default_factory=lambda: ({}, {}))
    """The attempts of the results of both sides that differ and have several."""
    prompts: dict[str, dict[str | None, str]] = field(default_factory=dict)
    """Test files with several system prompts -> the name of each."""
    notes: list[str] = field(default_factory=list)
    """Notes for a reader about the sides."""
    question_differences: dict[tuple[Sessions, Sessions], str] = field(default_factory=dict)
    """Sessions of both sides -> how their questions differ, apart from test and prompt.

    In both directions.
    """
    judgement_differences: dict[tuple[Judgements, Judgements], list[str]] = field(
        default_factory=dict
    )
    """Judgements of both sides -> labels and changes of evaluators between them.

    In both directions.
    """
    rules: tuple[str, str] = ("", "")
    """The rules by which several votes make a verdict, on both sides."""
    earlier: dict[Result, str] = field(default_factory=dict)
    """Results of the first side that its run lacks -> the id of the earlier run that has them."""
    models: tuple[str, str] | None = None
    """The candidates that are compared, when both sides are those of one run."""
    labels: frozenset[str] = frozenset()
    """The ids of the judgements that are labels of people."""
    has_edited_rows: bool = False
    """Whether rows that are new may be edited ones, which the field `rowId` would show."""
    same_answers: frozenset[tuple[Sessions, Sessions]] = frozenset()
    """Sessions of both sides with the same answers to other questions, in both directions."""
    prompt_names: Mapping[str | None, str] = field(default_factory=dict)
    """The names of all system prompts by id, where they are asked for."""
    causes: tuple[Causes, Causes] = (Causes(), Causes())
    """What only the first side has, and what only the second one has."""
    is_now_partial: bool = False
    """Whether the newer side is a run of some cases, and the older one is not of the same."""

    @property
    def is_empty(self) -> bool:
        """Return whether nothing differs."""
        return not (self.broke or self.fixed or self.changed or self.new or self.gone or self.edits)

    @property
    def broke(self) -> list[Pair]:
        """Return cases that passed on the first side and do not on the second."""
        return self.comparison.broke

    @property
    def fixed(self) -> list[Pair]:
        """Return cases that did not pass on the first side and do on the second."""
        return self.comparison.fixed

    @property
    def changed(self) -> list[Pair]:
        """Return other cases with another verdict, or with another answer."""
        return self.comparison.changed

    @property
    def new(self) -> list[Pair]:
        """Return cases that only the second side has."""
        return self.comparison.new

    @property
    def gone(self) -> list[Pair]:
        """Return cases that only the first side has."""
        return self.comparison.gone

    @property
    def rates(self) -> tuple[Rate, Rate]:
        """Return the pass rates of both sides over the cases that are judged on both."""
        return self.comparison.rates()

    @property
    def change(self) -> RateChange:
        """Return the difference of the pass rates, with its 95 % interval and p-value."""
        return self.comparison.change()

    @property
    def p_value(self) -> float:
        """Return the p-value of the sign-flip test over files: 0..1, 1 without a difference."""
        return self.change.p

    @property
    def names(self) -> tuple[str, str]:
        """Return the names of the sides."""
        return self.models or (_name(self.was), _name(self.now))

    def swapped(self) -> Diff:
        """Return the same comparison with the sides exchanged."""
        return replace(
            self,
            was=self.now,
            now=self.was,
            comparison=self.comparison.swapped(),
            edits={
                file: [difference.swapped() for difference in differences]
                for file, differences in self.edits.items()
            },
            rules=(self.rules[1], self.rules[0]),
            models=self.models and (self.models[1], self.models[0]),
            attempts=(self.attempts[1], self.attempts[0]),
            causes=(self.causes[1], self.causes[0]),
        )

    def causes_of(self, change: str) -> list[str]:
        """Return why results are `new` or `gone`: `candidate mini removed`; empty for others."""
        if change not in ("gone", "new"):
            return []
        return self.causes[change == "new"].texts(change)

    def causes_text(self, change: str) -> str:
        """Return ` (candidate mini removed)`; empty for pairs that both sides have."""
        causes = ", ".join(self.causes_of(change))
        return f" ({causes})" if causes else ""

    def attempts_of(self, pair: Pair) -> PairAttempts:
        """Return the attempts of both sides; empty for a side that does not have several."""
        was, now = (
            known.get(side.evaluations, ()) if side else ()
            for known, side in zip(self.attempts, (pair.was, pair.now), strict=True)
        )
        return was, now

    def shown_sessions(self, pair: Pair) -> tuple[str | None, str | None]:
        """Return the answers of both sides that show the change."""
        attempts = self.attempts_of(pair)
        return sessions_to_show(pair, attempts, choose_attempts(pair, attempts))

    def shown_judgements(self, pair: Pair) -> tuple[Sequence[str], Sequence[str]]:
        """Return the judgements of both sides: of several attempts, those on the shown one."""
        attempts = self.attempts_of(pair)
        chosen = choose_attempts(pair, attempts)
        was, now = (
            attempt.judgements if listed and attempt else side.evaluations if side else ()
            for side, listed, attempt in zip((pair.was, pair.now), attempts, chosen, strict=True)
        )
        return was, now

    def attempts_text(self, pair: Pair) -> str:
        """Return `1 of 5 attempts failed -> 3 of 5`; empty when neither side has several."""
        return change_text(self.attempts_of(pair))

    def feedback_of(self, result: Result | None) -> str:
        """Return the feedback on one side of a pair: of a label, only its note."""
        return self._join_feedback(result.evaluations) if result else ""

    def _join_feedback(self, judgements: Sequence[str]) -> str:
        labels = [id for id in judgements if id in self.labels]
        return join_feedback(labels or judgements, self.feedback)

    def feedback_on(self, pair: Pair) -> tuple[str, str]:
        """Return the feedback on both sides, of several attempts that on the shown one."""
        was, now = map(self._join_feedback, self.shown_judgements(pair))
        return was, now

    def reason(self, pair: Pair) -> str:
        """Return the change that explains a pair: of a definition, the answer or a judgement."""
        was, now = pair.was, pair.now
        if was is None or now is None:
            return "new" if was is None else "gone"
        changes = [
            *change_of_tests(was, now),
            *(["system prompt changed"] if was.prompt != now.prompt else []),
            *(["evaluation changed"] if was.evaluation != now.evaluation else []),
        ]
        if self.models is not None:
            return ", ".join(changes)
        if not changes:
            changes = self._other_answer(was, now)
        elif (was.sessions, now.sessions) in self.same_answers:
            changes.append("the same answer")
        changes += self.judgement_differences.get((was.evaluations, now.evaluations), [])
        return ", ".join(changes) or self._other_judgement(was, now)

    def _other_answer(self, was: Result, now: Result) -> list[str]:
        """Return how the answers to the same question differ; empty if they are the same."""
        if was.sessions == now.sessions:
            return []
        if not was.sessions or not now.sessions:
            return ["not answered" if was.sessions else "answered"]
        return [self.question_differences.get((was.sessions, now.sessions), "another answer")]

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

    def answer_diff(self, pair: Pair) -> list[str]:
        """Return the unified diff of the shown answers of both sides; empty when they are equal."""
        was, now = (self.answers.get(id or "", "") for id in self.shown_sessions(pair))
        return unified(was, now, *self.names)

    def document(self) -> Json:
        """Return the comparison as JSON."""
        was, now = self.rates
        return {
            "from": self.was,
            "to": self.now,
            **({"models": list(self.models)} if self.models else {}),
            **{
                name: [self._pair(pair) for pair in getattr(self, name)]
                for name in ("broke", "fixed", "changed", "new", "gone")
            },
            "unchanged": len(self.comparison.unchanged),
            "causes": {change: self.causes_of(change) for change in ("new", "gone")},
            "notes": self.notes,
            "edits": [
                {"file": file, "edits": to_json(edits)} for file, edits in self.edits.items()
            ],
            "statistics": {
                "was": to_json(was),
                "now": to_json(now),
                **to_json(self.change),
            },
        }

    def _pair(self, pair: Pair) -> Json:
        shown = pair.either
        attempts, name = self.attempts_of(pair), self.prompt_names.get(shown.prompt)
        sessions, feedback = self.shown_sessions(pair), self.feedback_on(pair)
        document = {
            "file": shown.file,
            "row": shown.row,
            "prompt": shown.prompt,
            **({"promptName": name} if name else name_field(self.prompts, shown)),
            "model": shown.model,
            "was": self._side(pair.was, attempts[0], sessions[0], feedback[0]),
            "now": self._side(pair.now, attempts[1], sessions[1], feedback[1]),
            "reason": self.reason(pair),
        }
        if self.answers:
            document["answers"] = self.answer_diff(pair)
        return document

    def _side(
        self, result: Result | None, attempts: Sequence[Attempt], session: str | None, words: str
    ) -> Json:
        if result is None:
            return None
        return {
            "verdict": result.verdict or ("pending" if result.evaluation else None),
            "feedback": words,
            "session": session,
            **({"attempts": count_attempts(attempts)} if attempts else {}),
            **({"run": self.earlier[result]} if result in self.earlier else {}),
        }

    def _repr_html_(self) -> str:
        """Return the comparison as notebooks show it: the pass rates, and what changed."""
        from evalstore.notebooks.html_tables import MOST_ROWS, block, line, strong, table, word

        changes = ("broke", "fixed", "changed", "new", "gone")
        pairs = [(change, pair) for change in changes for pair in getattr(self, change)]
        counts = [
            f"{len(getattr(self, change)):,} {change}{self.causes_text(change)}"
            for change in changes
        ]
        was, now = self.rates
        return block(
            line(strong(f"{self.names[0]} → {self.names[1]}"), *self.notes),
            line(", ".join([*counts, f"{len(self.comparison.unchanged):,} unchanged"])),
            line(
                f"pass rate {was.text} → {now.text}, p = {self.p_value:.2g}" if was.judged else ""
            ),
            table(
                ["change", "file", "row", "model", *self.names, "reason", "feedback"],
                [
                    (
                        word(change),
                        pair.either.file,
                        pair.either.row,
                        pair.either.model,
                        word(pair.was.word) if pair.was else "",
                        word(pair.now.word) if pair.now else "",
                        self.reason(pair) if pair.was and pair.now else "",
                        self.feedback_on(pair)[1],
                    )
                    for change, pair in pairs[:MOST_ROWS]
                ],
                len(pairs),
            ),
        )


def _name(side: str) -> str:
    """Return the short id of a run, or `workspace`."""
    return side if side == WORKSPACE else side[:8]
