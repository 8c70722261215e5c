"""Explains why a question or a judgement is in the plan: what differs from its nearest relative.

The nearest relative is the same file and row in the newest run in which it was different. Each
reason is a difference between two stored descriptions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from evalstore.planning.cells.earlier_cases import EarlierCases
from evalstore.planning.cells.failed_work import failed_judgements, failed_questions
from evalstore.planning.reasons.judgement_reasons import JudgementReasons
from evalstore.planning.reasons.question_reasons import QuestionReasons
from evalstore.planning.reasons.version_reader import in_batches

if TYPE_CHECKING:
    from evalstore.planning.plan import Plan, PlannedAsk, PlannedJudgement
    from evalstore.planning.project import Project
    from evalstore.planning.reasons.reason import Reason

T = TypeVar("T")


class Explainer:
    """Explains the items of a plan."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._earlier = EarlierCases(project)
        self._questions = QuestionReasons(self._earlier)
        self.was_run = self._earlier.known.has

    def asks(self, plan: Plan) -> list[tuple[PlannedAsk, Reason]]:
        """Return every question with its reason."""
        failed = failed_questions(self._project, plan) if self._earlier.known.runs else {}
        return self._explain(
            plan.asks,
            self._questions.versions_needed,
            partial(self._questions.explain, failed=failed),
        )

    def judgements(self, plan: Plan) -> list[tuple[PlannedJudgement, Reason]]:
        """Return every judgement with its reason."""
        failed = failed_judgements(self._project, plan) if plan.judgements else {}
        reasons = JudgementReasons(self._earlier, self._questions, plan, failed)
        return self._explain(plan.judgements, reasons.versions_needed, reasons.explain)

    def carried(self, plan: Plan) -> list[tuple[PlannedJudgement, Reason]]:
        """Return every judgement that stored ones save, with the reason why it was missing."""
        reasons = JudgementReasons(self._earlier, self._questions, plan, {})
        return self._explain(plan.carried, reasons.versions_needed, reasons.explain_carried)

    def _explain(
        self,
        items: Sequence[T],
        versions_needed: Callable[[T], Iterable[tuple[str, str | None]]],
        explain: Callable[[T], Reason],
    ) -> list[tuple[T, Reason]]:
        """Return each item with its reason, after the versions of a batch were read together."""
        reasons: list[tuple[T, Reason]] = []
        for batch in in_batches(items):
            self._earlier.versions.read_ahead(
                version for item in batch for version in versions_needed(item)
            )
            reasons += [(item, explain(item)) for item in batch]
        return reasons
