"""Checks of the text of an answer."""

from __future__ import annotations

from collections.abc import Mapping

from evalstore.checks.base import Arguments, Finding, Kind, Subject, passes, shorten
from evalstore.values import Json


def _read_expected(arguments: Arguments) -> dict[str, Json]:
    return {"expected": arguments.texts("expected")}


def _contains(check: Mapping[str, Json], subject: Subject) -> Finding:
    text = subject.text
    missing = [one for one in check["expected"] if subject.prepare(one) not in text]
    words = ", ".join(map(shorten, missing))
    return passes(len(missing) < len(check["expected"]), f"{words} is not in {shorten(text)}")


KINDS = {"contains": Kind(1, _read_expected, _contains)}
