"""Checks of the last number in an answer, compared as decimals."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal

from evalstore.checks.base import CheckArguments, CheckFinding, CheckInput, CheckType, holds
from evalstore.display import as_text, shorten, shorten_to_line
from evalstore.files.fields import is_finite
from evalstore.values import Json

_OPERATORS: Mapping[str, Callable[[Decimal, Decimal], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_EXACT = Context(prec=60, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[])
"""A context that never raises: what is not a number is NaN."""

_SHOWN = 40
"""The most characters of a number in a feedback."""

_PLAIN = r"(?:\d+(?:\.\d+)*|(?<!\.)\.\d+(?:\.\d+)*)"
_GROUPED = r"\d{1,3}(?:,\d{3})+(?!,?\d)(?:\.\d+)?"
_REST = r"(?:[eE][-+]?\d+(?!\w))?"
_SIGN = r"(?:(?<![\w.)])[-+−])?"
_DIGIT = re.compile(r"\d")
_NUMBER = re.compile(_SIGN + _PLAIN + _REST)
_WITH_COMMAS = re.compile(f"{_SIGN}(?:(?<!\\d,)(?<![\\d.]){_GROUPED}|{_PLAIN}){_REST}")


def last_number(text: str, *, commas: bool = False) -> Decimal | None:
    """Return the last number in a text; None if there is none or it is malformed, as `1.2.3`.

    With `commas`, `1,234.5` is one number. A minus after a word or a number is a hyphen:
    `2020-2021` ends with 2021.
    """
    if not _DIGIT.search(text):
        return None
    pattern = _WITH_COMMAS if commas else _NUMBER
    # No number has white space in it, so the last word with a number is enough.
    numbers_by_word = map(pattern.findall, reversed(text.split()))
    return _as_decimal(next(numbers for numbers in numbers_by_word if numbers)[-1])


def find_last_number(text: str, *, commas: bool = False) -> tuple[Decimal, int] | None:
    """Return the last number in a text as `last_number` reads it, and the index of its start."""
    matches = list((_WITH_COMMAS if commas else _NUMBER).finditer(text))
    number = _as_decimal(matches[-1][0]) if matches else None
    return None if number is None else (number, matches[-1].start())


def _as_decimal(digits: str) -> Decimal | None:
    """Return the number that a match of a pattern is; None when it is malformed."""
    number = Decimal(digits.replace(",", "").replace("−", "-"), _EXACT)
    return None if number.is_nan() else number


def _read_number(arguments: CheckArguments) -> dict[str, Json]:
    commas = arguments.flag("commas")
    expected = _read_expected(arguments, commas=commas)
    op = arguments.choice("op", _OPERATORS, "==")
    epsilon = arguments.number("epsilon")
    if epsilon is not None and (not is_finite(epsilon) or epsilon < 0):
        raise arguments.problem("'epsilon' must be a number of at least 0")
    if epsilon is not None and op not in ("==", "!="):
        raise arguments.problem(f"'epsilon' has no meaning with '{op}'", "use '==' or '!='")
    settings: dict[str, Json] = {"expected": expected}
    if op != "==":
        settings["op"] = op
    if epsilon:
        settings["epsilon"] = epsilon
    if commas:
        settings["commas"] = True
    return settings


def _read_expected(arguments: CheckArguments, *, commas: bool) -> int | float:
    """Return the expected number, which may be written as a text, as cells of a table are."""
    value = arguments.require("expected")
    number = as_number(value, commas=commas)
    if number is None:
        words = f"'expected' must be a number, not {shorten(as_text(value))}"
        raise arguments.problem(words, "as in 'number: 42'")
    return number


def as_number(value: Json, *, commas: bool = False) -> int | float | None:
    """Return a value or text as a number; None if it is not a finite number."""
    if isinstance(value, str):
        whole = (_WITH_COMMAS if commas else _NUMBER).fullmatch(value.strip())
        number = last_number(value, commas=commas) if whole else None
        value = None if number is None else plain_number(number)
    if isinstance(value, bool) or not isinstance(value, int | float) or not is_finite(value):
        return None
    return int(value) if isinstance(value, float) and value.is_integer() else value


def plain_number(number: Decimal) -> int | float:
    """Return a decimal as an integer if it is whole, else as a float."""
    return int(number) if _is_whole(number) else float(number)


def _is_whole(number: Decimal) -> bool:
    return number.adjusted() < 400 and number == number.to_integral_value()


def _compares(check: Mapping[str, Json], subject: CheckInput) -> CheckFinding:
    text = subject.text
    number = last_number(text, commas=check.get("commas", False))
    op = check.get("op", "==")
    epsilon = check.get("epsilon")
    bound = f"{check['expected']}" if epsilon is None else f"{check['expected']} ± {epsilon}"
    words = f"expected {bound}" if op == "==" else f"expected a number {op} {bound}"
    if number is None:
        return CheckFinding(0.0, f"{words}, found no number in {shorten_to_line(text)}")
    expected = Decimal(str(check["expected"]))
    if epsilon is None:
        is_so = _OPERATORS[op](number, expected)
    else:
        near = _EXACT.subtract(number, expected).copy_abs() <= Decimal(str(epsilon))
        is_so = near if op == "==" else not near
    if is_so:
        condition = bound if op == "==" else f"{op} {bound}"
        return holds(
            check, lambda: f"expected a number that is not {condition}, found {_shown(number)}"
        )
    words += f", found {_shown(number)}"
    if not check.get("commas") and (grouped := last_number(text, commas=True)) != number:
        words += f"; with 'commas: true' it would be {_shown(grouped)}"
    return CheckFinding(0.0, words)


def _shown(number: Decimal | None) -> str:
    text = str(number)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


KINDS = {"number": CheckType(1, _read_number, _compares, example="42")}
