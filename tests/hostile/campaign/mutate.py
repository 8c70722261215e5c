"""Changes of bytes, texts and JSON that make something hostile of something right."""

from __future__ import annotations

import json
import re
from random import Random
from typing import Any

from tests.hostile.campaign import generate

_SCALAR = re.compile(r"(?<=: )[^\s\[{][^\n]*$", re.M)
_NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?![\w.])")


def data(chance: Random, content: bytes) -> bytes:
    """Bytes with one to three changes."""
    for _ in range(chance.randint(1, 3)):
        try:
            changed = text(chance, content.decode()).encode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            changed = raw(chance, content)
        content = raw(chance, content) if chance.random() < 0.2 else changed
    return content


def raw(chance: Random, content: bytes) -> bytes:
    """Bytes with one change that knows nothing of texts."""
    at = chance.randrange(len(content) + 1)
    end = min(len(content), at + chance.choice((1, 2, 16, 200)))
    forms = (
        content[:at] + bytes([chance.randrange(256)]) + content[at + 1 :],
        content[:at] + content[end:],
        content[:end] + content[at:],
        content[:at],
        content[:at] + chance.choice((b"\x00", b"\xff\xfe", b"\xc3\x28", b"\r")) + content[at:],
        content.replace(b"\n", b"\r\n"),
        content.decode("utf-8", "replace").encode("utf-16"),
    )
    return chance.choice(forms)


def text(chance: Random, content: str) -> str:
    """A text with one change."""
    lines = content.splitlines(keepends=True) or [""]
    first, second = chance.randrange(len(lines)), chance.randrange(len(lines))
    at = chance.randrange(len(content) + 1)
    forms = (
        lambda: "".join(lines[:first] + lines[first + 1 :]),
        lambda: "".join([*lines[: first + 1], lines[second], *lines[first + 1 :]]),
        lambda: "".join(lines[:first] + [lines[first]] * chance.choice((2, 50)) + lines[first:]),
        lambda: content[:at] + str(generate.scalar(chance)) + content[at:],
        lambda: content[:at] + generate.template(chance) + content[at:],
        lambda: _replace(chance, _SCALAR, content, generate.text_of(generate.value(chance))),
        lambda: _replace(chance, _NUMBER, content, str(chance.choice(generate.NUMBERS))),
        lambda: content[:at] + f"\n{chance.choice(generate.FIELDS)}: " + content[at:],
    )
    return chance.choice(forms)()


def _replace(chance: Random, pattern: re.Pattern[str], content: str, new: str) -> str:
    actual = list(pattern.finditer(content))
    if not actual:
        return content + new
    where = chance.choice(actual)
    return content[: where.start()] + new + content[where.end() :]


def document(chance: Random, content: Any) -> Any:
    """JSON with one member changed, left out or added; what was given stays as it is."""
    content = json.loads(json.dumps(content))
    places = list(_places(content))
    if not places:
        return generate.value(chance)
    holder, key = chance.choice(places)
    form = chance.random()
    if form < 0.2:
        del holder[key]
    elif form < 0.4 and isinstance(holder, dict):
        holder[chance.choice(generate.FIELDS)] = generate.value(chance)
    else:
        holder[key] = generate.value(chance, 2)
    return content


def _places(content: Any) -> Any:
    pairs = content.items() if isinstance(content, dict) else enumerate(content)
    for key, inner in list(pairs):
        yield content, key
        if isinstance(inner, dict | list):
            yield from _places(inner)
