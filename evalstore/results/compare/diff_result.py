"""What `diff` finds: two sides compared case by case, each a run or the workspace."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, islice
from typing import Any

from evalstore.comparison.comparison import Comparison, Pair
from evalstore.comparison.pair_groups import PairGroup, same_answer_text, sessions_of
from evalstore.comparison.statistics import Rate, RateChange
from evalstore.comparison.version_diff import Difference, unified
from evalstore.core.display import WORKSPACE
from evalstore.core.results import Decision, Result
from evalstore.core.runs import Run
from evalstore.core.values import Json
from evalstore.files.json_output import to_json
from evalstore.results.attempts import Attempt, Attempts
from evalstore.results.compare.diff_reasons import (
    PairAttempts,
    PairReasons,
    attempts_of,
    change_text,
    choose_attempts,
    count_attempts,
    sessions_to_show,
    shown_decisions,
)
from evalstore.results.compare.diff_sides import Causes
from evalstore.results.prompt_names import name_field

CHANGES = ("broke", "fixed", "changed", "new", "gone")
"""The lists of pairs that a comparison has as JSON."""
_MOST_EQUAL = 1_000
"""Equal results of two candidates whose answers are read."""


@dataclass
class Diff:
    """The differences between two sides."""

    was: str
    now: str
    """A run's id, or `workspace`."""
    comparison: Comparison
    edits: Mapping[str, Sequence[Difference]]
    """Test file -> the edits of its cases."""
    feedback: Mapping[Decision, str]
    """The reasons for verdicts."""
    participants: tuple[tuple[Difference, ...], tuple[Difference, ...]] = ((), ())
    """How candidates, evaluators and attempts differ, and how from the second side to the first."""
    answers: Mapping[str, str] = field(default_factory=dict)
    """Session id -> its answer, when answers were requested."""
    attempts: tuple[Attempts, Attempts] = field(default_factory=lambda: ({}, {}))
    """The attempts of the results of both sides that differ and have several."""
    prompts: dict[str, dict[str | None, str]] = field(default_factory=dict)
    """Test files with several system prompts -> the name of each."""
    notes: list[str] = field(default_factory=list)
    """Notes for a reader about the sides."""
    reasons: PairReasons = field(default_factory=PairReasons)
    """What explains the pairs, and which runs have the results that the first side lacks."""
    models: tuple[str, str] | None = None
    """The candidates, or the system prompts, that are compared, when both are of one run."""
    is_of_prompts: bool = False
    """Whether `models` are the names of system prompts: the pairs may be of several candidates."""
    has_edited_rows: bool = False
    """Whether rows that are new may be edited ones, which the field `rowId` would show."""
    prompt_names: Mapping[str | None, str] = field(default_factory=dict)
    """The names of all system prompts by id, where they are asked for."""
    causes: tuple[Causes, Causes] = (Causes(), Causes())
    """What only the first side has, and what only the second one has."""
    sources: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Test file -> what was edited: the file first, unless it was only what it uses."""
    is_now_partial: bool = False
    """Whether the newer side is a run of some cases, and the older one is not of the same."""
    runs: Mapping[str, Run] = field(default_factory=dict)
    """The runs that are sides, by id."""

    @property
    def is_empty(self) -> bool:
        """Return whether nothing differs."""
        return self.comparison.is_equal and not (self.edits or self.participants[0])

    @property
    def broke(self) -> PairGroup:
        """Return cases that passed on the first side and do not on the second."""
        return self.comparison.broke

    @property
    def fixed(self) -> PairGroup:
        """Return cases that did not pass on the first side and do on the second."""
        return self.comparison.fixed

    @property
    def changed(self) -> PairGroup:
        """Return other cases with another verdict, or with other sessions.

        Those in `same_answer` are among them.
        """
        return self.comparison.changed_or_same

    @property
    def same_answer(self) -> PairGroup:
        """Return changed cases with the same verdict and, word for word, the same answer."""
        return self.comparison.same_answer

    @property
    def new(self) -> PairGroup:
        """Return cases that only the second side has."""
        return self.comparison.new

    @property
    def gone(self) -> PairGroup:
        """Return cases that only the first side has."""
        return self.comparison.gone

    @property
    def flips(self) -> Mapping[str, PairGroup]:
        """Return what broke, is now undecided and was fixed, by these words."""
        undecided = self.comparison.now_undecided
        return {"broke": self.broke, "now undecided": undecided, "fixed": self.fixed}

    @cached_property
    def other_causes(self) -> Counter[tuple[str, str, int]]:
        """Return how many results have another verdict without a new answer.

        By cause, candidate, and what that adds to its passes: 1, 0 or -1.
        """
        pairs = chain(self.broke, self.fixed, self.comparison.changed)
        return Counter(
            (cause, now.model, (now.verdict == "pass") - (was.verdict == "pass"))
            for pair in pairs
            if (cause := self.reasons.other_cause(pair)) and (was := pair.was) and (now := pair.now)
        )

    def count_causes(self, told: Container[str] = ()) -> Counter[str]:
        """Return these numbers by cause, without changes of the rates of candidates in `told`."""
        causes = Counter[str]()
        for (cause, model, gain), count in self.other_causes.items():
            if not gain or model not in told:
                causes[cause] += count
        return causes

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

    @property
    def earlier(self) -> Mapping[Result, str]:
        """Return results of the first side that its run lacks -> the id of the run with them."""
        return self.reasons.earlier

    def swapped(self) -> Diff:
        """Return the same comparison with the sides exchanged."""
        return replace(
            self,
            was=self.now,
            now=self.was,
            comparison=self.comparison.swapped(),
            edits={
                file: [edit.swapped() for edit in listed] for file, listed in self.edits.items()
            },
            participants=(self.participants[1], self.participants[0]),
            reasons=self.reasons.swapped(),
            models=self.models and (self.models[1], self.models[0]),
            attempts=(self.attempts[1], self.attempts[0]),
            causes=(self.causes[1], self.causes[0]),
            is_now_partial=False,
        )

    def causes_of(self, change: str) -> list[str]:
        """Return why results are `new` or `gone`: `candidate mini removed`; empty for others."""
        if change not in ("gone", "new"):
            return []
        return self.causes[change == "new"].texts(change)

    def attempts_of(self, pair: Pair) -> PairAttempts:
        """Return the attempts of both sides; empty for a side that does not have several."""
        return attempts_of(pair, self.attempts)

    def shown_sessions(self, pair: Pair) -> tuple[str | None, str | None]:
        """Return the answers of both sides that show the change."""
        attempts = self.attempts_of(pair)
        return sessions_to_show(pair, attempts, choose_attempts(pair, attempts))

    def shown_decisions(self, pair: Pair) -> tuple[Decision, Decision]:
        """Return what was decided on both sides: of several attempts, on the shown one."""
        return shown_decisions(pair, self.attempts_of(pair))

    def attempts_text(self, pair: Pair) -> str:
        """Return `1 of 5 attempts failed -> 3 of 5`; empty when neither side has several."""
        return change_text(pair, self.attempts_of(pair))

    def feedback_on(self, pair: Pair) -> tuple[str, str]:
        """Return the reasons for both verdicts, of several attempts for that on the shown one."""
        was, now = (self.feedback.get(each, "") for each in self.shown_decisions(pair))
        return was, now

    def reason(self, pair: Pair) -> str:
        """Return the change that explains a pair: of a definition, the answer or a judgement."""
        return self.reasons.explain(pair)

    def answer_diff(self, pair: Pair) -> list[str]:
        """Return the unified diff of the shown answers of both sides; empty when they are equal."""
        was, now = (self.answers.get(id or "", "") for id in self.shown_sessions(pair))
        return unified(was, now, *self.names)

    @property
    def equal_with_answers(self) -> list[Pair]:
        """Return the first equal results of two candidates; none of two runs."""
        return self.comparison.unchanged[:_MOST_EQUAL] if self.models else []

    def document(self) -> Json:
        """Return the comparison as JSON."""
        pairs = {name: [*listed] for name, listed in self.pair_documents().items()}
        return self.document_with(pairs)

    def pair_documents(self) -> dict[str, Iterator[Json]]:
        """Return the pairs of each change as JSON, which is made while it is read."""
        return {name: map(self.pair_document, getattr(self, name)) for name in CHANGES}

    def document_with(
        self, pairs: Mapping[str, Json], convert: Callable[[Any], Json] = to_json
    ) -> Json:
        """Return the comparison as JSON, with these lists of its pairs.

        `convert` turns the edits of a file into JSON.
        """
        names = self.models or ()
        return {
            "from": self.was,
            "to": self.now,
            **({"prompts" if self.is_of_prompts else "models": [*names]} if names else {}),
            **pairs,
            "sameAnswer": len(self.same_answer),
            "unchanged": self.comparison.unchanged_count,
            "undecided": len(self.comparison.now_undecided),
            "causes": {change: self.causes_of(change) for change in ("new", "gone")},
            "notes": self.notes,
            "edits": [
                {
                    "file": file,
                    "edited": list(self.sources.get(file, (file,))),
                    "edits": convert(listed),
                }
                for file, listed in self.edits.items()
            ],
            "participants": to_json(self.participants[0]),
            "statistics": {
                **to_json(dict(zip(("was", "now"), self.rates, strict=True))),
                **to_json(self.change),
            },
        }

    def pair_document(self, pair: Pair) -> Json:
        """Return a pair as JSON."""
        shown = pair.either
        attempts, name = self.attempts_of(pair), self.prompt_names.get(shown.prompt)
        sessions, feedback = self.shown_sessions(pair), self.feedback_on(pair)
        document = {
            "file": shown.file,
            "row": shown.row,
            "prompt": shown.prompt,
            **({"promptName": name} if name else name_field(self.prompts, shown)),
            "model": shown.model,
            "was": side_to_json(pair.was, attempts[0], sessions[0], feedback[0], self.earlier),
            "now": side_to_json(pair.now, attempts[1], sessions[1], feedback[1], self.earlier),
            "reason": self.reason(pair),
        }
        if sessions_of(pair) in self.reasons.same_answers:
            document["sameAnswer"] = True
        if self.answers:
            document["answers"] = self.answer_diff(pair)
        return document

    def _repr_html_(self) -> str:
        """Return the comparison as notebooks show it: the pass rates, and what changed."""
        from evalstore.core.notebook_tables import MOST_ROWS, block, line, strong, table, word

        comparison, names = self.comparison, self.names
        listed = {change: getattr(comparison, change) for change in CHANGES}
        pairs = ((change, pair) for change in CHANGES for pair in listed[change])
        rows = [
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
            for change, pair in islice(pairs, MOST_ROWS)
        ]
        counts = [
            f"{len(listed[change]):,} {change}" + (f" ({', '.join(causes)})" if causes else "")
            for change in CHANGES
            for causes in [self.causes_of(change)]
        ]
        counts += [same_answer_text(same)] if (same := len(comparison.same_answer)) else []
        rates = comparison.rates_text.replace("->", "→")
        p = "" if comparison.by_verdict else f", p = {comparison.change().p:.2g}"
        header = ["change", "file", "row", "model", *names, "reason", "feedback"]
        return block(
            line(strong(f"{names[0]} → {names[1]}"), *self.notes),
            line(", ".join([*counts, f"{comparison.unchanged_count:,} unchanged"])),
            line(f"{rates}{p}" if comparison.rates()[0].judged else ""),
            table(header, rows, sum(map(len, listed.values()))),
        )


def _name(side: str) -> str:
    """Return the short id of a run, or `workspace`."""
    return side if side == WORKSPACE else side[:8]


# --- converts the sides of a compared pair, and the edits of test files, to JSON


def side_to_json(
    result: Result | None,
    attempts: Sequence[Attempt],
    session: str | None,
    feedback: str,
    earlier: Mapping[Result, str],
) -> Json:
    """Return one side of a pair as JSON; None for a side without a result.

    `session` is the answer that is shown, and `earlier` the runs of results by result.
    """
    if result is None:
        return None
    return {
        "verdict": result.verdict or ("pending" if result.evaluation else None),
        "feedback": feedback,
        "session": session,
        **({"attempts": count_attempts(attempts)} if attempts else {}),
        **({"run": earlier[result]} if result in earlier else {}),
    }
