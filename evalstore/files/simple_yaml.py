"""Writes YAML that is as simple as most checks are, quickly."""

from __future__ import annotations

import re

from evalstore.values import Json

_WORDS = re.compile(r"[A-Za-z]\w*(?: \w+)*", re.ASCII).fullmatch
"""Matches words, which are written as they are."""
_WITH_COLON = re.compile(r"\w[\w .,!?()]*: [\w .,!?():]*[\w.,!?()]", re.ASCII).fullmatch
"""Matches a text with a colon that would end a key, so that it is quoted."""
_READ_OTHERWISE = frozenset(("null", "true", "false", "yes", "no", "on", "off", "y", "n"))
"""Words that YAML 1.1 or 1.2 reads as another value."""


def write_simple(value: Json) -> str:
    """Return a mapping of names to simple scalars as YAML; empty for another value.

    The dumper writes the same, and takes ten times as long.
    """
    if not isinstance(value, dict):
        return ""
    lines = []
    for name, scalar in value.items():
        key, text = _write_scalar(name), _write_scalar(scalar)
        if not key or not text or key[0] == "'":
            return ""
        lines.append(f"{key}: {text}")
    return "\n".join(lines)


def _write_scalar(value: Json) -> str:
    """Return a simple scalar as YAML; empty for another value."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str):
        return ""
    if _WORDS(value) and value.lower() not in _READ_OTHERWISE:
        return value
    return f"'{value}'" if _WITH_COLON(value) else ""
