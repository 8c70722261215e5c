"""Judges an answer by one check as its author writes it."""

from __future__ import annotations

from evalstore.checks.base import CheckInput
from evalstore.checks.check_verdict import HeldConversation, judge_by_checks
from evalstore.checks.parser import read_check
from evalstore.core.values import Json, Reply


def judged(check: Json, answer: str | None, **facts: Json) -> tuple[str, str]:
    """The verdict, and the feedback."""
    held = HeldConversation((Reply(answer, **facts),))
    opinion = judge_by_checks([read_check(check)], [held], {})
    return opinion.verdict, opinion.feedback


def verdict(check: Json, answer: str | None, **facts: Json) -> str:
    return judged(check, answer, **facts)[0]


def feedback(check: Json, answer: str | None) -> str:
    return judged(check, answer)[1]


def score(check: Json, answer: str) -> float:
    """The score of a check that gives one."""
    from evalstore.checks.check_verdict import run_check

    outcome = run_check(read_check({"pass": 0, **check}), CheckInput(Reply(answer), answer))
    assert outcome.score is not None
    return outcome.score
