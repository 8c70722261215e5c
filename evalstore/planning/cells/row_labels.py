"""Compares the labels of rows, in which long values are cut, with full values."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

CUT = "…"
"""Stands for the middle of a long value."""
_KEPT = 14
"""Characters that a label keeps at least on both sides of a cut."""

_NUMBER = re.compile(r" #\d+$")


def label_matcher(name: str) -> Callable[[str], bool]:
    """Return whether a name is a label with its values in full, `name=` before the first or not.

    The number of a label that several rows would have is left out: it is not known which is meant.
    """
    name = " ".join(name.split()).casefold()

    def matches(label: str) -> bool:
        if CUT not in label:
            return False
        values = (_NUMBER.sub("", label) if "#" in label else label).casefold()
        column, has_value, _ = values.partition("=")
        first, *others = values.split(CUT)
        return (name.startswith(first) and _has_between(name, len(first), others)) or (
            bool(has_value)
            and (named := f"{column}={name}").startswith(first)
            and _has_between(named, len(first), others)
        )

    return matches


def _has_between(name: str, start: int, parts: Sequence[str]) -> bool:
    """Return whether a name has these parts from a place on, each behind at least one character.

    The last part is the end of the name.
    """
    *middle, last = parts
    for part in middle:
        if (place := name.find(part, start + 1)) < 0:
            return False
        start = place + len(part)
    return name.endswith(last) and start < len(name) - len(last)


def complete_label(label: str, text: str) -> str:
    """Return a label with those values in full that stand in a text."""
    if CUT not in label:
        return label
    text = " ".join(text.split())
    full, *parts = label.split(CUT)
    for part in parts:
        start, end = full[-_KEPT:].rpartition("=")[2], part[:_KEPT]
        full += f"{_between(text, start, end) or CUT}{part}"
    return full


def _between(text: str, start: str, end: str) -> str:
    """Return what stands between two parts of a text, at least one character; empty if nothing."""
    place = text.find(start) if start else -1
    if place < 0:
        return ""
    place += len(start)
    return text[place : max(text.find(end, place + 1), place)]
