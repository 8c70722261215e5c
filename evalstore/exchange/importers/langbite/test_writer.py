"""Writing of a template with its communities as a test file."""

from __future__ import annotations

import math
import re
import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from evalstore.exchange.importers.escaping import append_placeholder, escape
from evalstore.exchange.importers.langbite.requirements import plain_number
from evalstore.exchange.importers.template_writer import write_test

if TYPE_CHECKING:
    from decimal import Decimal

    from evalstore.core.values import Json
    from evalstore.exchange.importers.langbite.requirements import Requirement
    from evalstore.exchange.importers.langbite.templates import LangbiteTemplate


_DELIMITER = '"""'
_GLUE = f" The sentence is delimited by {_DELIMITER}. "
"""The text between a prefix and the prompt, in all languages."""
_TEMPLATE_SIGNS = re.compile(r"\{\{|\{%")
_BRACES = re.compile(r"\{[^\W\d]\w*\}")


@dataclass(frozen=True, slots=True)
class LangbiteTest:
    """The test file of a template."""

    text: bytes
    rows: int
    warnings: tuple[str, ...] = ()


def compose(
    template: LangbiteTemplate,
    requirement: Requirement,
    language: str,
    *,
    judged: bool,
    tags: tuple[str, ...] = (),
) -> LangbiteTest:
    """Return the test file; raises `ValueError` or `BadRequirementError` if it cannot be filled.

    `tags` are added to those of the template.
    """
    communities = requirement.community_list(language)
    markups = re.findall(rf"\{{({re.escape(requirement.markup)}[0-9]*)\}}", template.text)
    names = list(dict.fromkeys(markups))
    if len(names) > len(communities):
        needed = f"{len(names)} distinct communities needed"
        raise ValueError(f"{needed}, {len(communities)} given")
    for community in communities if names else ():
        if _TEMPLATE_SIGNS.search(community) or not community.strip():
            raise ValueError(f"the community '{community}' cannot be a value")
    oracle = translate_oracle(template, requirement.delta, judged=judged)
    template_tags = [template.concern, language, template.input_type, template.reflection_type]
    front: dict[str, Json] = {"tags": list(dict.fromkeys([*template_tags, *tags]))}
    front |= _replacements(names, requirement.markup, communities)
    text = write_test(
        front,
        [("user", _prompt(template, names))],
        instructions=oracle.instructions,
        checks=oracle.checks,
    )
    rows = math.perm(len(communities), len(names)) if names else 1
    broken = _unfilled_markups(template.text, names, requirement.markup)
    return LangbiteTest(text, rows, (*oracle.warnings, *broken))


def _replacements(names: list[str], markup: str, communities: list[str]) -> dict[str, Json]:
    if not names:
        return {}
    if len(names) == 1:
        return {"replacements": {names[0]: communities}}
    return {
        "lists": {markup: communities},
        "replacements": {"$permute": {"names": names, "list": markup}},
    }


def _prompt(template: LangbiteTemplate, names: list[str]) -> str:
    """Join prefix, text and output format as LangBiTe does."""
    text = _with_placeholders(template.text, names)
    if template.task_prefix:
        prefix = escape(template.task_prefix + _GLUE + _DELIMITER)
        text = f"{prefix}{text}{_DELIMITER}."
    if template.output_formatting:
        text += " " + escape(template.output_formatting)
    return text


def _with_placeholders(text: str, names: list[str]) -> str:
    """Replace the markups in a text by placeholders."""
    if not names:
        return escape(text)
    parts = re.split(r"\{(" + "|".join(map(re.escape, names)) + r")\}", text)
    out = ""
    for number, part in enumerate(parts):
        out = append_placeholder(out, "{{" + part + "}}") if number % 2 else out + escape(part)
    return out


def _unfilled_markups(text: str, names: list[str], markup: str) -> list[str]:
    """Return a warning about unfilled markups, including names that lack a brace."""
    unfilled = [braced for braced in _BRACES.findall(text) if braced[1:-1] not in names]
    name = re.escape(markup)
    unfilled += re.findall(rf"\{{{name}[0-9]*(?![\w}}])|(?<![\w{{]){name}[0-9]*\}}", text)
    unfilled += re.findall(rf"(?<![\w{{]){name}[0-9]*(?![\w}}])", text)
    return [f"unresolved {', '.join(dict.fromkeys(unfilled))}"] if unfilled else []


# --- conversion of oracles to checks


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
