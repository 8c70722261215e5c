"""The stored results of a run: answers, judgements, failures, and the result of each case."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from evalstore.core.values import NO_USAGE, Json, Question, Reply, ToolCall, Usage, Verdict, Word


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of a call, with the price that was used."""

    usd: float
    price: Json
    """The price in force: USD for each token, call and hour, and where it came from."""


class Session(NamedTuple):
    """One conversation held for a question: a sample under the question's id."""

    question: Question
    turns: tuple[Reply, ...]
    """One reply for each turn that the candidate filled."""
    started: int
    """Microseconds since 1970, UTC."""
    nonce: str
    cost: Cost | None = None
    limit: int | None = None
    """The token limit that cut the answer off; None when it was not cut off by ours."""
    origin: str = "run"

    @property
    def answer(self) -> Reply:
        """Return the answer of the last turn."""
        return self.turns[-1]


ShownTurn = tuple[str | None, str | None, tuple[ToolCall, ...]]
"""The text, the refusal and the tool calls of a turn."""


class ComparedSession(NamedTuple):
    """What is compared of a session."""

    id: str
    question: Question
    started: int
    """Microseconds since 1970, UTC."""
    turns: Sequence[ShownTurn]
    resolved: tuple[str, ...] = ()
    """The models that answered, as the provider named them, sorted."""


class Evaluation(NamedTuple):
    """One evaluator's judgement of a session under an evaluation version."""

    sessions: tuple[str, ...]
    evaluation: str
    evaluator: str
    verdict: Word
    started: int
    """Microseconds since 1970, UTC."""
    nonce: str
    score: float | None = None
    """0..1"""
    label: str | None = None
    feedback: str = ""
    reasoning: str = ""
    checks: tuple[Json, ...] = ()
    """The result of each check: `type`, `verdict`, `feedback`."""
    usage: Usage = NO_USAGE
    cost: Cost | None = None
    latency: float = 0.0
    """Seconds of the judge's call."""
    origin: str = "run"
    taken_from: str | None = None
    """Id of the judgement that a judge made under another evaluation version, if it is that one."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A failed call, which is logged and has no answer."""

    question: str | None
    """Id of the question that was asked; None when a judge failed."""
    subject: str | None
    """Id of the session that was to be judged."""
    evaluator: str | None
    kind: str
    message: str
    at: int
    """Microseconds since 1970, UTC."""
    nonce: str
    status: int | None = None
    attempts: int = 1
    model: str | None = None
    evaluation: str | None = None
    """Id of the evaluation version under which a judge failed."""

    @property
    def text(self) -> str:
        """Return the message behind the name of the model."""
        return f"{self.model}: {self.message}" if self.model else self.message


class Sample(NamedTuple):
    """A stored session, as far as planning needs it."""

    started: int
    id: str
    limit: int | None


class Vote(NamedTuple):
    """A stored evaluation, as far as planning needs it."""

    started: int
    id: str
    evaluation: str
    evaluator: str
    verdict: Word
    score: float | None
    human: bool = False
    """Whether the vote is a person's."""
    is_carried: bool = False
    """Whether it is carried over from another evaluation version, and its row is not stored yet."""


Decision = tuple["Verdict | None", tuple[str, ...]]
"""A verdict and the ids of the judgements that make it."""


CellKey = tuple[str, str, int, str]
"""The file, the row, the number of the system prompt, and the candidate of a result."""


class Result(NamedTuple):
    """One cell of a run or of the workspace: a case, a system prompt, a candidate."""

    file: str
    row: str
    key: str
    prompt_number: int
    """The index of the case's system prompt, which unlike its id does not change with an edit."""
    prompt: str | None
    model: str
    """Display id."""
    test: str
    evaluation: str | None
    verdict: Verdict | None
    """None: not judged, or not completely."""
    score: float | None
    sessions: tuple[str, ...]
    evaluations: tuple[str, ...]
    required_answers: int = 1
    """The number of answers required."""
    conversations: tuple[str, ...] = ()
    """The test versions of a case that is not one conversation held once; else empty."""
    failure: str = ""
    """The message of the failed call for what is missing; known of what is browsed alone."""

    @property
    def cell(self) -> CellKey:
        """Return the place of the result within its run."""
        return self.file, self.row, self.prompt_number, self.model

    @property
    def decision(self) -> Decision:
        """Return the verdict and the judgements that make it."""
        return self.verdict, self.evaluations

    @property
    def tests(self) -> tuple[str, ...]:
        """Return the test version of each conversation; it repeats for one that is held often."""
        return self.conversations or (self.test,)

    @property
    def subjects(self) -> list[tuple[str, ...]]:
        """Return the sessions of each attempt that has all answers, as they are judged together.

        Empty for several conversations while an answer is missing: of which one is not known.
        """
        counts = Counter(self.tests)
        if len(counts) > 1 and len(self.sessions) < self.required_answers:
            return []
        attempts, left = len(self.sessions) // len(self.tests), iter(self.sessions)
        of = {test: iter([*islice(left, attempts * count)]) for test, count in counts.items()}
        return [tuple(next(of[test]) for test in self.tests) for _ in range(attempts)]

    @property
    def has_attempts(self) -> bool:
        """Return whether there are several attempts at the case."""
        return self.required_answers > len(self.tests)

    @property
    def is_missing(self) -> bool:
        """Return whether an answer or a judgement is missing."""
        return self.verdict is None and (
            self.evaluation is not None or len(self.sessions) < self.required_answers
        )

    @property
    def word(self) -> str | None:
        """Return the verdict, `pending` or `no reply`; None for an answer that nothing judges."""
        missing = "no reply" if self.failure else "pending"
        return self.verdict or (missing if self.is_missing else None)

    def marked(self, failed: Mapping[CellKey, Failure]) -> Result:
        """Return the result, with the message of the call for it that failed, if any."""
        failure = failed.get(self.cell) if failed else None
        return self._replace(failure=failure.text) if failure else self
