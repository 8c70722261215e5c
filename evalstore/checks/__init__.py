"""Deterministic checks and their registry; each check type has a revision number.

A check is a mapping in canonical form: its type, its revision and all settings that differ
from their default. When the behaviour of a type changes, its revision goes up, and old
verdicts are judged again.
"""

from __future__ import annotations

from evalstore.checks.base import CheckInput, CheckOutcome
from evalstore.checks.parser import implied_checks, read_check
from evalstore.checks.registry import find_kind, known_kinds
from evalstore.checks.runner import run_check

__all__ = [
    "CheckInput",
    "CheckOutcome",
    "find_kind",
    "implied_checks",
    "known_kinds",
    "read_check",
    "run_check",
]
