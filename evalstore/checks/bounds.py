"""Parses bounds of scores such as `>= 0.8`, the values of the setting `pass` of a check."""

from __future__ import annotations

import math
import re

from evalstore.checks.base import CheckArguments
from evalstore.core.display import shorten
from evalstore.core.values import Json
from evalstore.files.fields import is_finite

_BOUND = re.compile(r"(>=|>|<=|<|==)\s*([0-9.eE+-]+)\Z")


def canonical_bound(value: Json, arguments: CheckArguments) -> str:
    """Return the canonical form of a bound such as `>= 0.8`; a plain number is a minimum."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = f">= {value}"
    match = _BOUND.match(value.strip()) if isinstance(value, str) else None
    try:
        number = float(match[2]) if match else math.nan
    except ValueError:
        number = math.nan
    if match is None or not is_finite(number):
        raise arguments.problem(f"'pass' cannot be {shorten(str(value))}", "as in '\">= 0.8\"'")
    return f"{match[1]} {number:g}"


def reaches(score: float, bound: str) -> bool:
    """Return whether a score is within a bound in canonical form, up to the rounding of floats."""
    operator, number = bound.split()
    off = score - float(number)
    if abs(off) < 1e-9:
        return operator in (">=", "<=", "==")
    return off > 0 if operator in (">=", ">") else off < 0 if operator in ("<=", "<") else False
