"""Judges conversations by the checks of an evaluation version."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import NamedTuple

from evalstore.checks.answer_binding import HeldConversation, bind_answers, texts_of
from evalstore.checks.base import BLOCK, CheckFinding, CheckInput, CheckOutcome, reaches
from evalstore.checks.complexity import is_cheap_check, size_of
from evalstore.checks.json_values import NotJsonError
from evalstore.checks.normalization import preparer, quoter
from evalstore.checks.registry import find_kind
from evalstore.core.display import as_text, shorten, shorten_to_line, storable
from evalstore.core.errors import NotRunError
from evalstore.core.values import Json, Reply, ToolCall, Usage, Verdict
from evalstore.files.processes.limited_calls import LimitReached, call, decode_names, encode_names


def run_check(check: Mapping[str, Json], subject: CheckInput) -> CheckOutcome:
    """Judge one answer by one check; the verdict is `error` for an unknown type or revision."""
    name = check["type"]
    kind = find_kind(name)
    if kind is None or kind.revision != check["revision"]:
        words = f"'{name}' revision {check['revision']}"
        return CheckOutcome("error", f"this version does not know check {words}")
    subject = with_normalization(check, subject)
    try:
        finding = kind.judge(check, subject)
    except NotJsonError as problem:
        finding = CheckFinding(0.0, str(problem))
    bound = check.get("pass")
    passed = reaches(finding.score, bound) if bound else finding.score >= 1.0
    passed = passed if finding.passed is None else finding.passed
    is_turned_round = bool(check.get("not"))
    score = 1.0 - finding.score if is_turned_round else finding.score
    if passed != is_turned_round:
        notes = passed and not bound and name == "jsonSchema"
        return CheckOutcome("pass", finding.feedback if notes else "", score)
    words = finding.feedback
    if is_turned_round and bound:
        words = f"the score is {finding.score:.4g}, required not to be {bound}"
    elif is_turned_round:
        words = words or _must_not_hold(check, subject)
    elif bound:
        reason = f"the score is {finding.score:.4g}, required {bound}"
        words = f"{reason}: {words}" if words else reason
    label = f"{check['name']}: " if check.get("name") else ""
    return CheckOutcome("fail", label + words, score)


def with_normalization(check: Mapping[str, Json], subject: CheckInput) -> CheckInput:
    """Return the input of a check with the normalization of the texts that it compares."""
    steps = tuple(check.get("normalize", ()))
    prepare, quote = preparer(steps, bool(check.get("ignoreCase"))), quoter(steps)
    if prepare is subject.prepare and quote is subject.quote and subject.run_check:
        return subject
    steps = (*steps, "casefold") if check.get("ignoreCase") else steps
    return replace(subject, prepare=prepare, steps=steps, quote=quote, run_check=run_check)


def _must_not_hold(check: Mapping[str, Json], subject: CheckInput) -> str:
    """Return the feedback of a check with `not` whose type has no words for that."""
    kind = find_kind(check["type"])
    value = check.get(kind.main) if kind and kind.main else None
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, dict):  # a file with its id
        value = value.get("path", value)
    text = "" if value is None else as_text(value)
    words = shorten(text) if isinstance(value, str) or len(text) > _SHOWN else text
    is_alone = check.get("scope", "answer") == "answer"
    found = f", found {shorten_to_line(subject.quoted)}" if is_alone else ""
    return f"expected not to hold: {check['type']} {words}".rstrip() + found


_SHOWN = 60
"""The most characters of a setting that stand without quotation marks."""


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
