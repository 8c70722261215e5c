"""Reads the rate limits in the headers of an answer, and how long to wait.

OpenAI, OpenRouter, Groq and many others send `x-ratelimit-remaining-requests` and
`x-ratelimit-reset-requests` (a length such as `6m0s`), and the same for tokens; Anthropic
sends `anthropic-ratelimit-requests-remaining` and `-reset` (a date, RFC 3339); others the
same without the last word, in seconds or as seconds since 1970.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime

LONGEST = 15.0
"""Seconds. Whether `reset` means the next call or all of them differs: a refusal says more."""

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
    """Seconds until there is room for another call.

    Names are in lower case, or found in any.
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
    """A length, a number of seconds, or a time to come; 0 when it cannot be read."""
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
    return min(max(number, 0.0), LONGEST) if number == number else 0.0  # NaN is not itself


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
