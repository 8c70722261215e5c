"""The answers and judgements that the library returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from evalstore.core.errors import EvalstoreError
from evalstore.core.values import Verdict, Word

if TYPE_CHECKING:
    from evalstore.results.answer.answer import AnswerView, TurnView
    from evalstore.results.answer.judgements import CheckResult, JudgementView
    from evalstore.results.session_facts import SessionFacts
    from evalstore.runs.judge_text import TextJudgement


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

    def _repr_html_(self) -> str:
        """Return the answer as notebooks show it: the conversation, and its judgements."""
        from evalstore.core.display import money, short
        from evalstore.core.notebooks.html_tables import block, line, long_text, strong, table, word

        facts = self.facts
        measured = f"{money(facts.cost)} · {facts.latency:.2f} s" if facts else "no answer"
        return block(
            line(
                strong(f"{self.file} [{self.row}]" if self.row else self.file),
                f"· answer {short(self.session)}" if self.session else "",
                f"· {measured}",
            ),
            table(
                ["turn", "text"],
                [(f"{turn.role} {turn.name}".strip(), turn.text) for turn in self.conversation],
            ),
            table(
                ["judged by", "verdict", "feedback"],
                [
                    (
                        judgement.by,
                        word(judgement.verdict),
                        judgement.feedback if judgement.counts else "does not count",
                    )
                    for judgement in self.judgements
                ],
            ),
            *(long_text(failure) for failure in self.failures),
        )


@dataclass(frozen=True, slots=True)
class JudgedText:
    """The verdict on a text that a program has passed, with its judgements."""

    verdict: Verdict
    score: float | None
    """0..1; None if no judgement has one."""
    session: str
    """The id under which the store has the text, for `evalstore show`."""
    judgements: tuple[Judgement, ...]
    judged: int
    """The number of judgements that were made now; the others were stored."""
    cost: float | None
    """USD of the judgements that were made now; None if a price is not known."""


def judged_text_from(text: TextJudgement) -> JudgedText:
    """Return the verdict on a text; raises `EvalstoreError` when a judgement is missing."""
    if text.is_interrupted:
        raise KeyboardInterrupt
    if text.verdict is None or text.session is None:
        raise EvalstoreError(
            f"the text has no verdict: {text.missing}",
            hint="what was judged is stored; call it again for the rest",
        )
    return JudgedText(
        verdict=text.verdict,
        score=text.score,
        session=text.session,
        judgements=tuple(map(_judgement_from, text.judgements)),
        judged=text.judged,
        cost=text.cost,
    )


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
