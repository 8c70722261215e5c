"""Finds the amount in a text that is nearest to an expected one, however its unit is written."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import NamedTuple

_UNITS = (
    ("€", "eur", "euro"),
    ("$", "usd", "dollar"),
    ("£", "gbp", "pound"),
    ("¥", "jpy", "yen"),
    ("₹", "inr", "rupee"),
    ("%", "percent", "pct"),
    ("°", "degree"),
    ("h", "hr", "hour"),
    ("min", "minute"),
    ("s", "sec", "second"),
    ("km", "kilometre", "kilometer"),
    ("m", "metre", "meter"),
    ("cm", "centimetre", "centimeter"),
    ("kg", "kilogram", "kilo"),
    ("g", "gram"),
    ("l", "litre", "liter"),
)
"""Spellings of the same unit, without the `s` of a plural."""
_UNIT_OF = {spelling: names[0] for names in _UNITS for spelling in names}
_SIGNS = "€$£¥₹%°"
_BLANK = "[ \u00a0\u202f]"
_AMOUNT = re.compile(
    rf"(?:(?P<before>[{_SIGNS}]|\b(?:EUR|USD|GBP|JPY|INR)){_BLANK}?|(?<![\w.,]))"
    r"(?P<number>\d+(?:[.,]\d+)*)"
    rf"(?:(?P<gap>{_BLANK}|-)?(?P<after>[{_SIGNS}]|[^\W\d_]+))?"
)
_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?\Z")
_MOST_WORDS = 4
"""The most words of an expected text that is called an amount."""
_MOST_DIGITS = 30


class _Amount(NamedTuple):
    start: int
    end_of_number: int
    end: int
    """The end of the word or sign behind it."""
    value: Decimal
    unit: str
    """The word or sign beside it, whether it is a unit or not; empty without one."""
    is_joined: bool
    """Whether that stands before it, or behind it without a blank."""


def find_amount(expected: str, text: str) -> tuple[int, int] | None:
    """Return the range of the amount in a text that is nearest to the one that is expected.

    It has the same number or the same unit; `45€` has both of `45 euros`. None when there is no
    such amount, or when what is expected is not a single amount of few words.
    """
    wanted = _read_amounts(expected)
    if len(wanted) != 1 or len(expected.split()) > _MOST_WORDS:
        return None
    value, unit = wanted[0].value, wanted[0].unit
    best: tuple[int, int] | None = None
    highest = 0
    for amount in _read_amounts(text):
        has_unit = bool(unit) and amount.unit == unit
        has_value = amount.value == value and (amount.is_joined or has_unit or value >= 10)
        score = 2 * has_value + has_unit
        if score > highest:
            has_end = has_unit or amount.is_joined or amount.unit in _UNIT_OF
            best = amount.start, amount.end if has_end else amount.end_of_number
            highest = score
    return best


def _read_amounts(text: str) -> list[_Amount]:
    """Return the numbers of a text, each with the unit that stands beside it."""
    amounts = []
    for match in _AMOUNT.finditer(text):
        if len(match["number"]) > _MOST_DIGITS:
            continue
        number_end, before, after = match.end("number"), match["before"], match["after"]
        end = number_end if before else match.end()
        is_joined = bool(before or (after and not match["gap"]))
        value, unit = _value(match["number"]), _unit(before or after or "")
        amounts.append(_Amount(match.start(), number_end, end, value, unit, is_joined))
    return amounts


def _unit(word: str) -> str:
    """Return the same name for all spellings of a unit."""
    word = word.casefold()
    return _UNIT_OF.get(word) or _UNIT_OF.get(word.removesuffix("s")) or word.removesuffix("s")


def _value(number: str) -> Decimal:
    """Return the value of a number with a point or a comma, and with commas of thousands."""
    if _THOUSANDS.match(number):
        return Decimal(number.replace(",", ""))
    whole, *rest = re.split("[.,]", number)
    return Decimal(f"{whole}.{''.join(rest)}" if rest else whole)
