"""Finds where a text differs from what a check of texts or a pattern expects."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from operator import eq, itemgetter
from typing import NamedTuple

from evalstore.checks.base import CheckInput
from evalstore.checks.types.text import text_and_flags
from evalstore.core.display import as_text, first_difference, shorten
from evalstore.core.values import Json
from evalstore.files.processes.limited_calls import SECONDS, compiled

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
