"""The values that only the library has: runs, answers and judgements as a program reads them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from evalstore.values import VERDICTS, Json, Word

if TYPE_CHECKING:
    from evalstore.operations.views.answer import AnswerView, SessionFacts, TurnView
    from evalstore.operations.views.judgements import CheckResult, JudgementView

RunStatus = Literal["complete", "incomplete", "interrupted", "over budget"]


@dataclass(frozen=True, slots=True)
class RunCandidate:
    """A model that a run asked, or whose stored answers it used."""

    id: str
    """Display id, such as `openai/gpt-4o-mini`."""
    model: str
    """Id of the model version."""
    temperature: float | None


@dataclass(frozen=True, slots=True)
class RunEvaluator:
    """Who judged in a run."""

    id: str
    """Display id."""
    evaluator: str
    """Id of the evaluator."""


@dataclass(frozen=True, slots=True)
class GitState:
    """The checkout that the workspace was in."""

    commit: str
    dirty: bool | None
    """Whether it had changes; None: that could not be found out."""


@dataclass(frozen=True, slots=True)
class Run:
    """One execution of a plan: evalstore's commit."""

    id: str
    started: int
    """Microseconds since 1970, UTC."""
    ended: int
    """The same."""
    status: RunStatus
    snapshot: str
    """Id of the tree of all cases as they were."""
    results: str
    """Id of the tree of its results; `Workspace.results` reads them."""
    candidates: tuple[RunCandidate, ...]
    evaluators: tuple[RunEvaluator, ...]
    verdicts: Mapping[str, int]
    """How many cases ended with `pass`, `fail`, `undecided`, `error` and `pending`."""
    asked: int
    """Answers that models gave in it."""
    judged: int
    reused: int
    """Stored answers that counted."""
    recorded: int
    """Answers that files brought themselves."""
    failed: int
    """Calls."""
    cost: float | None
    """USD; None if a price is not known."""
    message: str | None
    selection: Mapping[str, Json]
    """What its command line selected; empty: everything."""
    git: GitState | None
    """None: the workspace was not in a checkout."""
    origin: str | None
    """`import` for the verdicts of another system, else None."""


def restore_run(id: str, content: Json) -> Run:
    """A run from its id and its stored content."""
    git = content.get("git")
    return Run(
        id=id,
        started=content["started"],
        ended=content["ended"],
        status=content["status"],
        snapshot=content["snapshot"],
        results=content["results"],
        candidates=tuple(
            RunCandidate(one["id"], one["model"], one.get("temperature"))
            for one in content.get("candidates", ())
        ),
        evaluators=tuple(
            RunEvaluator(one["id"], one["evaluator"]) for one in content.get("evaluators", ())
        ),
        verdicts={word: content["verdicts"].get(word, 0) for word in (*VERDICTS, "pending")},
        asked=content["asked"],
        judged=content["judged"],
        reused=content["reused"],
        recorded=content.get("recorded", 0),
        failed=content.get("failed", 0),
        cost=content.get("cost"),
        message=content.get("message"),
        selection=dict(content.get("selection", {})),
        git=GitState(git["commit"], git.get("dirty")) if git else None,
        origin=content.get("origin"),
    )


@dataclass(frozen=True, slots=True)
class Judgement:
    """What checks, a model or a person said of an answer."""

    id: str
    verdict: Word
    """`none`: a person takes a label back."""
    by: str
    """`checks`, the display id of a model, or a person's name."""
    is_person: bool
    counts: bool
    """Whether the verdict on the case is made of it."""
    score: float | None
    """0..1"""
    label: str
    """What a judge that classifies chose; or empty."""
    feedback: str
    reasoning: str
    checks: tuple[CheckResult, ...]
    """What each check found: `verdict`, `name`, `feedback`."""
    started: int
    """Microseconds since 1970, UTC."""
    cost: float | None
    """USD"""
    latency: float
    """Seconds of the judge's call."""
    evaluation: str
    """Id of the evaluation version that it was judged under."""
    sessions: tuple[str, ...]
    """Ids of the answers that it is about."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer with all that belongs to it; without an answer, what is asked."""

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
    """An answer from what a reader of it sees."""
    return Answer(
        session=view.id,
        file=view.file,
        row=view.row,
        text=view.answer,
        conversation=view.said,
        judgements=tuple(map(_judgement_from, view.opinions)),
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
