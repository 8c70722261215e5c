"""The answers and judgements that the library returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from evalstore.values import Word

if TYPE_CHECKING:
    from evalstore.operations.views.answer import AnswerView, SessionFacts, TurnView
    from evalstore.operations.views.judgements import CheckResult, JudgementView


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict on an answer by checks, a model or a person."""

    id: str
    verdict: Word
    """`none`: a person has withdrawn a label."""
    by: str
    """`checks`, the display id of a model, or a person's name."""
    is_person: bool
    counts: bool
    """Whether it counts for the verdict on the case."""
    score: float | None
    """0..1"""
    label: str
    """The class that a classifying judge chose; or empty."""
    feedback: str
    reasoning: str
    checks: tuple[CheckResult, ...]
    """The result of each check: `verdict`, `name`, `feedback`."""
    started: int
    """Microseconds since 1970, UTC."""
    cost: float | None
    """USD"""
    latency: float
    """Seconds of the judge's call."""
    evaluation: str
    """Id of the evaluation version that the answer was judged by."""
    sessions: tuple[str, ...]
    """Ids of the judged answers."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer with its conversation and judgements; without an answer, what would be asked."""

    session: str | None
    """Id; None: there is no answer."""
    file: str
    row: str
    text: str
    """The last answer, JSON indented; empty when there is none."""
    conversation: tuple[TurnView, ...]
    """`role`, `text` and `name` of each turn after the system prompt, with `answer` where the
    candidate speaks."""
    judgements: tuple[Judgement, ...]
    """Those that count first, then the newest."""
    failures: tuple[str, ...]
    """Why an answer or a judgement is missing, newest first."""
    facts: SessionFacts | None
    """Tokens, cost (USD), latency (seconds), temperature and more; None: there is no answer."""


def answer_from(view: AnswerView) -> Answer:
    """Convert the answer that a view shows."""
    return Answer(
        session=view.id,
        file=view.file,
        row=view.row,
        text=view.answer,
        conversation=view.conversation,
        judgements=tuple(map(_judgement_from, view.judgements)),
        failures=view.failures,
        facts=view.facts,
    )


def _judgement_from(view: JudgementView) -> Judgement:
    return Judgement(
        id=view.id,
        verdict=view.verdict,  # type: ignore[arg-type]  # a stored one is always one of these
        by=view.by,
        is_person=view.is_person,
        counts=not view.why_not,
        score=view.score,
        label=view.label,
        feedback=view.feedback,
        reasoning=view.reasoning,
        checks=view.checks,
        started=view.started,
        cost=view.cost,
        latency=view.latency,
        evaluation=view.evaluation,
        sessions=view.sessions,
    )
