"""Joins escaped surrogate pairs, which JSON has for an emoji and libyaml refuses."""

from __future__ import annotations

import re

_PAIR = re.compile(r"\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})")
_INSIDE = r'(?:[^"\\]|\\.)*+'
_GAP = r"(?:[\s,:\[\]{}]*+|\s*\n(?:\s|-\s|\w++:\s)*+)"
"""What stands between two texts in quotes when the second is surely one: signs, or a line's key."""
_REST = re.compile(rf'{_INSIDE}(?:"{_GAP}"{_INSIDE})*+', re.DOTALL)
_MOST_WORK = 5_000_000
"""The most characters that are read again for all pairs, which is about four seconds."""


def join_surrogates(text: str, line: int, column: int) -> str | None:
    """Return a document in which the text in double quotes at a place has no surrogate pairs.

    Texts that follow it directly have none either. The place is that at which YAML refuses an
    escape. None when there is no pair, or when so many are left that it would take long.
    """
    start = 0
    for _ in range(line):
        start = text.find("\n", start) + 1
    at = text.rfind("\\u", start, start + column + 2)
    if at < 0 or not _PAIR.match(text, at) or at * len(_PAIR.findall(text, at)) > _MOST_WORK:
        return None
    rest = _REST.match(text, at)
    assert rest is not None
    return text[:at] + _PAIR.sub(_character, rest[0]) + text[rest.end() :]


def _character(pair: re.Match[str]) -> str:
    high, low = int(pair[1], 16), int(pair[2], 16)
    return f"\\U{0x10000 + (high - 0xD800) * 0x400 + low - 0xDC00:08X}"
