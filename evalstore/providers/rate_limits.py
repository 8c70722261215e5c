"""Reads from an answer how long to wait: from its headers, or from the words of a refusal.

OpenAI, OpenRouter, Groq and many others send `x-ratelimit-remaining-requests` and
`x-ratelimit-reset-requests` (a duration such as `6m0s`), and the same for tokens. Anthropic
sends `anthropic-ratelimit-requests-remaining` and `-reset` (a date, RFC 3339). Others send the
same without the last word, in seconds or as seconds since 1970.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from evalstore.values import Json

LONGEST = 15.0
"""Seconds. Providers differ in whether `reset` is the time of the next call or of all calls."""

_NAMES = (
    ("x-ratelimit-remaining-requests", "x-ratelimit-reset-requests"),
    ("x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens"),
    ("anthropic-ratelimit-requests-remaining", "anthropic-ratelimit-requests-reset"),
    ("anthropic-ratelimit-tokens-remaining", "anthropic-ratelimit-tokens-reset"),
    ("x-ratelimit-remaining", "x-ratelimit-reset"),
    ("ratelimit-remaining", "ratelimit-reset"),
)
_PART = (
    r"(\d+(?:\.\d+)?) ?(h|hours?|m|min|minutes?|s|sec|seconds?|ms|milliseconds?)(?![a-z])(?:,? ?)"
)
_LENGTH = re.compile(rf"(?:{_PART})+")
_SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0}
_TOLD = re.compile(
    rf"\b(?:(?:re)?try again|retry(?: your request)?|wait)(?: in| after| for)?:? ((?:{_PART})+)",
    re.IGNORECASE,
)
"""How a server says in words when to call again."""
_LOOKED_AT = 4000
"""The characters of a message in which these words are looked for."""


def find_wait(headers: Mapping[str, str], *, refused: bool = False) -> float:
    """Return the seconds until another call is allowed.

    The names of the headers are in lower case, or the mapping ignores case. `refused` means that
    the call was one too many, so that a limit is used up even if no header says which.
    """
    if not any("ratelimit" in name.lower() for name in headers):
        return 0.0
    used_up = [reset for remaining, reset in _NAMES if _is_used_up(headers.get(remaining))]
    if refused and not used_up:
        used_up = [reset for _, reset in _NAMES]
    return max((_seconds(headers.get(reset, "")) for reset in used_up), default=0.0)


def find_told_wait(message: str, parts: Iterable[Mapping[str, Json]]) -> float | None:
    """Return the seconds after which a refusal says that another call is allowed.

    It may say so in its message, or as Google's `RetryInfo` in the details of one of its parts.
    """
    for part in parts:
        details = part.get("details")
        for detail in details if isinstance(details, list) else ():
            delay = detail.get("retryDelay") if isinstance(detail, dict) else None
            if isinstance(delay, str) and _LENGTH.fullmatch(delay):
                return _length(delay)
    told = _TOLD.search(message[:_LOOKED_AT])
    return _length(told[1]) if told else None


def _is_used_up(remaining: str | None) -> bool:
    try:
        return remaining is not None and float(remaining) <= 0
    except ValueError:
        return False


def _seconds(reset: str) -> float:
    """Return the seconds in a duration, a number or a future time; 0 when it cannot be read."""
    now = datetime.now(UTC).timestamp()
    try:
        number = float(reset)
    except ValueError:
        number = _length(reset) if _LENGTH.fullmatch(reset) else _date(reset) - now
    else:
        if number > 1e12:
            number /= 1000
        if number > 1e9:
            number -= now
    return min(max(number, 0.0), LONGEST) if number == number else 0.0  # not for NaN


def _length(text: str) -> float:
    return sum(
        float(number) * (0.001 if unit.startswith(("ms", "milli")) else _SECONDS[unit[0]])
        for number, unit in re.findall(_PART, text.lower())
    )


def _date(text: str) -> float:
    try:
        return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
    except (ValueError, OverflowError):
        return 0.0
