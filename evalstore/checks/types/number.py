"""Checks of the last number in an answer, compared as decimals."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal

from evalstore.checks.base import CheckArguments, CheckFinding, CheckInput, CheckType, holds
from evalstore.core.display import as_text, shorten, shorten_to_line
from evalstore.core.values import Json
from evalstore.files.fields import is_finite

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

_LETTER = "A-Za-zÀ-ÖØ-öø-ɏͰ-ϿЀ-ӿ"
"""Letters of scripts in which words have blanks between them."""
_CURRENCY_SIGN = "[$¢-¥֏؋৲৳৻૱௹฿៛₠-⃀﷼﹩＄￠￡￥￦]"
_CODES = (
    "USD|EUR|GBP|JPY|CHF|CNY|INR|AUD|CAD|NZD|SEK|NOK|DKK|PLN|CZK|HUF|RON|RUB|TRY|BRL|MXN|ZAR|KRW"
    "|SGD|HKD|Rs\\.?|kr\\.?|Fr\\.?|zł"
)
_THIN = "\u00a0\u2007-\u200a\u202f"
_MINUS = "−‐‑‒–﹣－-"
_AMOUNT_SIGN = f"(?:{_CURRENCY_SIGN}|[%‰°])"
_SIGN = rf"(?<![{_LETTER}\d.)])(?<!\d{_AMOUNT_SIGN})(?<!\d[ {_THIN}]{_AMOUNT_SIGN})[+{_MINUS}]"
_CURRENCY = (
    rf"(?<!\d)(?<!\d[ {_THIN}])(?:[A-Z]{{0,3}}\\?{_CURRENCY_SIGN}|{_CODES})"
    rf"[ {_THIN}]?(?P<inner>[+{_MINUS}])?"
)
_SEPARATOR = rf"['’ʼ٬_{_THIN}]|\{{,\}}|\\[,;:! ]|,\\! ?|\{{\\,\}}"
_FRACTION = "[¼-¾⅐-⅞↉]"
_OTHER_FORM = (
    rf"[ {_THIN}]?{_FRACTION}|[⁰¹²³⁴-⁹⁺⁻]|\^\{{?[({_MINUS}]?\w|(?:\*\*|_)\{{?[{_MINUS}]?\d|<su[pb]>"
    rf"|[ {_THIN}]?[xX]\d|(?:[/:]\d[\d.,]*)+|\}}\{{[{_MINUS}]?\d"
    rf"|(?![{_LETTER}]{{1,3}}[23](?![{_LETTER}\d]))[{_LETTER}]+\d"
)
"""What makes a number a part of something that is not read: 2½, 10⁶, 10^8, 3x10, 0x1F, 3/4."""
_NUMBER = re.compile(
    rf"(?P<sign>{_SIGN})?(?P<currency>{_CURRENCY})?(?:(?P<number>"
    rf"(?P<parted>\d{{1,3}}(?P<by>{_SEPARATOR})\d{{3}}(?:(?P=by)\d{{3}})*(?!\d)(?P<decimals>[.,]\d+)?)"
    rf"|(?P<spaced>\d{{1,3}}(?: \d{{3}})+(?!\d))"
    rf"|(?:\d+|(?<![{_LETTER}\d.])\.\d+)(?:[.,]\d+)*)"
    rf"(?P<power>[eE][+{_MINUS}]?\d+(?![{_LETTER}\d_]))?(?P<other>(?:{_OTHER_FORM})[\w^{{}}]*)?"
    rf"|(?P<fraction>{_FRACTION}))"
    # A word with digits in it is not a number, except for one that begins with digits.
    rf"|\\(?:times|cdot)"
    rf"|[{_LETTER}](?:[{_LETTER}\d]|(?<=\d)\.(?=\d)|(?:[_^]|<su[pb]>)\{{?[{_MINUS}]?(?=\w)|_)*"
)
_DIGIT = re.compile(rf"\d|{_FRACTION}")
_PLAIN = re.compile(r"\d*\.?\d+\Z")
_THOUSANDS = re.compile(
    r"(?:\d{1,3}(?:,\d{3})+|\d{1,2}(?:,\d{2})+,\d{3})(\.\d+)?\Z"  # as in English and in India
    r"|\d{1,3}(?:\.\d{3})+(,(?!\d{3}\Z)\d+)\Z"  # as in German, with decimals
)


def last_number(text: str, *, commas: bool = False) -> Decimal | None:
    """Return the last number in a text; None if there is none or it cannot be read, as `1.2.3`.

    A number with separators between its digits is read with `commas` only, and never a part of it.
    Digits inside a word do not count. A minus after a word or a number is a hyphen: `2020-2021`
    ends with 2021.
    """
    found = find_last_number(text, commas=commas)
    return found[0] if found else None


def find_last_number(text: str, *, commas: bool = False) -> tuple[Decimal, int] | None:
    """Return the last number in a text as `last_number` reads it, and the index of its start."""
    end = len(text)
    while end > 0:  # no number has a line end in it, so the last line with a number is enough
        start = text.rfind("\n", 0, end) + 1
        if _DIGIT.search(text, start, end):
            tokens = _NUMBER.finditer(text, start, end)
            numbers = [token for token in tokens if token["number"] or token["fraction"]]
            if numbers:
                value = _value(numbers[-1], commas=commas)
                return None if value is None else (value, numbers[-1].start())
        end = start - 1
    return None


def _value(token: re.Match[str], *, commas: bool, lists: bool = True) -> Decimal | None:
    """Return the number that a token is, of `lists` the last one; None when it cannot be read."""
    digits, power = token["number"] or "", token["power"] or ""
    if not digits or token["other"] or token["spaced"]:
        return None
    grouped = _THOUSANDS.match(digits)
    is_list = digits.count(",") > 1 and not grouped and not token["parted"]
    if is_list:
        *before, digits = digits.split(",")
        if not lists or any(len(each) > 2 for each in before[1:]):  # perhaps thousands
            return None
    if grouped or token["parted"]:
        if not commas:
            return None
        decimals = token["decimals"] or (grouped and (grouped[1] or grouped[2])) or ""
        digits = re.sub(r"\D", "", digits.removesuffix(decimals)) + decimals.replace(",", ".")
    elif not _PLAIN.match(digits):
        return None
    sign = "-" if not is_list and (token["sign"] or token["inner"] or "+") in _MINUS else ""
    number = Decimal(sign + digits + re.sub(f"[{_MINUS}]", "-", power), _EXACT)
    return None if number.is_nan() else number


def _read_number(arguments: CheckArguments) -> dict[str, Json]:
    commas = arguments.flags("commas")
    value = arguments.require("expected")
    if (expected := as_number(value, commas=bool(commas))) is None:
        words = f"'expected' must be a number, not {shorten(as_text(value))}"
        raise arguments.problem(words, "as in 'number: 42'")
    op = arguments.chosen("op", _OPERATORS)
    epsilon = arguments.not_negative("epsilon")
    if epsilon is not None and op not in ({}, {"op": "!="}):
        raise arguments.problem(f"'epsilon' has no meaning with '{op['op']}'", "use '==' or '!='")
    return {"expected": expected, **op, **({"epsilon": epsilon} if epsilon else {}), **commas}


def as_number(value: Json, *, commas: bool = False) -> int | float | str | None:
    """Return a value or text as a number, as `plain_number` does; None if it is not finite."""
    if isinstance(value, str):
        token = _NUMBER.fullmatch(value.strip())
        is_number = token and not token["currency"] and (token["number"] or token["fraction"])
        number = _value(token, commas=commas, lists=False) if token and is_number else None
    elif isinstance(value, bool) or not isinstance(value, int | float) or not is_finite(value):
        return None
    else:
        number = Decimal(repr(value))
    return None if number is None or not is_finite(float(number)) else plain_number(number)


def plain_number(number: Decimal) -> int | float | str:
    """Return an integer if it is whole, else a float, or a text if a float has fewer digits."""
    if number.adjusted() < 400 and number == number.to_integral_value():
        return int(number)
    near = float(number)
    return near if Decimal(repr(near)) == number else str(number.normalize(_EXACT))


def _compares(check: Mapping[str, Json], subject: CheckInput) -> CheckFinding:
    text = subject.text
    number = last_number(text, commas=check.get("commas", False))
    op = check.get("op", "==")
    epsilon = check.get("epsilon")
    bound = f"{check['expected']}" if epsilon is None else f"{check['expected']} ± {epsilon}"
    words = f"expected {bound}" if op == "==" else f"expected a number {op} {bound}"
    hint = ""
    if not check.get("commas") and (grouped := last_number(text, commas=True)) != number:
        hint = f"; with 'commas: true' it would be {_shown(grouped)}"
    if number is None:
        none = "no number that can be read" if _DIGIT.search(text) else "no number"
        return CheckFinding(0.0, f"{words}, found {none} in {shorten_to_line(text)}{hint}")
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
    return CheckFinding(0.0, f"{words}, found {_shown(number)}{hint}")


def _shown(number: Decimal | None) -> str:
    text = str(number)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


KINDS = {"number": CheckType(2, _read_number, _compares, as_written="number", example="42")}
