"""Finds where answers differ from what the checks expect that they failed.

Checks are judged once, when an answer is there; their verdict and feedback are stored. This
module looks at the same answers again, only to name the exact place of a difference. Which of
several answers fails is decided by the check itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from operator import eq, itemgetter
from typing import NamedTuple

from evalstore.checks.base import BLOCK, CheckInput, NotJsonError, parse_answer, shown
from evalstore.checks.check_verdict import (
    HeldConversation,
    bind_subject,
    is_cheap_check,
    run_check,
    size_of,
    with_normalization,
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
from evalstore.checks.types.text import text_and_flags
from evalstore.checks.types.tool_calls import nearest_difference
from evalstore.core.display import as_text, first_difference, shorten
from evalstore.core.values import Json
from evalstore.files.processes.limited_calls import SECONDS, compiled
from evalstore.files.yaml12 import parse_json

_LONGEST = 20_000
"""The most characters of a text in which the nearest passage is searched."""
_MOST_STEPS = 5 * 10**9
"""The most steps of such a search: the square of the shorter length, times the longer one."""
_LONGEST_WORD = 40
"""The most characters by which a passage is extended to a whole word."""
_IN_PLACE = 0.1
"""How much more a passage is worth whose words are all in the same places: '105 euros' is more
like '94 euros' than 'euros.' is, although more letters differ."""
_LEAST_SCORE = 70
"""How similar a passage must be to be called the nearest one: 0..100."""
_MANY_WORDS = 4
"""From so many words on, the nearest passage may lack one of them."""
_WORD = r"\d+(?:[.,:]\d+)+|[\u2e80-\u9fff\uac00-\ud7af]|[^\W\u2e80-\u9fff\uac00-\ud7af]+|[^\w\s]"
"""A number with its decimals, an ideograph, a word or a sign."""


class AnswerDifference(NamedTuple):
    """Where an answer differs from what a check expects."""

    expected: str
    actual: str
    place: str = ""
    """A line and column, or a path in JSON; empty: the whole answer."""
    is_text: bool = False
    """Whether both are whole texts, which can be compared word by word."""
    note: str = ""


def position(text: str, at: int) -> str:
    """Return the line and column of an index in a text, both from 1."""
    line = text.count("\n", 0, at) + 1
    return f"line {line}, column {at - text.rfind(chr(10), 0, at)}"


def place_in(answer: Json, text: str, at: int) -> str:
    """Return the line and column in an answer of an index in its normalized text.

    Empty when the normalization has moved characters in a way that is not known.
    """
    whole = as_text(answer)
    if list(map(len, whole.split("\n"))) == list(map(len, text.split("\n"))):
        return position(whole, at)
    for form in (whole, whole.casefold()):
        start = form.find(text)  # the ends have been stripped
        if start >= 0 and len(form) == len(whole):
            return position(whole, start + at)
    return ""


def in_own_case(
    check: Mapping[str, Json], subject: CheckInput, difference: AnswerDifference
) -> AnswerDifference:
    """Return a difference whose texts are in upper and lower case as they are written.

    A check that ignores case has compared them in lower case. A passage that the answer has in
    several spellings stays so.
    """
    texts = check["expected"] if isinstance(check.get("expected"), list) else []
    entries = [entry for entry in texts if isinstance(entry, str)]
    expected = (
        subject.quote(entry) for entry in entries if subject.prepare(entry) == difference.expected
    )
    found = re.escape(difference.actual)
    spellings = {*re.findall(found, subject.quoted, re.IGNORECASE)} if found else ()
    actual = spellings.pop() if len(spellings) == 1 else difference.actual
    return difference._replace(expected=next(expected, difference.expected), actual=actual)


def locate_whole(check: Mapping[str, Json], subject: CheckInput) -> AnswerDifference | None:
    """Return the difference from the expected text that is nearest to the answer."""
    text = subject.text
    expected = _nearest([subject.prepare(entry) for entry in check["expected"]], text)
    if expected is None or expected == text:
        return None
    place = place_in(subject.actual, text, first_difference(expected, text)) if text else ""
    return AnswerDifference(expected, text, place, is_text=True)


def locate_edge(check: Mapping[str, Json], subject: CheckInput) -> AnswerDifference | None:
    """Return how the start or the end of the answer differs from the nearest expected text."""
    text, way = subject.text, 1 if check["type"] == "startsWith" else -1
    parts = [subject.prepare(entry) for entry in check["expected"]]
    expected = max(parts, key=lambda part: first_difference(part[::way], text[::way]), default=None)
    if expected is None or text[::way].startswith(expected[::way]):
        return None
    length = min(len(expected), len(text))
    start, end = (0, length) if way == 1 else (len(text) - length, len(text))
    start, end = _widened(text, start, end)
    at = first_difference(expected, text) if way == 1 else start
    place = place_in(subject.actual, text, at)
    return AnswerDifference(expected, text[start:end], place, is_text=True)


def locate_part(check: Mapping[str, Json], subject: CheckInput) -> AnswerDifference | None:
    """Return the passage of the answer that is nearest to a text that it lacks.

    Of `containsAll` the first missing text counts, of `containsAny` the nearest one. Without
    a passage when the texts are long, because the search would take seconds.
    """
    text = subject.text
    parts = [part for part in map(subject.prepare, check["expected"]) if part not in text]
    if check["type"] == "containsAll":
        parts = parts[:1]
    if not parts:
        return None
    longest = max(len(text), *map(len, parts))
    steps = [max(min(len(part), len(text)), 64) ** 2 * max(len(part), len(text)) for part in parts]
    if longest > _LONGEST or sum(steps) > _MOST_STEPS:
        return AnswerDifference(parts[0], "", note=f"not in {len(text):,} characters")
    part, start, end, score = max((_align(part, text) for part in parts), key=itemgetter(3))
    if score < _LEAST_SCORE:
        note = f"not in {len(text):,} characters" if text else "the answer is empty"
        return AnswerDifference(part, "", note=note)
    return AnswerDifference(
        part, text[start:end], place_in(subject.actual, text, start), is_text=True
    )


def locate_unwanted(check: Mapping[str, Json], subject: CheckInput) -> AnswerDifference | None:
    """Return the first of the texts that the answer must not contain."""
    text = subject.text
    own = subject.quoted
    for entry in check["expected"]:
        at = text.find(subject.prepare(entry))
        if at >= 0:
            return AnswerDifference(
                f"not {shorten(subject.quote(entry))}",
                shorten(own if len(own) == len(text) else text, at),
                place_in(subject.actual, text, at),
            )
    return None


def locate_pattern(check: Mapping[str, Json], subject: CheckInput) -> AnswerDifference | None:
    """Return where a pattern matches that must not, or where it matches instead of where it must.

    Raises `TimeoutError`.
    """
    text, flags = text_and_flags(check, subject)
    method = check.get("method", "search")
    unwanted = bool(check.get("not"))
    pattern = compiled(check["pattern"], flags)
    match = getattr(pattern, method if unwanted else "search")(text, timeout=SECONDS)
    expected = f"{'no match' if unwanted else 'a match'} of {shorten(check['pattern'])}"
    if match is None:
        return AnswerDifference(expected, "", note=f"no match in {len(text):,} characters")
    if not unwanted:
        expected += " at the start" if method == "match" else " with the whole answer"
    return AnswerDifference(
        expected, shorten(match[0]), place_in(subject.actual, text, match.start())
    )


def _nearest(expected: Sequence[str], text: str) -> str | None:
    """Return the expected text that is most like a text; the first when the texts are long."""
    if len(expected) < 2 or sum(map(len, expected)) * len(text) > _LONGEST**2:
        return expected[0] if expected else None
    from rapidfuzz.distance import Indel

    return max(expected, key=lambda entry: Indel.normalized_similarity(entry, text))


def _align(part: str, text: str) -> tuple[str, int, int, float]:
    """Return a text with the start, the end and the score of the passage that is most like it.

    The passage has as many words and signs as the text, up to two more, such as those of bold
    type, or one less.
    """
    from rapidfuzz.distance import Indel

    words = [match.span() for match in re.finditer(_WORD, text)]
    wanted = re.findall(_WORD, part)
    count = len(wanted)
    if not words or not count:
        return part, 0, 0, 0.0
    best = (0, 0, 0.0)
    highest = 0.0
    sizes = [count, count + 1, count + 2, *([count - 1] if count >= _MANY_WORDS else [])]
    for size in dict.fromkeys(min(size, len(words)) for size in sizes):
        for (start, _), (_, end) in zip(words, words[size - 1 :], strict=False):
            least = max(0.0, highest - _IN_PLACE)
            score = Indel.normalized_similarity(part, text[start:end], score_cutoff=least)
            if score <= least:
                continue
            found = re.findall(_WORD, text[start:end])
            in_place = sum(map(eq, wanted, found)) / count
            if score + _IN_PLACE * in_place > highest:
                best, highest = (start, end, score), score + _IN_PLACE * in_place
    start, end, score = best
    return part, start, end, score * 100


def _widened(text: str, start: int, end: int) -> tuple[int, int]:
    """Return a range without parts of words at its ends; words that are very long stay cut."""
    least, most = max(0, start - _LONGEST_WORD), min(len(text), end + _LONGEST_WORD)
    for match in re.finditer(_WORD, text[least : start + _LONGEST_WORD]):
        if match.start() < start - least < match.end():
            start = least + match.start()
    near = max(0, end - _LONGEST_WORD)
    for match in re.finditer(_WORD, text[near:most]):
        if match.start() < end - near < match.end():
            end = near + match.end()
    return start, end


# --- several answers that are judged together


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
            if verdict == "fail":
                last = 0 if len(sessions) == 1 or "actual" in bound else len(sessions)
                return _find_in(bound, subject, number if is_for_each else last)
            if verdict != "pass":
                return None
    except Exception:  # noqa: BLE001 - the stored feedback says what the check found
        return None
    return None


def _find_in(
    check: Mapping[str, Json], subject: CheckInput, number: int
) -> AnswerDifference | None:
    """Return the difference of this answer, or of the one that a check of several answers names."""
    if locate := JOINT_LOCATORS.get(check["type"]):
        number, difference = locate(check, with_normalization(check, subject)) or (0, None)
    else:
        difference = _locate(check, subject)
    if difference is None or difference.expected == difference.actual:
        return None  # of values that are cut, what differs may be left out
    answer = f"answer {number}" if number else ""
    return difference._replace(place=", ".join(filter(None, (answer, difference.place))))


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
