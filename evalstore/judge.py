"""Sessions + evaluation version -> evaluations, by checks and by models."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import NamedTuple

from evalstore.checks import run_check
from evalstore.values import Json, Reply, Verdict

VERDICT_SCHEMA: Json = {
    "type": "object",
    "properties": {"pass": {"type": "boolean"}, "feedback": {"type": "string"}},
    "required": ["pass", "feedback"],
    "additionalProperties": False,
}
"""What a judge that can be held to a schema must answer."""

_FENCED = re.compile(r"```(?:json)?\s*\n(.*?)\n\s*```", re.DOTALL)
_LONGEST = 20_000


class Opinion(NamedTuple):
    """What a judge said, read from its reply."""

    verdict: Verdict
    feedback: str = ""
    score: float | None = None
    label: str | None = None
    reasoning: str = ""


@dataclass(frozen=True, slots=True)
class Unreadable(Exception):  # noqa: N818 - it is handled, never shown by itself
    """A judge's reply that holds no verdict."""

    reason: str


def read_opinion(reply: Reply) -> Opinion:
    """The verdict in a judge's reply; raises `Unreadable`."""
    if reply.refusal and not reply.text:
        raise Unreadable(f"the judge refused: {reply.refusal}")
    found = _find_object(reply.text or "")
    if found is None:
        raise Unreadable("the judge's reply holds no JSON object with 'pass'")
    passed = found.get("pass")
    if not isinstance(passed, bool):
        raise Unreadable(
            f"the judge's 'pass' is {json.dumps(passed, ensure_ascii=False)[:40]}, not true or false"
        )
    score = found.get("score")
    if score is not None and (
        isinstance(score, bool) or not isinstance(score, int | float) or not 0 <= score <= 1
    ):
        raise Unreadable(
            f"the judge's 'score' is {json.dumps(score, ensure_ascii=False)[:40]}, not a number from 0 to 1"
        )
    label = found.get("label")
    return Opinion(
        "pass" if passed else "fail",
        feedback=_text(found.get("feedback")),
        score=None if score is None else float(score),
        label=label if isinstance(label, str) and label else None,
        reasoning=_text(found.get("reasoning")),
    )


def _text(value: Json) -> str:
    return value.strip()[:_LONGEST] if isinstance(value, str) else ""


def _find_object(text: str) -> dict[str, Json] | None:
    """The JSON object with `pass`: the whole text, a fenced block, or the last one in the text."""
    fenced = _FENCED.findall(text)
    for candidate in (text, *reversed(fenced)):
        try:
            value = json.loads(candidate)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict) and "pass" in value:
            return value
    decoder = json.JSONDecoder()
    found = None
    starts = [match.start() for match in re.finditer(r"\{", text)][-50:]
    end = -1
    for start in starts:
        if start < end:
            continue
        try:
            value, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict) and "pass" in value:
            found = value
    return found


def judge_by_checks(
    checks: list[Json], answer: Reply, schemas: dict[str, Json]
) -> tuple[Opinion, tuple[Json, ...]]:
    """The verdict of all checks together, and what each found."""
    results: list[Json] = []
    verdict: Verdict = "pass"
    feedback: list[str] = []
    for check in checks:
        outcome = run_check(check, answer, schemas)
        result = {"type": check["type"], "verdict": outcome.verdict}
        if outcome.feedback:
            result["feedback"] = outcome.feedback
            feedback.append(outcome.feedback)
        results.append(result)
        if outcome.verdict == "error" or (outcome.verdict == "fail" and verdict == "pass"):
            verdict = outcome.verdict
    return Opinion(verdict, "; ".join(feedback)), tuple(results)
