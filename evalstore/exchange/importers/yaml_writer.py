"""Writing of readable YAML, for test files and settings.

The written text reads back as the same value.
"""

from __future__ import annotations

import json
import re

from evalstore.core.values import Json

_PLAIN = re.compile(r"[A-Za-z_][\w./-]*(?: [A-Za-z0-9_][\w./-]*)*", re.ASCII)
_WORDS = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})
_WIDTH = 100


def flow(value: Json) -> str:
    """Return the value on one line."""
    if isinstance(value, dict):
        fields = ", ".join(f"{scalar(name)}: {flow(inner)}" for name, inner in value.items())
        return "{" + fields + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(flow, value)) + "]"
    return scalar(value)


def scalar(value: Json) -> str:
    """Return a scalar: plain if every YAML version reads it as text, else quoted."""
    if isinstance(value, str):
        if _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
            return value
        if "'" not in value and value.isprintable() and value:
            return f"'{value}'"
    return json.dumps(value, ensure_ascii=False).translate(_ESCAPED)


_ESCAPED = {code: f"\\u{code:04x}" for code in (0x7F, *range(0x80, 0xA0), 0x2028, 0x2029, 0xFEFF)}
"""Characters that need an escape in YAML, but not in JSON."""


def block(value: Json, indent: int = 0) -> str:
    """Return the value in block style, each field and list item on its own line."""
    lead = " " * indent
    if isinstance(value, dict) and value:
        return "".join(
            f"{lead}{scalar(name)}:{_behind(inner, indent)}" for name, inner in value.items()
        )
    if isinstance(value, list) and value:
        return "".join(_item(inner, indent) for inner in value)
    return f"{lead}{flow(value)}\n"


def _behind(value: Json, indent: int) -> str:
    """Return the text after the colon of a field."""
    one_line = flow(value)
    if not _is_long(value, one_line, indent):
        return f" {one_line}\n"
    if isinstance(value, str):
        return _literal(value, indent) or f" {one_line}\n"
    return "\n" + block(value, indent + 2)


def _item(value: Json, indent: int) -> str:
    lead = " " * indent
    if isinstance(value, dict) and len(value) == 1:
        return f"{lead}- " + block(value, indent + 2).lstrip(" ")
    one_line = flow(value)
    if not _is_long(value, one_line, indent):
        return f"{lead}- {one_line}\n"
    if isinstance(value, str):
        return f"{lead}-" + (_literal(value, indent) or f" {one_line}\n")
    return f"{lead}- " + block(value, indent + 2).lstrip(" ")


def _is_long(value: Json, one_line: str, indent: int) -> bool:
    if isinstance(value, str):
        return "\n" in value
    if isinstance(value, dict | list) and value:
        return len(one_line) + indent > _WIDTH - 20 or "\\n" in one_line
    return False


def _literal(text: str, indent: int) -> str | None:
    """Return the text as a literal block; None if a block cannot represent it."""
    lines = text.split("\n")
    if not all(
        line.isprintable() or not line for line in (line.replace("\t", "") for line in lines)
    ):
        return None
    if not text.strip() or lines[0].startswith((" ", "\t")) or not lines[0]:
        return None
    ends = len(text) - len(text.rstrip("\n"))
    if ends > 1:
        return None
    lead = " " * (indent + 2)
    body = "".join(
        f"{lead}{line}\n" if line else "\n" for line in text.removesuffix("\n").split("\n")
    )
    return f" {'|' if ends else '|-'}\n{body}"
