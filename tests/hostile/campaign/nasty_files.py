"""Hand-written hostile workspaces: each is a few files added to one that is right."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from tests.builders import tree

RAN = "@RAN@"
"""Stands for the folder into which only something that was run can have written."""
OUTSIDE = "@OUTSIDE@"
SERVER = "@SERVER@"
MARKER = "@MARKER@"
"""Stands for the secret that must not leave the files it is in."""


class Link(NamedTuple):
    """A symbolic link."""

    target: str


class Fifo(NamedTuple):
    """A named pipe that nobody writes to."""


class Sparse(NamedTuple):
    """A file of so many bytes of which none is on the disk."""

    size: int


Content = str | bytes | Link | Fifo | Sparse
Files = Mapping[str, Content]


def write(root: Path, files: Files, words: Mapping[str, str]) -> None:
    """Write files, links and pipes; `words` are replaced in texts."""
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not isinstance(content, Sparse) and (path.is_symlink() or path.is_file()):
            path.unlink()
        if isinstance(content, Link):
            path.symlink_to(_filled(content.target, words))
        elif isinstance(content, Fifo):
            os.mkfifo(path)
        elif isinstance(content, Sparse):
            with path.open("wb") as file:
                file.truncate(content.size)
        else:
            tree(root, {name: _filled(content, words) if isinstance(content, str) else content})


def _filled(text: str, words: Mapping[str, str]) -> str:
    for word, meant in words.items():
        text = text.replace(word, meant)
    return text


def asked(shown: str, checks: str = "- notEmpty: true", **fields: object) -> dict[str, Content]:
    """A test file that shows something and is judged by checks."""
    head = f"---\n{json.dumps(fields)}\n---\n" if fields else ""
    return {"tests/t.md": f"{head}# 👤\n\n{shown}\n\n---\n\n~~~checks\n{checks}\n~~~\n"}


def answered(answer: str, checks: str, **fields: object) -> dict[str, Content]:
    """A test file with an answer of its own, so that the checks are sure to be reached."""
    return asked("Question.", checks, answer=answer, **fields)


LOOP = "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}"
MACRO = "{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(40) }}"
DOUBLING = (
    "{% set s = namespace(x='aaaaaaaa') %}"
    "{% for i in range(40) %}{% set s.x = s.x ~ s.x %}{% endfor %}{{ s.x|length }}"
)
TEMPLATES = {
    "loop": LOOP,
    "macro": MACRO,
    "slice": "{{ [1]|slice(100000000)|list }}",
    "width": "{{ ('%*d' % (1500000000, 1))|length }}",
    "format-filter": "{{ ('%1500000000d'|format(1))|length }}",
    "precision": "{{ ('%.*f' % (1500000000, 1))|length }}",
    "format-method": "{{ '{0:{1}}'.format(1, '1500000000')|length }}",
    "format-map": "{{ '{a:1500000000}'.format_map({'a': 1})|length }}",
    "expandtabs": "{{ '\\t'.expandtabs(1500000000)|length }}",
    "join": "{{ range(99999)|join('a' * 99999)|length }}",
    "replace": "{{ ('a' * 99999).replace('a', 'a' * 99999)|length }}",
    "batch": "{{ [1]|batch(150000000, 'x')|list|length }}",
    "wordwrap": "{{ ('a ' * 50000)|wordwrap(1, wrapstring='a' * 50000)|length }}",
    "tojson": "{{ range(9999)|list|tojson(indent=999999)|length }}",
    "doubling": DOUBLING,
    "endless-number": "{{ 1e999 }}",
    "many-raw": "{% raw %}{% endraw %}" * 20_000,
    "power": "{{ 9 ** 9 ** 9 }}",
    "large-range": "{{ range(999999999)|list|length }}",
    "nested-brackets": "{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}",
    "nested-blocks": "{% if 1 %}" * 500 + "{% endif %}" * 500,
}
ALTERNATIVES = {
    "$defs": {
        f"x{number}": {"anyOf": [{"$ref": f"#/$defs/x{number + 1}"}] * 2} for number in range(24)
    }
    | {"x24": {"type": "integer"}},
    "$ref": "#/$defs/x0",
}
CATASTROPHE = "a" * 40 + "!"
SCHEMAS = {
    "pattern": ({"type": "string", "pattern": "^(a+)+$"}, f'"{CATASTROPHE}"'),
    "pattern-properties": (
        {"type": "object", "patternProperties": {"^(a+)+$": {"type": "string"}}},
        json.dumps({CATASTROPHE: "x"}),
    ),
    "any-of": (ALTERNATIVES, '"x"'),
    "unique-items": ({"uniqueItems": True}, json.dumps([{"a": n} for n in range(12_000)])),
}


def not_nested(depth: int) -> str:
    """A schema that says "not" so many times."""
    return '{"not": ' * depth + "{}" + "}" * depth
