"""Parses the answer as JSON, and formats values of JSON for a feedback."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from evalstore.checks.base import CheckInput
from evalstore.core.display import shorten, shorten_to_line
from evalstore.core.values import Json
from evalstore.files.yaml12 import parse_json, refuse_constant

_SHOWN = 120
_JSON = frozenset(("json", "jsonc", "json5"))
_NONE = frozenset(("",))
ANYWHERE = "anywhere"
"""How `fenced` says that JSON between other words counts as well, for servers that do not hold
their model to the form that was asked for."""
_MOST_TRIES = 1_000
"""The most braces of an answer that are tried as the beginning of a value."""
_BEGIN = re.compile(r"[\[{]\s*[\[{\"]")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})[ \t]*(.*)\Z")


_PROBLEMS = {
    "Expecting value": "a value is missing",
    "Expecting property name enclosed in double quotes": "a key in double quotes is missing",
    "Expecting ',' delimiter": "a comma is missing",
    "Expecting ':' delimiter": "a colon is missing",
    "Extra data": "the JSON ends before this place",
    "Unterminated string starting at": "the text that begins here has no end",
    "Invalid control character at": "a text has a line break or another control character",
}
"""Messages of Python's parser in plain words."""


class NotJsonError(Exception):
    """The answer is not JSON; the message explains why. A check that raises it fails."""


def parse_answer(subject: CheckInput, *, fenced: bool | str = False) -> Json:
    """Return the answer parsed as JSON, or the value of `actual`; raises `NotJsonError`.

    With `fenced`, JSON in a block of fenced code is accepted as well: in the only block, or in the
    only one that is said to be JSON, or, if none is, in the only one without a language. With
    `ANYWHERE`, so is the only object, or the only list, between other words.
    """
    text = subject.actual
    if text is not None and not isinstance(text, str):
        return text
    text = text or ""
    try:
        return parse_json(text)
    except ValueError as error:
        problem = f"the answer is not JSON{_words_of(error)}, found {shorten_to_line(text)}"
    blocks = _json_blocks(text) if fenced else []
    if fenced == ANYWHERE:
        blocks = [block for block in blocks if _values(block)] or _values(text)
    if len(blocks) > 1:
        where = "value" if fenced == ANYWHERE else "block of fenced code with JSON"
        problem = f"the answer is not JSON: expected one {where}, found {len(blocks)}"
    elif blocks:
        try:
            return parse_json(blocks[0])
        except ValueError as error:
            found = shorten_to_line(blocks[0])
            problem = f"the fenced code is not JSON{_words_of(error)}, found {found}"
    raise NotJsonError(problem)


def _words_of(error: ValueError) -> str:
    """Return why a text is no JSON, and where; nothing if no part of it is JSON."""
    if not isinstance(error, json.JSONDecodeError):
        return f": {error}"
    words = _PROBLEMS.get(error.msg, error.msg[:1].lower() + error.msg[1:])
    return f": {words} (line {error.lineno}, column {error.colno})" if error.pos else ""


def _json_blocks(text: str) -> list[str]:
    """Return the contents of the closed blocks of fenced code that may be JSON."""
    blocks = _fenced_blocks(text)
    languages = [language for language, _ in blocks]
    best = next((known for known in (_JSON, _NONE) if not known.isdisjoint(languages)), languages)
    return [content for language, content in blocks if language in best]


def is_bare(subject: CheckInput) -> bool:
    """Return whether the answer is JSON and nothing else."""
    try:
        parse_answer(subject)
    except NotJsonError:
        return False
    return True


def _values(text: str) -> list[str]:
    """Return the one object between other words, else all outermost objects and lists."""
    found = [text[start:end] for _, start, end in find_values(text, "[{")]
    objects = [value for value in found if value.startswith("{")]
    return objects if len(objects) == 1 else found


def find_values(text: str, brackets: str) -> Iterator[tuple[Json, int, int]]:
    """Yield the outermost values between other words that begin with one of these brackets.

    Each has the indexes of its start and of its end. A broken one ends them: no part of it counts.
    """
    decoder = json.JSONDecoder(parse_constant=refuse_constant)
    bracket, end = re.compile(f"[{re.escape(brackets)}]"), 0
    for _ in range(_MOST_TRIES):
        if (found := bracket.search(text, end)) is None:
            return
        try:
            value, end = decoder.raw_decode(text, found.start())
        except (ValueError, RecursionError):
            if _BEGIN.match(text, found.start()):
                return
            end = found.end()
        else:
            yield value, found.start(), end


def _fenced_blocks(text: str) -> list[tuple[str, str]]:
    """Return the language and the content of each closed block of fenced code in a text."""
    blocks: list[tuple[str, str]] = []
    mark = language = ""
    block: list[str] = []
    for line in text.split("\n"):
        fence = _FENCE.match(line)
        if mark and fence and fence[1].startswith(mark) and not fence[2].strip():
            blocks.append((language, "\n".join(block)))
            mark = ""
        elif mark:
            block.append(line)
        elif fence and not (fence[1][0] == "`" and "`" in fence[2]):
            mark, block = fence[1], []
            language = next(iter(fence[2].lower().split()), "").strip("{.}")
    return blocks


def shown(value: Json) -> str:
    """Return a value for a feedback, shortened: a text in quotes, anything else as JSON."""
    if isinstance(value, str):
        return shorten(value)
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
