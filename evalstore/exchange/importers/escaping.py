"""Escaping of literal text for templates."""

from __future__ import annotations

import re

from evalstore.exchange.importers.template_writer import quoted

_SIGNS = re.compile(r"\{\{|\{%|<!--")
"""The beginnings of template expressions and of HTML comments, which are dropped."""


def escape(text: str) -> str:
    """Return a template fragment that renders to this text."""
    return _SIGNS.sub(lambda match: quoted(match[0]), text)


def append_placeholder(template: str, placeholder: str) -> str:
    """Append a placeholder to a template; a trailing brace is quoted to avoid `{{{`."""
    if template.endswith("{"):
        template = template[:-1] + quoted("{")
    return template + placeholder
