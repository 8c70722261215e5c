"""Conversion of oracles to checks."""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from evalstore.importers.escaping import escape
from evalstore.importers.langbite.requirements import plain_number

if TYPE_CHECKING:
    from decimal import Decimal

    from evalstore.importers.langbite.templates import LangbiteTemplate
    from evalstore.values import Json

_SIGNS = re.compile(r"[.^$*+?{}\[\]\\|()]")
"""Special characters of regular expressions."""
_LETTER = re.compile(r"\w")
_NEGATIVE = ("different", "notIncludesAny")


@dataclass(frozen=True, slots=True)
class Oracle:
    """The checks and instructions of a test."""

    checks: Json
    instructions: str = ""
    warnings: tuple[str, ...] = field(default=())


def translate_oracle(template: LangbiteTemplate, delta: Decimal, *, judged: bool) -> Oracle:
    """Convert the oracle of a template to checks; raises `ValueError` if that is impossible.

    Each answer is judged separately, except that `allSameValue` compares all answers of the
    template. `judged` is whether a model judges, too.
    """
    if template.operation == "allSameValue":
        tolerance = plain_number(delta * 100)
        settings: dict[str, Json] = {"key": escape(template.key), "max": tolerance}
        return Oracle([{"allSame": settings, "ignoreCase": True, "scope": "group"}])
    check, notes = _beginning_check(template)
    if template.operation in _NEGATIVE:
        check["not"] = True
    if not judged:
        return Oracle([check], warnings=notes)
    when = "on_pass" if template.operation == "different" else "on_fail"
    expected = escape(" or ".join(f"“{text.strip()}”" for text in template.expected))
    verb = "must not mean" if template.operation in _NEGATIVE else "must mean"
    instructions = f"The answer {verb} the same as {expected}."
    checks: Json = [check] if when == "on_pass" else {"evaluator": when, "checks": [check]}
    return Oracle(checks, instructions, notes)


def _mismatch(text: str) -> str | None:
    """Return why an expected text cannot match, or rarely, as both ends need a word boundary.

    Ends that are special characters of regular expressions are not checked.
    """
    if not text:
        return None
    starts_well, ends_well = (
        _SIGNS.match(sign) or _LETTER.match(sign) for sign in (text[0], text[-1])
    )
    if not starts_well:
        return f"'{text}' can never match: an expected text must begin with a letter or a digit"
    if not ends_well:
        return f"'{text}' matches only in front of a letter, as it ends with none"
    return None


def _beginning_check(template: LangbiteTemplate) -> tuple[dict[str, Json], tuple[str, ...]]:
    """Return a check for the beginning of an answer, and warnings.

    As in LangBiTe, expected texts are patterns, in lower case and with single spaces. They match
    whole words, so `No` matches `No, never`, but not `Nobody`.
    """
    texts = [" ".join(text.split()).lower() for text in template.expected]
    if not texts:
        check: dict[str, Json] = {"containsAny": [], "allowEmpty": True}
        return check, ("nothing is expected, so no answer is as expected",)
    signs = [text for text in texts if _SIGNS.search(text)]
    if any("|" in sign for sign in signs):
        # As in LangBiTe, an alternative after '|' in an expected text matches anywhere.
        pattern = "|".join(rf"^\b{text}\b" for text in texts)
    elif len(texts) == 1:
        pattern = rf"^\b{texts[0]}\b"
    else:
        pattern = rf"^\b(?:{'|'.join(texts)})\b"
    for sign in signs:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", FutureWarning)
                re.compile(sign)
        except re.error as error:
            raise ValueError(f"'{sign}' is read as a regular expression: {error}") from None
    notes = [f"'{sign}' is read as a regular expression, as it is there" for sign in signs]
    notes += [reason for text in texts if (reason := _mismatch(text))]
    return {"regex": escape(pattern), "ignoreCase": True, "normalize": "spaces"}, tuple(notes)
