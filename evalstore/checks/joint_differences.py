"""Finds which answer differs from the others, and where, for checks that compare answers.

Which answers are at odds is decided by the functions by which the checks themselves decide it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from evalstore.checks.json_values import shown
from evalstore.checks.text_differences import AnswerDifference, place_in
from evalstore.checks.types.consistency import (
    broken_order,
    differing_values,
    first_object,
    first_other,
    number_match,
    numbers_of,
    prepared_answers,
    values_of_key,
)
from evalstore.checks.types.json_comparison import JsonComparison, step
from evalstore.checks.types.number import find_last_number
from evalstore.core.display import first_difference, shorten
from evalstore.core.values import Json

if TYPE_CHECKING:
    from evalstore.checks.base import CheckInput

_BLANKS = " \t\n\r"


class AnswerWithDifference(NamedTuple):
    """A difference, and the number of the answer that has it, from 1."""

    number: int
    difference: AnswerDifference


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
    return AnswerWithDifference(number, difference)


def _locate_value(check: Mapping[str, Json], subject: CheckInput) -> AnswerWithDifference | None:
    """Return the answer whose value of the key differs from that of another, and its place."""
    values = values_of_key(check, subject)
    pair = differing_values(check, values)
    if pair is None:
        return None
    was, now = values[pair.compared - 1], values[pair.differing - 1]
    key, answer = subject.prepare(check["key"]), prepared_answers(subject)[pair.differing - 1]
    place, note = step("", key), _compared(pair.compared)
    at = _place_of_value(answer, key)
    line = "" if at is None else place_in(subject.answers[pair.differing - 1], answer, at)
    texts: tuple[str, str] | None = None
    expected, actual = shown(was), shown(now)
    if "max" in check:
        expected = f"{expected} ± {check['max']}"
    elif first := JsonComparison().difference(was, now, place):
        line = line if first.place == place else ""
        expected, actual, place, texts = first.expected, first.actual, first.place, first.texts
    place = ", ".join(filter(None, (place, line)))
    difference = AnswerDifference(expected, actual, place, note=note)
    if texts:
        difference = AnswerDifference(*texts, place, is_text=True, note=note)
    return AnswerWithDifference(pair.differing, difference)


def _locate_order(check: Mapping[str, Json], subject: CheckInput) -> AnswerWithDifference | None:
    """Return the first answer whose number is not in order after that of another, and its place."""
    numbers = numbers_of(check, subject)
    for number, value in numbers:
        if value is None:
            pattern = f"a number, by the pattern {shorten(check['pattern'])}"
            difference = AnswerDifference(pattern, "", note="no number in the answer")
            return AnswerWithDifference(number, difference)
    pair = broken_order(check, numbers)
    if pair is None:
        return None
    by_number = dict(numbers)
    sign = ">" if check["order"] == "increasing" else "<"
    sign += "" if check.get("strict") else "="
    answer = prepared_answers(subject)[pair.differing - 1]
    at = _place_of_number(check, answer)
    place = "" if at is None else place_in(subject.answers[pair.differing - 1], answer, at)
    return AnswerWithDifference(
        pair.differing,
        AnswerDifference(
            f"{sign} {by_number[pair.compared]}",
            str(by_number[pair.differing]),
            place,
            note=_compared(pair.compared),
        ),
    )


def _compared(number: int) -> str:
    return f"compared with answer {number}"


def _place_of_number(check: Mapping[str, Json], answer: str) -> int | None:
    if "pattern" in check:
        found = number_match(check, answer)
        return found and found[1]
    last = find_last_number(answer, commas=check.get("commas", False))
    return last and last[1]


def _place_of_value(text: str, key: str) -> int | None:
    """Return the index of the value of a key in the first JSON object of a text.

    Of a key that is there twice the last value counts, as it does when JSON is parsed.
    """
    found = first_object(text)
    if found is None:
        return None
    decoder = json.JSONDecoder()
    place = None
    at = _skip(text, found[1] + 1)
    while text[at] != "}":
        name, at = decoder.raw_decode(text, at)
        at = _skip(text, _skip(text, at) + 1)  # the colon
        place = at if name == key else place
        _value, at = decoder.raw_decode(text, at)
        at = _skip(text, at)
        if text[at] == ",":
            at = _skip(text, at + 1)
    return place


def _skip(text: str, at: int) -> int:
    """Return the index of the next character that is not blank."""
    while text[at] in _BLANKS:
        at += 1
    return at


JOINT_LOCATORS: Mapping[
    str, Callable[[Mapping[str, Json], CheckInput], AnswerWithDifference | None]
] = {
    "allEqual": _locate_unequal,
    "allSame": _locate_value,
    "monotonic": _locate_order,
}
"""How to locate what a check of several answers found, by its type."""
