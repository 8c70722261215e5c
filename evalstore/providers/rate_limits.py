"""Reads the rate limits in the headers of an answer, and how long to wait.

OpenAI, OpenRouter, Groq and many others send `x-ratelimit-remaining-requests` and
`x-ratelimit-reset-requests` (a duration such as `6m0s`), and the same for tokens. Anthropic
sends `anthropic-ratelimit-requests-remaining` and `-reset` (a date, RFC 3339). Others send the
same without the last word, in seconds or as seconds since 1970.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime

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
_LENGTH = re.compile(r"(?:(\d+)h)?(?:(\d+)m(?!s))?(?:([\d.]+)s)?(?:([\d.]+)ms)?")


def find_wait(headers: Mapping[str, str]) -> float:
    """Return the seconds until another call is allowed.

    The names of the headers are in lower case, or the mapping ignores case.
    """
    if not any("ratelimit" in name.lower() for name in headers):
        return 0.0
    return max(
        (
            _seconds(headers.get(reset, ""))
            for remaining, reset in _NAMES
            if _is_used_up(headers.get(remaining))
        ),
        default=0.0,
    )


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
    match = _LENGTH.fullmatch(text)
    try:
        hours, minutes, seconds, milliseconds = (
            float(part or 0) for part in (match.groups() if match else ("", "", "", ""))
        )
    except ValueError:
        return 0.0
    return 3600 * hours + 60 * minutes + seconds + milliseconds / 1000


def _date(text: str) -> float:
    try:
        return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
    except (ValueError, OverflowError):
        return 0.0
