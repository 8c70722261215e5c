"""Regular expressions, compiled and searched within limits of time and memory."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from evalstore.core.errors import NotRunError
from evalstore.files.processes.limited_calls import LimitReached, call

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


# --- the cost of a pattern, estimated from its text
#
# With `k` repetitions side by side a text of `n` characters can be divided in about `n ** k` ways.
# A repetition of what itself repeats or chooses, a reference back and a recursion have no such
# bound. Those patterns are not refused: they are matched with limits.


_MOST_REPEATS = 100
"""The most repetitions that count as bounded."""
_MOST_CHOICES = 10**9
_MOST_TRIES = 100_000_000
"""The number of ways that are tried in a fraction of a second."""
_COUNTED = re.compile(r"\{(\d*),?(\d*)\}")
_ODD = re.compile(
    r"\(\?(?:#|[a-zA-Z0-9-]*[xV])|(?<=.)\(\?[a-zA-Z]+[:)]|\{(?!\d*(?:,\d*)?\})", re.DOTALL
)
"""Comments and verbose flags, between whose signs blanks mean nothing, and fuzzy matches."""
_RECURSION = re.compile(r"\(\?(?:[R0-9&+-]|P>)")
_MOST_COPIES = 20_000
"""Copies of a part of a pattern that its counted repetitions may make."""
_MOST_DIGITS = 9
_LONGEST = 2_000
"""Characters of a pattern."""
_TOKEN = re.compile(
    r"""
      \\(?: (?P<back> [1-9gkKGLX] ) | . )              # an escape; a reference
    | (?P<set> \[ \^? \]? (?: \\. | \[:\^?\w+:\] | [^\]\\] )* \] )
    | \(\? (?: (?P<costly> [R0-9&+] | P[>=&] | -\d | \( | \| ) | [^()]*? (?: [:=!>] | (?=\)) ) )
    | (?P<open> \( )
    | (?P<close> \) )
    | (?P<choice> \| )
    | (?P<many> [*+] | \{ \d* , \} )
    | \{ (?P<least> \d* ) (?: , (?P<most> \d+ ) )? \}
    | (?P<fuzzy> \{ [^}]* [<>=] [^}]* \} )
    | (?P<maybe> \? )
    | .
    """,
    re.VERBOSE | re.DOTALL,
)


class PatternCost(NamedTuple):
    """The bounds of the ways that a pattern tries."""

    choices: int
    """The product of its bounded repetitions and alternatives."""
    unbounded: int
    """Unbounded repetitions side by side; a search for the start of a match counts as one."""


def is_small(pattern: str) -> bool:
    """Return whether the compiled pattern is small, however long it takes to match."""
    if len(pattern) > _LONGEST or _RECURSION.search(pattern):
        return False
    size = 1
    for repeats in _COUNTED.finditer(pattern):
        size *= max(int(repeats[2][:_MOST_DIGITS] or repeats[1][:_MOST_DIGITS] or 1), 1)
    return size <= _MOST_COPIES


@lru_cache(maxsize=1024)
def ways_of(pattern: str) -> PatternCost | None:
    """Return the bounds of the ways that a pattern tries; None when they are unknown."""
    if len(pattern) > _LONGEST or _ODD.search(pattern):
        return None
    groups = [_Group()]
    last = _Group()
    """The group that a quantifier would repeat."""
    for token in _TOKEN.finditer(pattern):
        if token["back"] or token["costly"] or token["fuzzy"]:
            return None
        if token["open"] or token[0].startswith("(?"):
            groups.append(_Group())
        elif token["close"]:
            if len(groups) == 1:
                return None  # not a pattern
            last = groups.pop()
            groups[-1].take(last)
        elif token["choice"]:
            groups[-1].choose()
        elif token["many"]:
            if last.repeats or last.choices > 1:
                return None
            groups[-1].repeats += 1
            groups[-1].unbounded += 1
            last = _Group(repeats=1)
        elif token["least"] is not None:
            least = int(token["least"] or 0)
            most = int(token["most"]) if token["most"] else least
            if most > _MOST_REPEATS or (most > 1 and (last.repeats or last.choices > 1)):
                return None
            groups[-1].repeats += most > 1
            groups[-1].multiply(max(most - least, 0) + 1)
            last = _Group(repeats=1)
        elif token["maybe"]:
            if not last.repeats:  # else it says that the repetition is lazy
                groups[-1].multiply(2)
        else:
            last = _Group()
        if groups[-1].choices > _MOST_CHOICES:
            return None
    if len(groups) > 1:
        return None
    is_anchored = pattern.startswith(("^", r"\A")) and not groups[0].before
    return PatternCost(groups[0].choices, groups[0].unbounded + (not is_anchored))


def is_cheap_pattern(pattern: str, size: int) -> bool:
    """Return whether a pattern tries few ways on a text of this size, and compiles quickly."""
    ways = ways_of(pattern)
    return ways is not None and ways.choices * max(size, 10) ** ways.unbounded <= _MOST_TRIES


class _Group:
    """A group of a pattern while it is read."""

    def __init__(self, repeats: int = 0) -> None:
        self.repeats = repeats
        """Repetitions in it, bounded or not."""
        self.unbounded = 0
        self.before = 0
        """The choices of the alternatives before this one."""
        self._choices = 1

    @property
    def choices(self) -> int:
        return self.before + self._choices

    def multiply(self, choices: int) -> None:
        """Add a part with this many choices."""
        self._choices *= choices

    def choose(self) -> None:
        """Begin another alternative."""
        self.before += self._choices
        self._choices = 1

    def take(self, inner: _Group) -> None:
        """Add the repetitions and choices of a group inside this one."""
        self.repeats += inner.repeats
        self.unbounded += inner.unbounded
        self.multiply(inner.choices)
