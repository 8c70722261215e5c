"""Judges conversations by the checks of an evaluation version."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import NamedTuple

from evalstore.checks.answer_binding import HeldConversation, bind_answers, texts_of
from evalstore.checks.base import BLOCK, CheckInput, CheckOutcome
from evalstore.checks.bounds import reaches
from evalstore.checks.complexity import is_cheap_check, size_of
from evalstore.checks.runner import run_check
from evalstore.core.display import storable
from evalstore.core.errors import NotRunError
from evalstore.core.values import Json, Reply, ToolCall, Usage, Verdict
from evalstore.files.processes.limited_calls import LimitReached, call, decode_names, encode_names


def run_within_limits(check: Mapping[str, Json], subject: CheckInput) -> CheckOutcome:
    """Run a check; the verdict is `error` if it reaches a limit."""
    if is_cheap_check(check, size_of(subject), subject.schemas):
        return run_check(check, subject)
    try:
        outcome = call(__name__, "run_encoded", dict(check), _encode(check, subject), strict=True)
    except LimitReached as limit:
        return CheckOutcome("error", f"the check '{check['type']}' was stopped: {limit}")
    return CheckOutcome(*outcome)


def run_encoded(check: Json, subject: Json) -> Json:
    """Run a check in the process that has the limits."""
    try:
        return list(run_check(check, _decode(subject)))
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 - an answer may cause any exception
        return ["error", f"the check failed: {str(error) or type(error).__name__}", None]


def _encode(check: Mapping[str, Json], subject: CheckInput) -> Json:
    """Return the input of a check as JSON, without the functions that run code."""
    schema = check.get("schema")
    return {
        "reply": asdict(replace(subject.reply, wait=0.0)),
        "actual": subject.actual,
        "schemas": {schema: subject.schemas[schema]} if isinstance(schema, str) else {},
        "usd": subject.usd,
        "names": encode_names(subject.names),
        "answers": list(subject.answers),
    }


def _decode(document: Json) -> CheckInput:
    reply = document["reply"]
    calls = tuple(ToolCall(**call) for call in reply["tool_calls"])
    return CheckInput(
        Reply(**{**reply, "tool_calls": calls, "usage": Usage(**reply["usage"])}),
        document["actual"],
        document["schemas"],
        document["usd"],
        decode_names(document["names"]),
        tuple(document["answers"]),
    )


RunCode = Callable[[Mapping[str, Json], Json, Sequence[HeldConversation]], Json]
"""Runs a Python check: from the check, its input and the sessions to the returned value."""
RunCheck = Callable[[Mapping[str, Json], CheckInput], CheckOutcome]
"""Runs one check, within limits unless it is cheap."""
_LONGEST = 20_000
"""The most characters of a stored feedback."""


class ChecksVerdict(NamedTuple):
    """The result of all checks together."""

    verdict: Verdict
    feedback: str
    score: float | None
    """A score from 0 to 1 if a check is graded or weighted, or if not all checks have to pass."""
    results: tuple[Json, ...]


def schemas_of(checks: Iterable[Json]) -> set[str]:
    """Return the versions of schemas that checks refer to."""
    ids: set[str] = set()
    for check in checks:
        ids |= schemas_of(check["checks"]) if check["type"] == BLOCK else set()
        if isinstance(check.get("schema"), str):
            ids.add(check["schema"])
    return ids


class _Means(NamedTuple):
    """The inputs of checks other than the answers."""

    schemas: Mapping[str, Json]
    """The schemas by version id."""
    run_code: RunCode | None = None
    run: RunCheck = run_within_limits


def judge_by_checks(
    checks: Sequence[Json],
    sessions: Sequence[HeldConversation],
    schemas: Mapping[str, Json],
    run_code: RunCode | None = None,
    run: RunCheck = run_within_limits,
) -> ChecksVerdict:
    """Judge conversations together by checks; the schemas are by version id.

    Raises `NotRunError` when a check cannot be run in this environment.
    """
    means = _Means(schemas, run_code, run)
    results: list[Json] = []
    verdict: Verdict = "pass"
    feedback: list[str] = []
    scores: list[tuple[float, float]] = []
    for check in checks:
        if check["type"] == BLOCK:
            outcome, inner = _judge_block(check, sessions, means)
            results += inner
        else:
            outcome = _run(check, sessions, means)
            results.append(_describe(check, outcome))
        if outcome.feedback:
            feedback.append(outcome.feedback)
        scores.append((outcome.score or 0.0, check.get("weight", 1)))
        if outcome.verdict == "error" or (outcome.verdict == "fail" and verdict == "pass"):
            verdict = outcome.verdict
    ends = [each.replies[-1] for each in sessions if each.replies[-1].is_cut]
    if feedback and any(not (end.tool_calls or (end.text or "").strip()) for end in ends):
        feedback.insert(0, "the length limit was reached before the answer began")
    has_score = any("weight" in check or "pass" in check for check in checks)
    has_score = has_score or any(0 < score < 1 for score, _ in scores)
    score = _mean(scores) if has_score else None
    return ChecksVerdict(verdict, "; ".join(feedback)[:_LONGEST], score, tuple(results))


def _judge_block(
    block: Json, sessions: Sequence[HeldConversation], means: _Means
) -> tuple[CheckOutcome, list[Json]]:
    """Run a block of checks whose `pass` is `any`, or a bound of their mean score."""
    outcomes = [_run(check, sessions, means) for check in block["checks"]]
    results = [_describe(*both) for both in zip(block["checks"], outcomes, strict=True)]
    weights = [check.get("weight", 1) for check in block["checks"]]
    score = _mean(
        [(outcome.score or 0.0, by) for outcome, by in zip(outcomes, weights, strict=True)]
    )
    verdicts = [outcome.verdict for outcome in outcomes]
    by_any = block["pass"] == "any"
    passed = "pass" in verdicts if by_any else reaches(score, block["pass"])
    broken = "error" in verdicts and not (by_any and passed)
    verdict: Verdict = "error" if broken else "pass" if passed else "fail"
    words = "; ".join(outcome.feedback for outcome in outcomes if outcome.feedback)
    if verdict == "fail":
        reason = "none of the checks passes" if by_any else f"the score is {score:.4g}"
        words = f"{reason}, required {block['pass']}: {words}"
    return CheckOutcome(verdict, "" if passed and not broken else words, score), results


def _mean(scores: list[tuple[float, float]]) -> float:
    return sum(score * weight for score, weight in scores) / sum(weight for _, weight in scores)


def _describe(check: Json, outcome: CheckOutcome) -> Json:
    result = {"type": check["type"], "verdict": outcome.verdict}
    if "name" in check:
        result["name"] = check["name"]
    if outcome.feedback:
        result["feedback"] = outcome.feedback
    return result


def _run(check: Json, sessions: Sequence[HeldConversation], means: _Means) -> CheckOutcome:
    """Run a check on all sessions at once, or on each of them, depending on its scope."""
    if len(sessions) == 1 or check.get("scope", "answer") != "answer":
        return _run_once(check, sessions, means)
    outcomes = [_run_once(check, [session], means) for session in sessions]
    scores = [outcome.score for outcome in outcomes if outcome.score is not None]
    numbered = enumerate(outcomes, start=1)
    not_passed = [entry for entry in numbered if entry[1].verdict != "pass"]
    if not not_passed:
        return CheckOutcome("pass", "", min(scores, default=None))
    errors = (entry for entry in not_passed if entry[1].verdict == "error")
    number, first = next(errors, not_passed[0])
    more = f" (and {len(not_passed) - 1} more)" if len(not_passed) > 1 else ""
    words = f"answer {number} of {len(sessions)}{more}: {first.feedback}"
    return CheckOutcome(first.verdict, words, min(scores, default=None))


_FAILING = re.compile(r"answer (\d+) of (\d+)(?: \(and \d+ more\))?: ")


def failing_number(check: Json, feedback: str, count: int) -> int | None:
    """Return which of `count` answers did not pass a check for each of them, from its feedback.

    It is the first of them, from 1; None for a check of all answers at once.
    """
    found = _FAILING.match(feedback)
    if found is None or check.get("scope", "answer") != "answer" or int(found[2]) != count:
        return None
    return int(found[1])


def _run_once(check: Json, sessions: Sequence[HeldConversation], means: _Means) -> CheckOutcome:
    """Run a check once; an exception becomes the verdict `error`."""
    last, run_code = sessions[-1], means.run_code
    reply = last.replies[-1]
    try:
        bound = bind_answers(check, sessions)
        subject = CheckInput(
            reply,
            bound.check.get("actual", reply.text or ""),
            means.schemas,
            last.usd,
            names=bound.names,
            answers=tuple(texts_of(sessions)),
            run_code=run_code and (lambda code, actual: run_code(code, actual, sessions)),
            run_check=run_check,
        )
        outcome = means.run(bound.check, subject)
    except NotRunError:
        raise
    except Exception as error:  # noqa: BLE001 - an answer may cause any exception
        outcome = CheckOutcome("error", f"the check failed: {str(error) or type(error).__name__}")
    if not outcome.feedback:
        return outcome
    return outcome._replace(feedback=storable(outcome.feedback.strip()[:_LONGEST]))
