"""Compares the labels of rows, in which long values are cut, with full values."""

from __future__ import annotations

import re

CUT = "…"
"""Stands for the middle of a long value."""
_KEPT = 14
"""Characters that a label keeps at least on both sides of a cut."""

_NUMBER = re.compile(r" #\d+$")


def fits_label(name: str, label: str) -> bool:
    """Return whether a name is a label with its values in full, `name=` before the first or not.

    The number of a label that several rows would have is left out: it is not known which is meant.
    """
    if CUT not in label:
        return False
    name = " ".join(name.split())
    values = _NUMBER.sub("", label)
    pattern = re.compile(".+".join(map(re.escape, values.split(CUT))), re.IGNORECASE)
    column = label.partition("=")[0]
    return any(pattern.fullmatch(text) for text in (name, f"{column}={name}"))


def complete_label(label: str, text: str) -> str:
    """Return a label with those values in full that stand in a text."""
    if CUT not in label:
        return label
    text = " ".join(text.split())
    full, *parts = label.split(CUT)
    for part in parts:
        start, end = full[-_KEPT:].rpartition("=")[2], part[:_KEPT]
        match = re.search(f"{re.escape(start)}(.+?){re.escape(end)}", text) if start else None
        full += f"{match[1] if match else CUT}{part}"
    return full
