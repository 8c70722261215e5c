"""Votes to verdicts. Every vote is stored; the verdict of a case is computed from them.

A tie is `undecided`, and `undecided` never counts as a pass.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import NamedTuple

from evalstore.core.values import Verdict, Vote, Word

_ROUNDING = 1e-9


class JudgedSession(NamedTuple):
    """A verdict with the mean score of its votes, 0..1."""

    verdict: Verdict
    score: float | None


def combine_votes(
    votes: Sequence[tuple[Verdict, float | None]], rule: str = "majority"
) -> JudgedSession:
    """Combine verdicts to one: `majority`, `all`, `any`, or `>= t` of the mean score.

    A vote without a score counts 1 for a pass and 0 for a fail. The result is a pass only if at
    least one vote is. Combining a single verdict with its score does not change it.
    """
    if not votes:
        raise ValueError("there are no votes to combine")
    by_mean = rule.startswith(">=")
    has_scores = any(score is not None for _, score in votes)
    counted = [_known(*vote) if by_mean else vote[1] for vote in votes]
    scores = [score for score in counted if score is not None]
    mean = math.fsum(scores) / len(scores) if has_scores else None
    verdicts = [verdict for verdict, _ in votes]
    if "error" in verdicts:
        return JudgedSession("error", mean)
    passed, failed, count = verdicts.count("pass"), verdicts.count("fail"), len(verdicts)
    if rule == "all":
        return JudgedSession("fail" if failed else "pass" if passed == count else "undecided", mean)
    if rule == "any":
        return JudgedSession("pass" if passed else "fail" if failed == count else "undecided", mean)
    if by_mean:
        return JudgedSession(_by_mean(votes, float(rule[2:])), mean)
    return JudgedSession(
        "pass" if 2 * passed > count else "fail" if 2 * failed > count else "undecided", mean
    )


def _known(verdict: Verdict, score: float | None) -> float | None:
    """Return the score of a vote in a mean; None when it is undecided."""
    if score is not None:
        return score
    return {"pass": 1.0, "fail": 0.0}.get(verdict)


def _by_mean(votes: Sequence[tuple[Verdict, float | None]], least: float) -> Verdict:
    """Compare the mean with a bound; undecided if that depends on undecided votes."""
    low, high = [], []
    for verdict, score in votes:
        is_open = verdict == "undecided"
        known = _known(verdict, score) or 0.0
        low.append(0.0 if is_open else known)
        high.append(1.0 if is_open else known)
    verdicts = {verdict for verdict, _ in votes}
    if "pass" in verdicts and _reaches(low, least):
        return "pass"
    return "undecided" if "undecided" in verdicts and _reaches(high, least) else "fail"


def _reaches(scores: list[float], least: float) -> bool:
    """Return whether the mean reaches a bound, up to rounding (0.1, 0.2, 0.3 reach 0.2)."""
    return math.fsum(scores) / len(scores) >= least - _ROUNDING


def judge_session(
    votes: Sequence[Vote], judged_by: Collection[str], checks: str, rule: str = "majority"
) -> JudgedSession | None:
    """Combine the votes on one session to its verdict; None while nobody has voted who decides.

    The majority of people decides. Without votes of people the checks decide, unless they leave
    the verdict to the models (`wants_models`). Models that are always asked cannot overrule
    failed checks. `checks` is the id of the evaluator of the checks.
    """
    cast = [(vote, vote.verdict, vote.score) for vote in votes if vote.verdict != "none"]
    if by_people := [(word, score) for vote, word, score in cast if vote.human]:
        return combine_votes(by_people)
    by_checks = [(word, score) for vote, word, score in cast if vote.evaluator == checks]
    by_models = [(word, score) for vote, word, score in cast if vote.evaluator != checks]
    if by_checks:
        checked, score = by_checks[0]
        if not wants_models(judged_by, checked) or ("always" in judged_by and checked != "pass"):
            return JudgedSession(checked, score)
    return combine_votes(by_models, rule) if by_models else None


def wants_models(judged_by: Collection[str], checked: Word) -> bool:
    """Return whether models judge an answer with this verdict of the checks.

    They judge answers that passed; with `on_fail` those that failed; with `always` all.
    """
    if "models" not in judged_by or "always" in judged_by:
        return "models" in judged_by
    return checked == ("fail" if "on_fail" in judged_by else "pass")
