"""The checks that an answer failed, where it differs from what they expect, and which it is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evalstore.checks.answer_binding import HeldConversation
from evalstore.checks.check_verdict import failing_number, schemas_of
from evalstore.checks.difference_locator import (
    find_differing_answer,
    flat_checks,
    locate_difference,
)
from evalstore.checks.types.judge import without_judge
from evalstore.planning.open_project import open_store
from evalstore.planning.plan import CHECKS

if TYPE_CHECKING:
    from evalstore.checks.text_differences import AnswerDifference
    from evalstore.core.results import Evaluation, Result
    from evalstore.core.values import Json
    from evalstore.planning.options import Location
    from evalstore.results.answer.answer import AnswerView
    from evalstore.results.answer.judgements import JudgementView
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
    checks = _read_checks(store, judgement.evaluation)
    schemas = _read_schemas(store, checks)
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


def _read_checks(store: Store, evaluation: str) -> list[Json]:
    """Return the checks of an evaluation version in the order of their results."""
    content = store.load_contents("evaluation", [evaluation])
    stored = content.get(evaluation, {}).get("checks", ())
    return list(flat_checks(without_judge(stored)))


def _read_schemas(store: Store, checks: Sequence[Json]) -> dict[str, Json]:
    """Return the schemas that checks refer to, by version id."""
    loaded = store.load_contents("schema", schemas_of(checks))
    return {id: schema.get("schema") for id, schema in loaded.items()}


def _conversations(store: Store, ids: Sequence[str]) -> list[HeldConversation]:
    sessions = store.find_sessions(ids)
    return [HeldConversation(sessions[id].turns) for id in ids if id in sessions]


# --- the failing answer of a group


def failing_answer_of(location: Location, result: Result, session: str) -> str:
    """Return the first answer that fails of those that are judged together with `session`."""
    if len(result.sessions) < 2:
        return session
    with open_store(location) as store:
        return find_failing_answer(store, result, session)


def find_failing_answer(store: Store, result: Result, session: str) -> str:
    """Return the first answer that fails of those that are judged together with `session`.

    It is `session` itself when the result passes, or when no check names an answer.
    """
    if len(result.sessions) < 2 or result.word == "pass":
        return session
    made = store.find_evaluations(result.evaluations)
    for id in result.evaluations:
        judgement = made.get(id)
        if judgement and session in judgement.sessions and judgement.verdict in ("fail", "error"):
            failing = _failing_session(store, judgement)
            if failing is not None:
                return failing
    return session


def _failing_session(store: Store, judgement: Evaluation) -> str | None:
    """Return the first answer of a group that did not pass, by the first check that names one."""
    results, sessions = judgement.checks, judgement.sessions
    if len(sessions) < 2 or all(each.get("verdict") == "pass" for each in results):
        return None
    checks = _read_checks(store, judgement.evaluation)
    if len(checks) != len(results):
        return None
    for check, result in zip(checks, results, strict=True):
        if result.get("verdict") == "pass":
            continue
        number = failing_number(check, str(result.get("feedback") or ""), len(sessions))
        if number is None and check.get("scope", "answer") != "answer":
            conversations = _conversations(store, sessions)
            found = find_differing_answer(check, conversations, _read_schemas(store, [check]))
            number = found.number if found and len(conversations) == len(sessions) else None
        if number:
            return sessions[number - 1]
    return None
