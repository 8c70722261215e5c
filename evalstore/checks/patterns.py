"""Checks by a regular expression, with a limit of time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING

from evalstore.bounded_process import LimitReached, call
from evalstore.checks.base import Arguments, Finding, Kind, Subject, as_text, shorten
from evalstore.checks.normalizing import preparer
from evalstore.checks.pattern_cost import is_cheap_pattern, is_small
from evalstore.errors import EvalstoreError, NotRunError
from evalstore.values import Json

if TYPE_CHECKING:
    import regex

_FLAGS = {"ignoreCase": "I", "multiline": "M", "dotAll": "S", "verbose": "X", "ascii": "A"}
_METHODS = {
    "search": "is not found in",
    "match": "does not match the start of",
    "fullmatch": "does not match the whole of",
}
SECONDS = 1.0
"""For one pattern on one answer; a pattern that needs more would need hours."""


@lru_cache(maxsize=512)
def compiled(pattern: str, flags: frozenset[str] = frozenset()) -> regex.Pattern[str]:
    """A pattern that `pattern_problem` has found nothing wrong with."""
    import regex

    bits = regex.VERSION0
    for flag in flags:
        bits |= getattr(regex, _FLAGS[flag])
    return regex.compile(pattern, bits)


def matches_all(check: Mapping[str, Json]) -> bool:
    """Whether this check looks for a pattern that is found in every text."""
    if check["type"] != "regex" or check.get("method") == "fullmatch":
        return False
    flags = frozenset(check.get("flags", ()))
    try:
        return all(is_found(check["pattern"], text, flags) for text in ("", "\0"))
    except (LimitReached, NotRunError):
        return False


def _read_regex(arguments: Arguments) -> dict[str, Json]:
    pattern = arguments.text("pattern")
    if pattern is None:
        raise arguments.problem("the check needs 'pattern'", "as in \"regex: '[0-9]+ days'\"")
    flags = arguments.texts("flags") if arguments.has("flags") else []
    for flag in flags:
        if flag not in _FLAGS:
            raise arguments.problem(
                f"'flags' cannot have {shorten(flag)}", f"the flags are {', '.join(_FLAGS)}"
            )
    method = arguments.choice("method", _METHODS, "search")
    found: dict[str, Json] = {"pattern": pattern}
    if flags:
        found["flags"] = sorted(set(flags))
    if method != "search":
        found["method"] = method
    if wrong := pattern_problem(pattern, frozenset(flags)):
        raise arguments.problem(
            f"the pattern {shorten(pattern)} is not a regular expression: {wrong}",
            "put '\\' before a sign that stands for itself, and single quotes round the pattern",
        )
    return found


def pattern_problem(pattern: str, flags: frozenset[str] = frozenset()) -> str | None:
    """Why something is not a regular expression; None when it is one.

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
    """Why a pattern cannot be compiled; None when it can."""
    import regex

    try:
        compiled(pattern, frozenset(flags))
    except regex.error as error:
        return str(error)
    except (RecursionError, OverflowError, ValueError) as error:
        return str(error) or "it is too deep"
    return None


def is_found(pattern: str, text: str, flags: frozenset[str] = frozenset()) -> bool:
    """Whether a pattern is found in a text; raises `LimitReached`."""
    if is_cheap_pattern(pattern, len(text)):
        with suppress(TimeoutError):
            return compiled(pattern, flags).search(text, timeout=SECONDS) is not None
    found: bool = call(__name__, "search", pattern, text, sorted(flags))
    return found


def search(pattern: str, text: str, flags: Iterable[str]) -> bool:
    """Whether a pattern is found in a text, however long that takes."""
    return compiled(pattern, frozenset(flags)).search(text) is not None


def _matches(check: Mapping[str, Json], subject: Subject) -> Finding:
    """Whether the pattern matches; where the text has lost its case, the pattern ignores it."""
    steps = tuple(check.get("normalize", ()))
    flags = frozenset(check.get("flags", ()))
    if check.get("ignoreCase"):
        text = preparer(steps, False)(as_text(subject.actual))
        flags |= {"ignoreCase"}
    else:
        text = subject.text
        if "casefold" in steps or "squad" in steps:
            flags |= {"ignoreCase"}
    pattern, method = check["pattern"], check.get("method", "search")
    try:
        found = getattr(compiled(pattern, flags), method)(text, timeout=SECONDS)
    except TimeoutError:
        raise EvalstoreError(
            f"the pattern {shorten(pattern)} was given up after {SECONDS:g} second on "
            f"{len(text):,} characters: it tries too many ways to match"
        ) from None
    if found is not None:
        return Finding(1.0)
    return Finding(0.0, f"the pattern {shorten(pattern)} {_METHODS[method]} {shorten(text)}")


KINDS = {"regex": Kind(1, _read_regex, _matches, main="pattern")}
