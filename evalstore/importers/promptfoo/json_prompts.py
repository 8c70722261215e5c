"""Conversations in JSON with templates, which may be valid JSON only after rendering."""

from __future__ import annotations

import re
from typing import Any

from evalstore.importers.coerce import parse_json
from evalstore.importers.promptfoo.nunjucks import ExpressionNotTakenError
from evalstore.importers.template_parts import expression_in, replace_parts, without_filter

_OF_JSON = r"\\.|\""
_DUMP = re.compile(r"(?:dump|tojson)(?:\(\s*\d*\s*\))?")
_MARK = "\ue000"
_MARKED = re.compile(f"{_MARK}(\\d+){_MARK}")
_IS_CHAT = re.compile(r"[\"']role[\"']\s*:")


def messages_in(text: str) -> list[Any] | None:
    """Return the message list in a text, with templates; None if the text is not a list.

    Raises `ExpressionNotTakenError` for messages that only exist after rendering.
    """
    templates: list[str] = []
    try:
        messages = parse_json(_mark_templates(text, templates))
    except ValueError:
        if _IS_CHAT.search(text):
            raise ExpressionNotTakenError(
                "its messages are not JSON before its template is filled"
            ) from None
        return None
    if not isinstance(messages, list) or not messages:
        return None
    return [_restore_templates(message, templates) for message in messages]


def _mark_templates(text: str, templates: list[str]) -> str:
    """Replace each template by a mark, so that quotes in templates do not end JSON strings."""
    quoted = False

    def token(part: str) -> str:
        nonlocal quoted
        if part == '"':
            quoted = not quoted
            return part
        if part.startswith("\\"):
            return part
        if not quoted:
            expression = expression_in(part)
            dumped = None if expression is None else without_filter(expression, _DUMP)
            if dumped is None:
                return "" if part.startswith("{#") else part
            part = f"{{{{ {dumped} }}}}"
        templates.append(part)
        mark = f"{_MARK}{len(templates) - 1}{_MARK}"
        return mark if quoted else f'"{mark}"'

    return replace_parts(text, token, _OF_JSON)


def _restore_templates(value: Any, templates: list[str]) -> Any:
    if isinstance(value, str):
        return _MARKED.sub(lambda match: templates[int(match[1])], value)
    if isinstance(value, list):
        return [_restore_templates(item, templates) for item in value]
    if isinstance(value, dict):
        return {name: _restore_templates(inner, templates) for name, inner in value.items()}
    return value
