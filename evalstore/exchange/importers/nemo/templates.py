"""Conversion of NeMo's Jinja templates, which use the names `item` and `sample`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from evalstore.core.values import Json
from evalstore.exchange.importers.judge_prompts import ANSWER, PromptPiece
from evalstore.exchange.importers.template_writer import (
    expression_in,
    find_parts,
    quoted,
    replace_parts,
    without_filter,
)

_OUTPUT = re.compile(
    r"\{\{-?\s*(?:(?:sample\.)?output_text|sample\.tool_calls"
    r"|sample\.response\.choices\[0\]\.message(?:\.content|\.tool_calls)?)"
    r"\s*(?:\|\s*(?:trim|tojson)\s*)?-?\}\}"
)
"""The expressions for the answer or its tool calls in a judge's prompt."""
_COLUMN = re.compile(r"(?:item\.)?(\w+)\s*(?:\|\s*trim\s*)?")
_BARE_OUTPUT = re.compile(r"(?<![\w.'\"])output_text\b")
_TO_JSON = re.compile("tojson")


def convert_template(template: str) -> str:
    """Convert a template of NeMo; syntax with a meaning only in evalstore is quoted."""

    def part(text: str) -> str:
        if text.startswith("{#"):
            return ""
        return quoted(text) if text == "<!--" else _BARE_OUTPUT.sub("sample.output_text", text)

    return replace_parts(template, part)


def value(text: Json) -> Json:
    """Convert a template that gives a value, such as a list; `tojson` is dropped as implicit.

    White space around a lone expression is ignored, as is a line end at the end of a template.
    """
    if not isinstance(text, str):
        return text
    expression = expression_in(text)
    if expression is None:
        return convert_template(text.removesuffix("\n"))
    without_to_json = without_filter(expression, _TO_JSON)
    return (
        convert_template(text.strip())
        if without_to_json is None
        else f"{{{{ {without_to_json} }}}}"
    )


def lone_expression(text: Json) -> str | None:
    """Return the expression of a template that contains nothing else; else None."""
    return expression_in(value(text)) if isinstance(text, str) else None


def column(text: Json) -> str | None:
    """Return the column that a template shows, if it shows nothing else."""
    match = _COLUMN.fullmatch(lone_expression(text) or "")
    return match[1].lower() if match else None


def pieces(template: str, answer: str | None = None) -> Iterator[PromptPiece]:
    """Split a judge's template into literal text, the answer, and templates for the row.

    `answer` is the column of recorded answers.
    """
    at = 0
    for text, start, end in find_parts(template):
        if start > at:
            yield PromptPiece(template[at:start])
        if _OUTPUT.fullmatch(text) or (answer and column(text) == answer):
            yield PromptPiece("", runtime=ANSWER)
        elif text.startswith(("{{", "{%")):
            yield PromptPiece(_BARE_OUTPUT.sub("sample.output_text", text), is_template=True)
        elif text == "<!--":
            yield PromptPiece(text)
        at = end
    if at < len(template):
        yield PromptPiece(template[at:])
