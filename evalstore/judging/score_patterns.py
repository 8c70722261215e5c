"""The score that a pattern captures in a judge's reply, if all of the reply agrees on one."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from evalstore.display import shorten
from evalstore.judging.reply_parser import Unreadable
from evalstore.processes.patterns import SECONDS, compiled
from evalstore.values import Json

if TYPE_CHECKING:
    import regex

_PIECE_BEFORE = re.compile(r"[^\W_]\Z|\d[.,_]\Z|(?<![^\W\d])[-–−]\Z")
"""What makes a value that follows it the end of a longer number, word or range."""
_PIECE_AFTER = re.compile(r"[^\W_]|[.,_]\d|\s?[-–−]\s?\d")
"""What makes a value before it the beginning of a longer number, word or range."""
_SCALE = re.compile(r"\s*(?:(%)|/\s*(\w+)|(?:out )?of\s+(\d+))")
"""What names the end of the scale of a score that stands before it, or another choice."""
_REPORTED = re.compile(
    r"[\"'“”‘’„«~]\Z|^\s*>|n['’]t\b|\b(?:not|never|refus\w+|sa(?:y|ys|id)|wr(?:ites?|itten|ote)"
    r"|asks?|asked|demand\w*|claim\w*|wants?|wanted|quot\w+)\b",
    re.IGNORECASE,
)
"""What a sentence has, before a score, that denies it or tells who else has given it."""
_REPORTED_AFTER = re.compile(
    r"\W*\b(?:is|was|are|were)\b.*\b(?:candidate|answer|response|wants?|wanted|asks?|asked|wrote|said)\b",
    re.IGNORECASE,
)
"""What follows a score that a judge reports and does not give."""
_SENTENCE = re.compile(r"[.!?]\s|\n")


def captured(pattern: str, method: str, text: str, highest: float | None = None) -> str:
    """Return the text of a pattern's first group in a reply; raises `Unreadable`.

    It must not be a piece of a longer number or word, nor on another scale than one that ends
    at `highest`. With the method `last` the pattern may match often, if it always captures the
    same, and the last match must not be a quotation.
    """
    matches = _matches(pattern, method, text)
    values = [match[1] for match in matches]
    if not values or values[-1] is None:
        raise Unreadable(f"the judge's reply does not match {shorten(pattern)}")
    if any(_is_piece(match, text, highest) for match in matches):
        raise Unreadable(f"what {shorten(pattern)} finds is a piece of something longer")
    if len({_comparable(value) for value in values}) > 1:
        raise Unreadable(f"the judge's reply matches {shorten(pattern)} in ways that differ")
    if method == "last" and _is_reported(matches[-1], text):
        raise Unreadable(f"what {shorten(pattern)} finds is a quotation or is denied")
    return str(values[-1])


def to_score(value: Json, *, is_json: bool) -> float | None:
    """Convert a value, or the text of a number that a pattern captured, to a finite score."""
    if isinstance(value, str) and not is_json:
        try:
            value = float(value)
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:
        return None


def _matches(pattern: str, method: str, text: str) -> list[regex.Match[str]]:
    """Find all matches with the method `last`; with any other the one where it looks."""
    expression = compiled(pattern)
    try:
        if method == "last":
            return list(expression.finditer(text, timeout=SECONDS))
        match = getattr(expression, method)(text, timeout=SECONDS)
    except TimeoutError:
        raise Unreadable(f"the pattern {shorten(pattern)} timed out") from None
    return [] if match is None else [match]


def _comparable(value: str | None) -> str | float | None:
    score = to_score(value, is_json=False)
    return value if score is None else score


def _is_piece(match: regex.Match[str], text: str, highest: float | None) -> bool:
    """Return whether the first group is a piece of a number or word, or on another scale."""
    start, end = match.span(1)
    value = text[start:end]
    if value[:1].isalnum() and _PIECE_BEFORE.search(text, max(0, start - 2), start):
        return True
    if not value[-1:].isalnum():
        return False
    if _PIECE_AFTER.match(text, end):
        return True
    scale = _SCALE.match(text, end) if end == match.end() else None
    if scale is None:
        return False
    named = "100" if scale[1] else scale[2] or scale[3]
    return highest is None or to_score(named, is_json=False) != highest


def _is_reported(match: regex.Match[str], text: str) -> bool:
    """Return whether a match is denied or reported: by the sentence around it or a quotation."""
    before, behind = text[: match.start()], text[match.end() :].partition("\n")[0]
    if _REPORTED.search(_SENTENCE.split(before)[-1]) or _REPORTED_AFTER.match(behind):
        return True
    if before.count("```") % 2 and not text.lstrip().startswith("```"):
        return True
    lines = before.rstrip().split("\n")
    introduces = before.endswith("\n") and lines[-1].rstrip("*_` ").endswith((":", "："))
    return introduces and _REPORTED.search(lines[-1]) is not None
