"""Reads from an answer how long to wait: from its headers, or from the words of a refusal.

OpenAI, OpenRouter, Groq and many others send `x-ratelimit-remaining-requests` and
`x-ratelimit-reset-requests` (a duration such as `6m0s`), and the same for tokens. Anthropic
sends `anthropic-ratelimit-requests-remaining` and `-reset` (a date, RFC 3339). Others send the
same without the last word, in seconds or as seconds since 1970.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from evalstore.core.values import Json

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
_LONGEST_TOLD = 366 * 86_400.0
"""Seconds. What a refused call is told to wait counts as this where it is longer."""
_PART = (
    r"(\d+(?:\.\d+)?) ?(d|days?|h|hours?|hrs?|m|min|minutes?|mins?|s|sec|seconds?|secs?|ms"
    r"|milliseconds?)(?![a-z])(?:,? ?(?:and )?)"
)
_LENGTH = re.compile(rf"(?:{_PART})+", re.IGNORECASE)
_SECONDS = {"d": 86_400.0, "h": 3600.0, "m": 60.0, "s": 1.0}
_TOLD = re.compile(
    r"\b(?:(?:re)?try again|retry(?: your request)?|wait)(?: in| after| for)?"
    rf"(?: about| approximately| another| at least)?:? ((?:{_PART})+)",
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
    waits = (_seconds(headers.get(reset, "")) or 0.0 for reset in used_up)
    return min(max(waits, default=0.0), LONGEST)


def find_retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds to wait, from `retry-after-ms` or `Retry-After`; None without them.

    The latter is a number of seconds or a date (RFC 9110, 10.2.3). Names are in lower case.
    """
    if (wait := _seconds(headers.get("retry-after-ms", ""))) is not None:
        return wait / 1000
    return _seconds(headers.get("retry-after", ""))


def find_told_wait(message: str, parts: Iterable[Mapping[str, Json]]) -> float | None:
    """Return the seconds after which a refusal says that another call is allowed.

    It may say so in its message, or as Google's `RetryInfo` in the details of one of its parts.
    """
    for part in parts:
        details = part.get("details")
        for detail in details if isinstance(details, list) else ():
            delay = detail.get("retryDelay") if isinstance(detail, dict) else None
            if isinstance(delay, str) and (wait := _seconds(delay)) is not None:
                return wait
    told = _TOLD.search(message[:_LOOKED_AT])
    return _seconds(told[1]) if told else None


def _is_used_up(remaining: str | None) -> bool:
    try:
        return remaining is not None and float(remaining) <= 0
    except ValueError:
        return False


def _seconds(text: str) -> float | None:
    """Return the seconds in a number, a duration or until a time; None when it cannot be read."""
    now = datetime.now(UTC).timestamp()
    try:
        number = float(text)
    except ValueError:
        number = _length(text) if _LENGTH.fullmatch(text) else _date(text) - now
    else:
        number /= 1000 if 1e12 < number < 1e13 else 1  # milliseconds since 1970
        number -= now if 1e9 < number < 1e10 else 0
    return min(max(number, 0.0), _LONGEST_TOLD) if math.isfinite(number) else None


def _length(text: str) -> float:
    return sum(
        float(number) * (0.001 if unit.startswith(("ms", "milli")) else _SECONDS[unit[0]])
        for number, unit in re.findall(_PART, text.lower())
    )


def _date(text: str) -> float:
    """Return the time of a date as in HTTP or as in RFC 3339; NaN for any other text."""
    for read in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            date = read(text)
            return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
        except (ValueError, OverflowError):
            continue
    return math.nan
