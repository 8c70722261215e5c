"""Checks that compare several answers: the runs of one row, or all rows of a group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from itertools import pairwise
from typing import NamedTuple

from evalstore.checks.base import (
    CheckArguments,
    CheckFinding,
    CheckInput,
    CheckType,
    find_values,
    read_nothing,
)
from evalstore.checks.types.number import find_last_number
from evalstore.checks.types.text import require_pattern
from evalstore.core.display import as_text, shorten
from evalstore.core.values import Json
from evalstore.files.processes.limited_calls import SECONDS, compiled


class GroupError(ValueError):
    """The answers cannot be compared; the message explains why."""


class AnswerPair(NamedTuple):
    """Two answers that a check finds at odds, by their numbers from 1."""

    compared: int
    """The answer that the other one is compared with."""
    differing: int


def prepared_answers(subject: CheckInput) -> list[str]:
    """Return the prepared texts of all answers, at least one."""
    if not subject.answers:
        raise GroupError("no answers to compare")
    return [subject.prepare(answer) or answer for answer in subject.answers]


# --- allEqual ---------------------------------------------------------------------------


def _all_equal(_check: Mapping[str, Json], subject: CheckInput) -> CheckFinding:
    answers = prepared_answers(subject)
    number = first_other(answers)
    if number is None:
        return CheckFinding(1.0)
    was, now = (shorten(subject.quote(subject.answers[at - 1])) for at in (1, number))
    words = f"answer 1 is {was}, answer {number} is {now}"
    return CheckFinding(0.0, f"expected equal answers: {words}")


def first_other(values: Sequence[Json]) -> int | None:
    """Return the number, from 1, of the first value that is not that of answer 1; None if equal."""
    numbered = enumerate(values, start=1)
    return next((number for number, value in numbered if value != values[0]), None)


# --- allSame ----------------------------------------------------------------------------


def _read_same(arguments: CheckArguments) -> dict[str, Json]:
    if not (key := arguments.text("key")):
        raise arguments.missing("key")
    most = arguments.not_negative("max")
    return {"key": key} if most is None else {"key": key, "max": most}


def _all_same(check: Mapping[str, Json], subject: CheckInput) -> CheckFinding:
    """Return whether the values of a key are equal, or numbers that differ by at most `max`."""
    values = values_of_key(check, subject)
    pair = differing_values(check, values)
    if pair is None:
        return CheckFinding(1.0)
    if "max" not in check:
        was, now = values[0], values[pair.differing - 1]
        words = f"answer 1 has {as_text(was)}, answer {pair.differing} has {as_text(now)}"
        return CheckFinding(0.0, f"expected the same {check['key']!r} in all answers: {words}")
    (low, least), (high, most) = sorted((number_value(values[n - 1], n), n) for n in pair)
    words = f"answer {least} has {low}, answer {most} has {high}"
    return CheckFinding(
        0.0, f"expected {check['key']!r} to differ by at most {check['max']}: {words}"
    )


def values_of_key(check: Mapping[str, Json], subject: CheckInput) -> list[Json]:
    """Return the values of the key in all answers; raises `GroupError`."""
    key = subject.prepare(check["key"])
    answers = enumerate(prepared_answers(subject), start=1)
    return [_value(answer, key, number) for number, answer in answers]


def differing_values(check: Mapping[str, Json], values: Sequence[Json]) -> AnswerPair | None:
    """Return the two answers whose values differ: by more than `max`, the least and the greatest.

    None when the check passes. Raises `GroupError`.
    """
    other = first_other(values)
    if other is None or "max" not in check:
        return None if other is None else AnswerPair(1, other)
    numbers = [number_value(value, number) for number, value in enumerate(values, start=1)]
    low, high = min(numbers), max(numbers)
    if high - low <= Decimal(str(check["max"])):
        return None
    return AnswerPair(*sorted((numbers.index(low) + 1, numbers.index(high) + 1)))


def _value(answer: str, key: str, number: int) -> Json:
    """Return the value of a key in the first JSON object of an answer."""
    document: Json = next((value for value, *_ in find_values(answer, "{")), None)
    if document is None:
        raise GroupError(f"answer {number} holds no JSON object: {shorten(answer)}")
    if key not in document:
        raise GroupError(f"answer {number} has no {key!r}: {shorten(as_text(document))}")
    return document[key]


def number_value(value: Json, number: int) -> Decimal:
    """Return a value as a number, also if it is written as text; true is 1, false is 0."""
    decimal = to_number(int(value) if isinstance(value, bool) else value)
    if decimal is None:
        raise GroupError(f"answer {number} has {as_text(value) or 'null'}, which is not a number")
    return decimal


# --- monotonic --------------------------------------------------------------------------

_ORDERS = ("increasing", "decreasing")


def _read_monotonic(arguments: CheckArguments) -> dict[str, Json]:
    order = arguments.choice("order", _ORDERS, "increasing")
    settings: dict[str, Json] = {"order": order, **arguments.flags("strict", "commas")}
    pattern = arguments.text("pattern")
    if pattern is not None:
        settings["pattern"] = require_pattern(pattern, arguments)
    if arguments.has("by"):
        settings["by"] = _read_order(arguments)
    return settings


def _read_order(arguments: CheckArguments) -> list[Json]:
    """Return a number for each answer, by which they are sorted; null leaves one out."""
    values = arguments.take("by")
    if not isinstance(values, list) or not values:
        raise arguments.problem("'by' must be a list with a number for each answer")
    numbers: list[Json] = []
    for value in values:
        number = None if value is None else to_number(value)
        if value is not None and number is None:
            raise arguments.problem(f"'by' has {shorten(as_text(value))}, which is not a number")
        numbers.append(None if number is None else str(number))
    return numbers


def _is_monotonic(check: Mapping[str, Json], subject: CheckInput) -> CheckFinding:
    """Return whether the numbers of the answers rise or fall, in their order or that of `by`.

    The number is the last one of an answer, or what a pattern finds in it.
    """
    numbers = numbers_of(check, subject)
    if len(numbers) < len(subject.answers):
        answer = shorten(prepared_answers(subject)[len(numbers)])
        return CheckFinding(0.0, f"answer {len(numbers) + 1} holds no number: {answer}")
    pair = broken_order(check, numbers)
    if pair is None:
        return CheckFinding(1.0)
    (was, _), (now, _) = (numbers[number - 1] for number in pair)
    words = f"{was} of answer {pair.compared} is followed by {now}"
    words += "" if pair.differing == pair.compared + 1 else f" of answer {pair.differing}"
    strictly = "strictly " if check.get("strict") else ""
    return CheckFinding(0.0, f"expected {strictly}{check['order']} numbers: {words}")


FoundNumber = tuple[Decimal, int]
"""The number in an answer, and the index of its start."""


def numbers_of(check: Mapping[str, Json], subject: CheckInput) -> list[FoundNumber]:
    """Return the number in each answer, up to one in which a pattern finds none.

    Raises `GroupError`.
    """
    numbers: list[FoundNumber] = []
    for place, answer in enumerate(prepared_answers(subject), start=1):
        if "pattern" not in check:
            found = find_last_number(answer, commas=check.get("commas", False))
            if found is None:
                raise GroupError(f"answer {place} holds no number: {shorten(answer)}")
        else:
            pattern = compiled(check["pattern"], frozenset())
            match = pattern.search(answer, timeout=SECONDS)
            group = 1 if pattern.groups else 0
            number = None if match is None else to_number(match[group])
            found = (number, match.start(group)) if match and number is not None else None
        if found is None:
            break
        numbers.append(found)
    return numbers


def broken_order(check: Mapping[str, Json], numbers: Sequence[FoundNumber]) -> AnswerPair | None:
    """Return the first two answers in a row whose numbers are not in order; raises `GroupError`."""
    known = [(place, number) for place, (number, _) in enumerate(numbers, start=1)]
    if "by" in check:
        by = check["by"]
        if len(by) != len(known):
            raise GroupError(f"'by' has {len(by)} numbers, there are {len(known)} answers")
        pairs = [pair for pair in zip(by, known, strict=True) if pair[0] is not None]
        known = [number for _, number in sorted(pairs, key=lambda pair: Decimal(pair[0]))]
    up = check["order"] == "increasing"
    for (place, current), (next_place, following) in pairwise(known):
        falls = following < current if up else following > current
        if falls or (check.get("strict") and following == current):
            return AnswerPair(place, next_place)
    return None


def to_number(value: Json) -> Decimal | None:
    """Return a value as a finite number, also if it is written as text; None for any other."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = Decimal(str(value).strip())
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


KINDS = {
    "allEqual": CheckType(
        2, read_nothing, _all_equal, main=None, joint=True, example="{scope: case}"
    ),
    "allSame": CheckType(
        3, _read_same, _all_same, main="key", joint=True, example="{key: score, scope: case}"
    ),
    "monotonic": CheckType(2, _read_monotonic, _is_monotonic, main="order", joint=True),
}
