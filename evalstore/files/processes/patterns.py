"""Regular expressions, compiled and searched within limits of time and memory."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING

from evalstore.core.errors import NotRunError
from evalstore.files.processes.limited_calls import LimitReached, call
from evalstore.files.processes.pattern_complexity import is_cheap_pattern, is_small

if TYPE_CHECKING:
    import regex

_FLAGS = {"ignoreCase": "I", "multiline": "M", "dotAll": "S", "verbose": "X", "ascii": "A"}
SECONDS = 1.0
"""Time limit of one pattern on one answer."""


@lru_cache(maxsize=512)
def compiled(pattern: str, flags: frozenset[str] = frozenset()) -> regex.Pattern[str]:
    """Compile a valid pattern."""
    import regex

    bits = regex.VERSION0
    for flag in flags:
        bits |= getattr(regex, _FLAGS[flag])
    return regex.compile(pattern, bits)


def pattern_problem(pattern: str, flags: frozenset[str] = frozenset()) -> str | None:
    """Return why a pattern is not a regular expression; None when it is valid.

    A pattern that may be large when it is compiled is tried with limits of time and memory first.
    """
    if not is_small(pattern):
        try:
            problem: str | None = call(__name__, "compile_problem", pattern, sorted(flags))
        except (LimitReached, NotRunError) as reason:
            return f"when it is compiled, {reason}"
        return problem
    return compile_problem(pattern, flags)


def compile_problem(pattern: str, flags: Iterable[str]) -> str | None:
    """Return why a pattern cannot be compiled; None when it can."""
    import regex

    try:
        compiled(pattern, frozenset(flags))
    except regex.error as error:
        return str(error)
    except (RecursionError, OverflowError, ValueError) as error:
        return str(error) or "it is too deep"
    return None


def has_match(pattern: str, text: str, flags: frozenset[str] = frozenset()) -> bool:
    """Return whether a pattern is found in a text; raises `LimitReached`."""
    if is_cheap_pattern(pattern, len(text)):
        with suppress(TimeoutError):
            return compiled(pattern, flags).search(text, timeout=SECONDS) is not None
    matches: bool = call(__name__, "search", pattern, text, sorted(flags))
    return matches


def search(pattern: str, text: str, flags: Iterable[str]) -> bool:
    """Return whether a pattern is found in a text, without limits of time."""
    return compiled(pattern, frozenset(flags)).search(text) is not None
