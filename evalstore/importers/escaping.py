"""Text that is not a template, in a template."""

from __future__ import annotations

import re

from evalstore.importers.template_writer import quoted

_SIGNS = re.compile(r"\{\{|\{%|<!--")
"""What would begin a template, or a comment that is dropped."""


def escape(text: str) -> str:
    """The text as a part of a template that renders to the same text."""
    return _SIGNS.sub(lambda match: quoted(match[0]), text)


def append(template: str, placeholder: str) -> str:
    """A placeholder behind a template; three braces in a row would be neither."""
    if template.endswith("{"):
        template = template[:-1] + quoted("{")
    return template + placeholder
