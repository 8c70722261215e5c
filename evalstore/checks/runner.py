"""Runs a check in canonical form on an answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from evalstore.checks.base import CheckFinding, CheckInput, CheckOutcome
from evalstore.checks.bounds import reaches
from evalstore.checks.json_values import NotJsonError
from evalstore.checks.normalization import preparer, quoter
from evalstore.checks.registry import find_kind
from evalstore.core.display import as_text, shorten, shorten_to_line
from evalstore.core.values import Json


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
