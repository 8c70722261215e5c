"""Writing of a template with its communities as a test file."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evalstore.importers.escaping import append_placeholder, escape
from evalstore.importers.langbite.oracles import translate_oracle
from evalstore.importers.template_writer import write_test

if TYPE_CHECKING:
    from evalstore.importers.langbite.requirements import Requirement
    from evalstore.importers.langbite.templates import LangbiteTemplate
    from evalstore.values import Json

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
