"""Runs a check in canonical form on an answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from evalstore.checks.base import CheckInput, CheckOutcome
from evalstore.checks.bounds import reaches
from evalstore.checks.normalization import preparer
from evalstore.checks.registry import find_kind
from evalstore.display import as_text, shorten
from evalstore.values import Json


def run_check(check: Mapping[str, Json], subject: CheckInput) -> CheckOutcome:
    """Judge one answer by one check; the verdict is `error` for an unknown type or revision."""
    name = check["type"]
    kind = find_kind(name)
    if kind is None or kind.revision != check["revision"]:
        words = f"'{name}' revision {check['revision']}"
        return CheckOutcome("error", f"this version does not know check {words}")
    steps = tuple(check.get("normalize", ()))
    prepare = preparer(steps, bool(check.get("ignoreCase")))
    quote = preparer(tuple(step for step in steps if step != "casefold"), False)
    is_known = prepare is subject.prepare and quote is subject.quote
    if not is_known or subject.run_check is None:
        subject = replace(subject, prepare=prepare, quote=quote, run_check=run_check)
    finding = kind.judge(check, subject)
    bound = check.get("pass")
    passed = reaches(finding.score, bound) if bound else finding.score >= 1.0
    passed = passed if finding.passed is None else finding.passed
    is_turned_round = bool(check.get("not"))
    score = 1.0 - finding.score if is_turned_round else finding.score
    if passed != is_turned_round:
        return CheckOutcome("pass", "", score)
    words = finding.feedback
    if is_turned_round:
        words = f"expected not to hold: {_describe(check)}"
    elif bound:
        reason = f"the score is {finding.score:.4g}, required {bound}"
        words = f"{reason}: {words}" if words else reason
    label = f"{check['name']}: " if check.get("name") else ""
    return CheckOutcome("fail", label + words, score)


def _describe(check: Mapping[str, Json]) -> str:
    settings = {
        name: value
        for name, value in check.items()
        if name not in ("type", "revision", "not", "name", "weight", "scope")
    }
    return f"{check['type']} {shorten(as_text(settings))}" if settings else str(check["type"])
