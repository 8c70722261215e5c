"""Finds where answers differ from what the checks expect that they failed.

Checks are judged once, when an answer is there; their verdict and feedback are stored. This
module looks at the same answers again, only to name the exact place of a difference. Which of
several answers fails is decided by the check itself.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal

from evalstore.checks.answer_binding import HeldConversation, bind_answers, texts_of
from evalstore.checks.base import BLOCK, CheckInput
from evalstore.checks.complexity import is_cheap_check, size_of
from evalstore.checks.joint_differences import JOINT_LOCATORS, AnswerWithDifference
from evalstore.checks.json_values import NotJsonError, parse_answer, shown
from evalstore.checks.normalization import preparer, quoter
from evalstore.checks.runner import run_check
from evalstore.checks.text_differences import (
    AnswerDifference,
    in_own_case,
    locate_end,
    locate_part,
    locate_pattern,
    locate_start,
    locate_unwanted,
    locate_whole,
    place_in,
    position,
)
from evalstore.checks.types.json import compiled_path, first_violation
from evalstore.checks.types.json_comparison import JsonComparison, JsonDifference, step
from evalstore.checks.types.number import find_last_number
from evalstore.checks.types.tool_calls import nearest_difference
from evalstore.core.display import shorten
from evalstore.core.values import Json, Verdict
from evalstore.files.json_document import parse_json

Locate = Callable[[Mapping[str, Json], CheckInput], AnswerDifference | None]
_MOST_DIGITS = 30
"""The magnitude of the largest difference of numbers that is written out."""


def flat_checks(checks: Sequence[Json]) -> Iterator[Json]:
    """Yield the checks in the order of their stored results: those of a block one by one."""
    for check in checks:
        if check["type"] == BLOCK:
            yield from check["checks"]
        else:
            yield check


def locate_difference(
    check: Json, sessions: Sequence[HeldConversation], schemas: Mapping[str, Json]
) -> AnswerDifference | None:
    """Return where answers that are judged together differ from what a failed check expects.

    It is the first answer that fails the check by itself; of checks that compare answers, the
    first that differs. None when the check passes, has no place to show, or would take long.
    `schemas` are those that the check refers to, by version id.
    """
    found = find_differing_answer(check, sessions, schemas)
    if found is None:
        return None
    number, difference = found
    if not number:
        return difference
    place = ", ".join(filter(None, (f"answer {number}", difference.place)))
    return difference._replace(place=place)


def find_differing_answer(
    check: Json, sessions: Sequence[HeldConversation], schemas: Mapping[str, Json]
) -> AnswerWithDifference | None:
    """Return the same with the number of the answer; 0 if there is only one answer."""
    located = _UNWANTED if check.get("not") else {**_LOCATORS, **JOINT_LOCATORS}
    if not sessions or check["type"] not in located:
        return None
    is_for_each = len(sessions) > 1 and check.get("scope", "answer") == "answer"
    find = _find_failing if is_for_each else _find_at_once
    try:
        found = find(check, sessions, schemas)
    except Exception:  # noqa: BLE001 - the stored feedback says what the check found
        return None
    if found is None or found.difference.expected == found.difference.actual:
        return None  # of values that are cut, what differs may be left out
    return found


def _find_failing(
    check: Json, sessions: Sequence[HeldConversation], schemas: Mapping[str, Json]
) -> AnswerWithDifference | None:
    """Return the difference of the first answer that does not pass the check."""
    for number, session in enumerate(sessions, start=1):
        bound = _bind(check, [session], schemas)
        verdict = _judge(*bound)
        if verdict != "pass":
            difference = _locate(*bound) if verdict == "fail" else None
            return AnswerWithDifference(number, difference) if difference else None
    return None


def _find_at_once(
    check: Json, sessions: Sequence[HeldConversation], schemas: Mapping[str, Json]
) -> AnswerWithDifference | None:
    """Return the difference of one answer, or of several that are judged at once."""
    bound, subject = _bind(check, sessions, schemas)
    if _judge(bound, subject) != "fail":
        return None
    if locate := JOINT_LOCATORS.get(bound["type"]):
        return locate(bound, _normalizing(bound, subject))
    difference = _locate(bound, subject)
    number = 0 if len(sessions) == 1 or "actual" in bound else len(sessions)
    return AnswerWithDifference(number, difference) if difference else None


def _bind(
    check: Json, sessions: Sequence[HeldConversation], schemas: Mapping[str, Json]
) -> tuple[Mapping[str, Json], CheckInput]:
    """Return the check filled with the answers, and its input."""
    bound = bind_answers(check, sessions)
    reply = sessions[-1].replies[-1]
    return bound.check, CheckInput(
        reply,
        bound.check.get("actual", reply.text or ""),
        schemas,
        names=bound.names,
        answers=tuple(texts_of(sessions)),
    )


def _judge(check: Mapping[str, Json], subject: CheckInput) -> Verdict | None:
    """Return the verdict of the check itself; None when judging again would take long."""
    if not is_cheap_check(check, size_of(subject), subject.schemas):
        return None
    return run_check(check, subject).verdict


def _locate(check: Mapping[str, Json], subject: CheckInput) -> AnswerDifference | None:
    if check.get("pass", "").startswith("<"):
        return None  # the answer is too much like the expected text
    subject = _normalizing(check, subject)
    locate = (_UNWANTED if check.get("not") else _LOCATORS).get(check["type"])
    difference = locate(check, subject) if locate else None
    if difference and check.get("ignoreCase"):
        return in_own_case(check, subject, difference)
    return difference


def _normalizing(check: Mapping[str, Json], subject: CheckInput) -> CheckInput:
    """Return the input of a check with the normalization of the texts that it compares."""
    steps = tuple(check.get("normalize", ()))
    prepare = preparer(steps, bool(check.get("ignoreCase")))
    return replace(subject, prepare=prepare, quote=quoter(steps))


# --- numbers


def _locate_number(check: Mapping[str, Json], subject: CheckInput) -> AnswerDifference | None:
    """Return the last number of the answer, and by how much it differs."""
    epsilon = f" ± {check['epsilon']}" if "epsilon" in check else ""
    op = check.get("op", "==")
    expected = f"{check['expected']}{epsilon}"
    expected = expected if op == "==" else f"{op} {expected}"
    text = subject.text
    last = find_last_number(text, commas=check.get("commas", False))
    if last is None:
        return AnswerDifference(expected, "", note="no number in the answer")
    number, start = last
    gap = number - Decimal(str(check["expected"]))
    note = "" if abs(gap.adjusted()) > _MOST_DIGITS else f"difference {gap:+}"
    return AnswerDifference(expected, str(number), place_in(subject.actual, text, start), note=note)


# --- JSON


def _parse_error(check: Mapping[str, Json], subject: CheckInput) -> AnswerDifference | None:
    """Return where the answer stops being JSON; None when it is JSON, or may be in fenced code."""
    text = subject.actual
    if not isinstance(text, str) or check.get("fenced"):
        return None
    try:
        parse_json(text)
    except json.JSONDecodeError as error:
        note = error.msg[:1].lower() + error.msg[1:]
        excerpt = shorten(text, error.pos)
        return AnswerDifference("JSON", excerpt, position(text, error.pos), note=note)
    except RecursionError:
        pass
    return None


def _from_json(first: JsonDifference | None, path: str = "") -> AnswerDifference | None:
    if first is None:
        return None
    place = f"{path}.{first.place}".strip(".") if path else first.place
    if first.texts:
        return AnswerDifference(*first.texts, place, is_text=True)
    return AnswerDifference(first.expected, first.actual, place)


def _locate_value(check: Mapping[str, Json], subject: CheckInput) -> AnswerDifference | None:
    """Return the first value that differs, by its path."""
    try:
        value = parse_answer(subject, fenced=check.get("fenced", False))
    except NotJsonError:
        return _parse_error(check, subject)
    if check.get("anyOf"):
        return None
    is_subset = check["type"] == "jsonSubset"
    any_order = check.get("ignoreOrder", False)
    comparison = JsonComparison(subject.prepare, is_subset, any_order, subject.quote)
    return _from_json(comparison.difference(check["expected"], value))


def _locate_violation(check: Mapping[str, Json], subject: CheckInput) -> AnswerDifference | None:
    """Return the first value that breaks the schema, by its path."""
    try:
        value = parse_answer(subject, fenced=check.get("fenced", False))
    except NotJsonError:
        return _parse_error(check, subject)
    schema = check["schema"]
    wrong = first_violation(subject.schemas[schema] if isinstance(schema, str) else schema, value)
    if wrong is None or not wrong.rule:
        return None
    place = ""
    for key in wrong.path:
        place = step(place, key)
    return AnswerDifference(wrong.rule, shown(wrong.value), place, note=wrong.message)


def _locate_at_path(check: Mapping[str, Json], subject: CheckInput) -> AnswerDifference | None:
    """Return the value at the path of the check, and where it differs."""
    try:
        value = parse_answer(subject, fenced=check.get("fenced", False))
    except NotJsonError:
        return _parse_error(check, subject)
    path = str(check["path"])
    value = compiled_path(path).search(value)
    if value is None:
        return AnswerDifference("a value", "none", path)
    if "check" not in check:
        return None
    texts = {name: check[name] for name in ("ignoreCase", "normalize") if name in check}
    inner = {**texts, **check["check"]}
    subject = CheckInput(subject.reply, value, subject.schemas)
    inside = _locate(inner, subject)
    if inside is None:
        return None
    return inside._replace(place=", ".join(filter(None, (path, inside.place))))


# --- tool calls


def _locate_call(check: Mapping[str, Json], subject: CheckInput) -> AnswerDifference | None:
    """Return the first argument that differs in the call that is nearest to a missing one."""
    nearest = nearest_difference(check, subject)
    if nearest is None:
        return None
    name, difference = nearest
    return _from_json(difference, name)


_LOCATORS: Mapping[str, Locate] = {
    **dict.fromkeys(("equals", "oneOf", "similar", "levenshtein", "f1", "exact"), locate_whole),
    **dict.fromkeys(("bleu", "rouge"), locate_whole),
    **dict.fromkeys(("contains", "containsAny", "containsAll", "fuzzy"), locate_part),
    "startsWith": locate_start,
    "endsWith": locate_end,
    "regex": locate_pattern,
    "number": _locate_number,
    "json": _parse_error,
    "jsonEquals": _locate_value,
    "jsonSubset": _locate_value,
    "jsonSchema": _locate_violation,
    "jsonPath": _locate_at_path,
    "toolCalls": _locate_call,
}
_UNWANTED: Mapping[str, Locate] = {
    **dict.fromkeys(("contains", "containsAny", "containsAll"), locate_unwanted),
    "regex": locate_pattern,
}
"""How to locate what a check with `not` must not find."""
