"""Hints on types of checks that do not exist: the nearest one, the opposite of one, or a list."""

from __future__ import annotations

import re

from evalstore.checks.registry import find_kind, known_kinds
from evalstore.core.values import Json
from evalstore.files.fields import suggest

_NEGATED = re.compile("not[-_ ]?(.+)", re.IGNORECASE)


def suggest_check(name: str, value: Json = None) -> str:
    """Return a hint; `value` is what is written behind an unknown type.

    The opposite of a check, such as promptfoo's `not-contains`, is the check with `not: true`.
    """
    if name == "not":
        is_mapping = isinstance(value, dict)
        inner = next((key for key in value if find_kind(key)), "") if is_mapping else value
        kind = find_kind(inner) if isinstance(inner, str) else None
        return _written(str(inner), negated=True) if kind else "write 'not: true' beside a check"
    match = _NEGATED.fullmatch(name)
    if match and (hint := _respelled(match[1], negated=True)):
        return hint
    if name.startswith("i") and (hint := _respelled(name, negated=False)):
        return hint
    return suggest(name, known_kinds(), "checks")


def _respelled(name: str, *, negated: bool) -> str | None:
    """Return how a type is written whose name has other letters between or around its words."""
    kinds = {kind.lower(): kind for kind in known_kinds()}
    letters = re.sub("[-_ ]", "", name).lower()
    if letters in kinds:
        return _written(kinds[letters], negated=negated)
    if letters[:1] == "i" and letters[1:] in kinds:  # as promptfoo has 'icontains'
        return _written(kinds[letters[1:]], ignores_case=True, negated=negated)
    return None


def _written(name: str, *, ignores_case: bool = False, negated: bool) -> str:
    kind = find_kind(name)
    words = [f"{name}: …" if kind and kind.main is not None else f"type: {name}"]
    words += ["ignoreCase: true"] * ignores_case + ["not: true"] * negated
    return f"write {{{', '.join(words)}}}"
