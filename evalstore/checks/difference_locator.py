"""Finds where answers differ from what the checks expect that they failed.

Checks are judged once, when an answer is there; their verdict and feedback are stored. This
module looks at the same answers again, only to name the exact place of a difference. Which of
several answers fails is decided by the check itself.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal

from evalstore.checks.base import BLOCK, CheckInput, NotJsonError, parse_answer, shown
from evalstore.checks.check_verdict import (
    HeldConversation,
    bind_subject,
    run_check,
    with_normalization,
)
from evalstore.checks.complexity import is_cheap_check, size_of
from evalstore.checks.text_differences import (
    AnswerDifference,
    in_own_case,
    locate_edge,
    locate_part,
    locate_pattern,
    locate_unwanted,
    locate_whole,
    place_in,
    position,
)
from evalstore.checks.types.consistency import (
    broken_order,
    differing_values,
    first_other,
    numbers_of,
    prepared_answers,
    values_of_key,
)
from evalstore.checks.types.json import (
    JsonComparison,
    JsonDifference,
    compiled_path,
    first_violation,
    step,
)
from evalstore.checks.types.number import find_last_number
from evalstore.checks.types.tool_calls import nearest_difference
from evalstore.core.display import first_difference, shorten
from evalstore.core.values import Json
from evalstore.files.yaml12 import parse_json

AnswerWithDifference = tuple[int, AnswerDifference]
"""A difference, after the number of the answer that has it, from 1."""


def _locate_unequal(_check: Mapping[str, Json], subject: CheckInput) -> AnswerWithDifference | None:
    """Return the first answer that is not equal to answer 1, and where they differ."""
    answers = prepared_answers(subject)
    number = first_other(answers)
    if number is None:
        return None
    other = answers[number - 1]
    place = place_in(subject.answers[number - 1], other, first_difference(answers[0], other))
    texts = subject.quote(subject.answers[0]), subject.quote(subject.answers[number - 1])
    difference = AnswerDifference(*texts, place if other else "", is_text=True, note=_compared(1))
    return number, difference


def _locate_difference(
    check: Mapping[str, Json], subject: CheckInput
) -> AnswerWithDifference | None:
    """Return the answer whose value of the key differs from that of another, and its place."""
    values = values_of_key(check, subject)
    pair = differing_values(check, values)
    if pair is None:
        return None
    was, now = values[pair.compared - 1], values[pair.differing - 1]
    key = subject.prepare(check["key"])
    place = step("", key)
    bound = f" ± {check['max']}" if "max" in check else ""
    difference = AnswerDifference(f"{shown(was)}{bound}", shown(now), place)
    if not bound:
        difference = _from_json(JsonComparison().difference(was, now, place)) or difference
    return pair.differing, difference._replace(note=_compared(pair.compared))


def _locate_order(check: Mapping[str, Json], subject: CheckInput) -> AnswerWithDifference | None:
    """Return the first answer whose number is not in order after that of another, and its place."""
    numbers = numbers_of(check, subject)
    if len(numbers) < len(subject.answers):
        pattern = f"a number, by the pattern {shorten(check['pattern'])}"
        return len(numbers) + 1, AnswerDifference(pattern, "", note="no number in the answer")
    pair = broken_order(check, numbers)
    if pair is None:
        return None
    sign = ">" if check["order"] == "increasing" else "<"
    sign += "" if check.get("strict") else "="
    (was, _), (now, at) = (numbers[number - 1] for number in pair)
    answer = prepared_answers(subject)[pair.differing - 1]
    place = place_in(subject.answers[pair.differing - 1], answer, at)
    note = _compared(pair.compared)
    return pair.differing, AnswerDifference(f"{sign} {was}", str(now), place, note=note)


def _compared(number: int) -> str:
    return f"compared with answer {number}"


JOINT_LOCATORS: Mapping[
    str, Callable[[Mapping[str, Json], CheckInput], AnswerWithDifference | None]
] = {
    "allEqual": _locate_unequal,
    "allSame": _locate_difference,
    "monotonic": _locate_order,
}
"""How to locate what a check of several answers found, by its type."""


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
    try:
        groups = [[each] for each in sessions] if is_for_each else [sessions]
        for number, judged in enumerate(groups, start=1):
            bound, subject = bind_subject(check, judged, schemas)
            if not is_cheap_check(bound, size_of(subject), subject.schemas):
                return None  # judging again would take long
            verdict = run_check(bound, subject).verdict
            if verdict != "pass":
                last = 0 if len(sessions) == 1 or "actual" in bound else len(sessions)
                found = _find_in(bound, subject, number if is_for_each else last)
                return found if verdict == "fail" else None
    except Exception:  # noqa: BLE001 - the stored feedback says what the check found
        return None
    return None


def _find_in(
    check: Mapping[str, Json], subject: CheckInput, number: int
) -> AnswerWithDifference | None:
    """Return the difference of this answer, or of the one that a check of several answers names."""
    if locate := JOINT_LOCATORS.get(check["type"]):
        found = locate(check, with_normalization(check, subject))
    else:
        difference = _locate(check, subject)
        found = (number, difference) if difference else None
    if found is None or found[1].expected == found[1].actual:
        return None  # of values that are cut, what differs may be left out
    return found


def _locate(check: Mapping[str, Json], subject: CheckInput) -> AnswerDifference | None:
    if check.get("pass", "").startswith("<"):
        return None  # the answer is too much like the expected text
    subject = with_normalization(check, subject)
    locate = (_UNWANTED if check.get("not") else _LOCATORS).get(check["type"])
    try:
        difference = locate(check, subject) if locate else None
    except NotJsonError:
        difference = _parse_error(check, subject)
    if difference and check.get("ignoreCase"):
        return in_own_case(check, subject, difference)
    return difference


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
    value = parse_answer(subject, fenced=check.get("fenced", False))
    if check.get("anyOf"):
        return None
    is_subset = check["type"] == "jsonSubset"
    any_order = check.get("ignoreOrder", False)
    comparison = JsonComparison(subject.prepare, is_subset, any_order, subject.quote)
    return _from_json(comparison.difference(check["expected"], value))


def _locate_violation(check: Mapping[str, Json], subject: CheckInput) -> AnswerDifference | None:
    """Return the first value that breaks the schema, by its path."""
    value = parse_answer(subject, fenced=check.get("fenced", False))
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
    value = parse_answer(subject, fenced=check.get("fenced", False))
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
    name, difference = nearest_difference(check, subject) or ("", None)
    return _from_json(difference, name)


_LOCATORS: Mapping[str, Locate] = {
    **dict.fromkeys(("equals", "oneOf", "similar", "levenshtein", "f1", "exact"), locate_whole),
    **dict.fromkeys(("bleu", "rouge"), locate_whole),
    **dict.fromkeys(("contains", "containsAny", "containsAll", "fuzzy"), locate_part),
    **dict.fromkeys(("startsWith", "endsWith"), locate_edge),
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
