"""Texts, numbers and times as people read them in a terminal.

Text from models and files is never markup: control characters are shown as escapes, so
nothing a model says can move the cursor or colour the terminal.
"""

from __future__ import annotations

import json
import textwrap
import unicodedata
from collections.abc import Iterable
from heapq import nlargest

from evalstore.values import Json

_SHOWN = 120
"""Characters of a text in a feedback."""
_BEFORE = 20
"""The characters before the first difference."""


_MEASURED = 500
"""Texts."""


def safe(text: str, *, lines: bool = False) -> str:
    """The text with control characters shown as escapes; with `lines`, line ends and tabs stay."""
    if text.isprintable():
        return text
    keep = "\n\t" if lines else ""
    return "".join(
        character
        if character in keep
        or character.isprintable()
        or unicodedata.category(character) in ("Zs", "Co")
        else character.encode("unicode_escape").decode()
        for character in text
    )


def short(id: str) -> str:
    """An id as people see it."""
    return id[:8]


def plural(count: int, word: str) -> str:
    """`1 case`, `2 cases`."""
    if word.endswith("y"):
        return f"{count:,} {word if count == 1 else word[:-1] + 'ies'}"
    return f"{count:,} {word if count == 1 else word + 's'}"


def money(amount: float | None, currency: str = "USD") -> str:
    """A price for people."""
    if amount is None:
        return "price unknown"
    digits = "0" if amount == 0 else f"{amount:.2f}" if amount >= 1 else f"{amount:.4f}"
    less = "<" if 0 < amount < 0.0001 else ""
    digits = "0.0001" if less else digits
    return f"{less}${digits}" if currency == "USD" else f"{less}{digits} {currency}"


def likely_price(usd: float | None, guess: int | None, *, brief: bool = False) -> str:
    """The estimated cost of something; `guess` is the estimated tokens of its answers.

    With `brief` the guess is left out.
    """
    if usd is None:
        return "at an unknown price"
    if guess is None or not usd:
        return f"about {money(usd)}"
    most = money(usd).removeprefix("<")
    return f"up to {most}" if brief else f"up to {most} (at {guess:,} tokens an answer)"


def count(number: int) -> str:
    """A large number in few characters: `950`, `12.3k`, `4.56M`."""
    if number < 1000:
        return str(number)
    return f"{number / 1000:.1f}k" if number < 1_000_000 else f"{number / 1_000_000:.2f}M"


def bytes_text(count: int) -> str:
    """Return a number of bytes in few characters: `644 bytes`, `12.3 kB`, `4.56 MB`."""
    if count < 1000:
        return plural(count, "byte")
    return f"{count / 1000:.1f} kB" if count < 1_000_000 else f"{count / 1_000_000:.2f} MB"


def percent(share: float | None) -> str:
    """A share as a percentage."""
    return "-" if share is None else f"{100 * share:.1f}%"


def interval_bar(interval: tuple[float, float] | None, rate: float | None, width: int) -> str:
    """A share with its interval on a scale from 0 to 1 of so many columns: `··├──●─┤···`."""
    if interval is None or rate is None:
        return ""
    low, high = interval
    first, middle, last = (round(share * (width - 1)) for share in (low, rate, high))
    return "".join(
        "●"
        if place == middle
        else "├"
        if place == first
        else "┤"
        if place == last
        else "─"
        if first < place < last
        else "·"
        for place in range(width)
    )


def ago(microseconds: int, now: int) -> str:
    """How long ago something was."""
    seconds = max(0, (now - microseconds) // 1_000_000)
    for size, word in ((86400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= size:
            return (
                f"{plural(seconds // size, word) if word != 'day' else _days(seconds // size)} ago"
            )
    return "just now" if seconds < 5 else f"{seconds} seconds ago"


def _days(count: int) -> str:
    return "1 day" if count == 1 else f"{count} days"


def columns_of(text: str) -> int:
    """How many columns a text takes in a terminal."""
    return sum(map(_columns, text))


def _columns(character: str) -> int:
    if character.isascii():
        return 1
    return (
        0
        if unicodedata.combining(character)
        else 2
        if unicodedata.east_asian_width(character) in "WF"
        else 1
    )


def widest(texts: Iterable[str]) -> int:
    """How many columns the widest of these takes.

    There may be very many: of those that are not plain letters only the longest are measured.
    """
    plain, others = 0, []
    for text in texts:
        if not text.isascii():
            others.append(text)
        elif len(text) > plain:
            plain = len(text)
    return max([plain, *map(columns_of, nlargest(_MEASURED, others, key=len))])


def pad(text: str, columns: int) -> str:
    """The text padded with blanks to this many columns."""
    return text + " " * max(0, columns - columns_of(text))


def clip(text: str, columns: int) -> str:
    """The text as one line of at most this many columns."""
    text = safe(" ".join(text.split()))
    width, cut = 0, 0
    for place, character in enumerate(text):
        width += _columns(character)
        if width > columns:
            return f"{text[:cut].rstrip('…')}…"
        if width < columns:
            cut = place + 1
    return text


def wrap(text: str, columns: int) -> list[str]:
    """The text wrapped between words to lines of this many columns."""
    return textwrap.wrap(safe(text), max(20, columns), break_on_hyphens=False) or [""]


def as_text(value: Json) -> str:
    """A value as a text: a text as it is, nothing as the empty text, all else as JSON."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    return json.dumps(value, ensure_ascii=False)


def shorten(text: str, at: int = 0) -> str:
    """A text in quotes, shortened round a place of interest."""
    start = max(at - _BEFORE, 0) if len(text) > _SHOWN else 0
    cut = text[start : start + _SHOWN]
    return f"'{'…' if start else ''}{cut}{'…' if start + _SHOWN < len(text) else ''}'"


def difference(expected: str, actual: str) -> str:
    """The expected and the actual text, shortened around the first difference."""
    pairs = enumerate(zip(expected, actual, strict=False))
    at = next((i for i, (a, b) in pairs if a != b), min(len(expected), len(actual)))
    return f"expected {shorten(expected, at)}, found {shorten(actual, at)}"
