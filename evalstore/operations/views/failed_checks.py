"""The checks that an answer failed, and where it differs from what they expect."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evalstore.checks.answer_binding import HeldConversation
from evalstore.checks.check_verdict import schemas_of
from evalstore.checks.difference_locator import flat_checks, locate_difference
from evalstore.checks.types.judge import without_judge
from evalstore.planning.plan import CHECKS

if TYPE_CHECKING:
    from evalstore.checks.text_differences import AnswerDifference
    from evalstore.operations.views.answer import AnswerView
    from evalstore.operations.views.judgements import JudgementView
    from evalstore.store import Store

_MOST_LOCATED = 20
"""The most failed checks of a judgement that are compared with the answer again."""


@dataclass(frozen=True, slots=True)
class FailedCheck:
    """A check that did not pass, and where the answer differs from what it expects."""

    name: str
    feedback: str
    difference: AnswerDifference | None
    """None when the check has no place to show, or is not among the first that failed."""
    ignores_case: bool = False
    """Whether texts of the difference that differ only in case are the same."""


def find_failed_checks(store: Store, view: AnswerView) -> Iterator[FailedCheck]:
    """Yield the checks that did not pass in the judgements that count."""
    for judgement in view.judgements:
        if judgement.evaluator == CHECKS and not judgement.why_not:
            yield from _checks_of(store, judgement)


def _checks_of(store: Store, judgement: JudgementView) -> Iterator[FailedCheck]:
    failed = [number for number, each in enumerate(judgement.checks) if each.verdict == "fail"]
    if not failed:
        return
    content = store.load_contents("evaluation", [judgement.evaluation])
    stored = content.get(judgement.evaluation, {}).get("checks", ())
    checks = list(flat_checks(without_judge(stored)))
    schemas = {
        id: schema.get("schema")
        for id, schema in store.load_contents("schema", schemas_of(checks)).items()
    }
    conversations = _conversations(store, judgement.sessions)
    for position, number in enumerate(failed):
        result = judgement.checks[number]
        difference, ignores_case = None, False
        if len(checks) == len(judgement.checks) and position < _MOST_LOCATED:
            check = checks[number]
            difference = locate_difference(check, conversations, schemas)
            ignores_case = any(
                each.get("ignoreCase", False) for each in (check, check.get("check", {}))
            )
        yield FailedCheck(result.name, result.feedback, difference, ignores_case)


def _conversations(store: Store, ids: Sequence[str]) -> list[HeldConversation]:
    sessions = store.find_sessions(ids)
    return [HeldConversation(sessions[id].turns) for id in ids if id in sessions]
