"""Reading and writing of JSON Lines with line numbers; invalid rows are reported."""

from __future__ import annotations

import io
import json
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from evalstore.core.errors import FileProblem
from evalstore.core.values import Json
from evalstore.exchange.importers.base import (
    NotTakenError,
    SkippedItem,
    parse_json,
    parsed,
    read_unpacked,
    reason_of,
    require,
)
from evalstore.files.access import LARGEST_DOCUMENT, too_large
from evalstore.files.markdown_lines import SPACE
from evalstore.files.text_source import DataProblem, JsonLines, Record, TextSource

_PAIR = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}")
"""A JSON surrogate pair, for a character outside the Basic Multilingual Plane."""


@dataclass(frozen=True, slots=True)
class JsonLinesRow:
    """One row of a JSON Lines file."""

    line: int
    values: dict[str, Json]
    raw: bytes | None = None
    """The original line; None if the values were changed."""

    def with_values(self, **values: Json) -> JsonLinesRow:
        """Return the row with these values; the row itself if they are unchanged."""
        if all(
            name in self.values and self.values[name] == value for name, value in values.items()
        ):
            return self
        return replace(self, values={**self.values, **values}, raw=None)


def json_as_yaml(text: str) -> str:
    """Return a JSON document as YAML with the same lines, so that values have line numbers."""
    return _PAIR.sub(lambda match: json.loads(f'"{match[0]}"'), text).replace("\t", " ")


def read_rows(path: Path, left: list[SkippedItem]) -> list[JsonLinesRow]:
    """Return the valid rows; the others are added to `left` with the reason."""
    try:
        data = read_unpacked(path)
    except FileProblem as problem:
        left.append(SkippedItem(str(path), reason_of(problem)))
        return []
    lines = data.split(b"\n")
    source = TextSource(lambda: io.BytesIO(data), str(path), "utf-8", zipped=False)
    rows = []
    try:
        for record in JsonLines(source).records():
            if isinstance(record, Record):
                assert record.line is not None
                raw = lines[record.line - 1].removeprefix(b"\xef\xbb\xbf").rstrip(b"\r")
                rows.append(JsonLinesRow(record.line, record.values, raw))
            else:
                left.append(SkippedItem(str(path), record.message, record.line, record.column))
    except DataProblem as problem:
        left.append(SkippedItem(str(path), problem.message, problem.line, problem.column))
    return rows


def write_rows(rows: list[JsonLinesRow]) -> bytes:
    """Return the rows as JSON Lines; unchanged rows keep their original text."""
    return b"".join(
        (json.dumps(row.values, ensure_ascii=False).encode() if row.raw is None else row.raw)
        + b"\n"
        for row in rows
    )


def messages_field(rows: list[JsonLinesRow], column: str = "input") -> dict[str, Json]:
    """Return the field `messages` of a test; empty if the body can show the text unchanged."""
    inputs = [row.values[column] for row in rows]
    if all(isinstance(text, str) and text == text.strip(SPACE) and text for text in inputs):
        return {}
    return {"messages": f"{{{{ item.{column} }}}}"}


def turns_of(rows: list[JsonLinesRow], column: str = "input") -> list[tuple[str, str]]:
    """Return the body, a message with the text of the row; empty if `messages` is used."""
    return [] if messages_field(rows, column) else [("user", f"{{{{ item.{column} }}}}")]


def either(column: str, values: list[Json]) -> str:
    """Return an expression for a list of texts; rows may contain a single text instead."""
    name = f"item.{column}"
    if not any(isinstance(value, str) for value in values):
        return name
    return f"([{name}] if {name} is string else {name})"


# --- the instructions of a judge for rows with ideal answers and a context


def instructions_of(rows: Sequence[JsonLinesRow]) -> str:
    """Return instructions with the columns `ideal` and `context`, if the rows have them."""
    parts = []
    ideals = [row.values.get("ideal") for row in rows]
    contexts = [row.values.get("context") for row in rows]
    if any(ideals):
        parts.append(_listing("The answer must agree with one of these:", "ideal", ideals))
    if any(contexts):
        heading = "Facts to judge by, which the candidate has not seen:"
        parts.append(_listing(heading, "context", contexts))
    if not all(ideals):
        alone_sentence = "The answer must answer the last message correctly and completely."
        absent = "{% if not item.ideal | default(none) %}"
        parts.append(f"{absent}{alone_sentence}{{% endif %}}" if any(ideals) else alone_sentence)
    return "\n\n".join(parts)


def _listing(heading: str, column: str, values: list[Json]) -> str:
    if all(isinstance(value, str) and value for value in values):
        single_heading = heading.replace("one of these", "this")
        return f"{single_heading}\n\n{{{{ item.{column} }}}}"
    loop = "{% for one in " + either(column, values) + " %}\n- {{ one }}\n{% endfor %}"
    if all(values):
        return f"{heading}\n{loop}"
    return f"{{% if item.{column} | default(none) %}}{heading}\n{loop}{{% endif %}}"


_BINARY = re.compile(rb"[\x00-\x08\x0e-\x1a]")
_BEGINNING = 4096


def find_sources(paths: Iterable[Path], suffixes: tuple[str, ...]) -> Iterator[Path]:
    """Yield the named files, and the files in named folders that have one of these suffixes."""
    for path in paths:
        if path.is_dir():
            yield from (file for file in sorted(path.rglob("*")) if file.name.endswith(suffixes))
        else:
            yield path


def read_documents(
    path: Path, left: list[SkippedItem], *, binary: str = "not JSON, but binary data"
) -> Iterator[tuple[int | None, Json]]:
    """Yield the documents of a file; what cannot be read is added to `left` with the reason.

    Each has its line before it, None if it is the whole file. `binary` is the reason for data that
    no text has.
    """
    try:
        data = read_unpacked(path)
    except FileProblem as problem:
        left.append(SkippedItem(str(path), reason_of(problem)))
        return
    lines = [(number, text) for number, text in enumerate(data.split(b"\n"), 1) if text.strip()]
    if len(lines) < 2 or parsed(lines[0][1]) is None:
        if len(data) > LARGEST_DOCUMENT:
            left.append(SkippedItem(str(path), too_large(len(data), LARGEST_DOCUMENT).message))
            return
        lines = [(0, data)]
    for number, text in lines:
        try:
            # JSON has no NaN or infinity
            value = parse_json(text, parse_constant=lambda _name: None, parse_float=_finite)
            yield number or None, value
        except ValueError as error:
            reason = binary if _BINARY.search(text[:_BEGINNING]) else f"not JSON: {error}"
            left.append(SkippedItem(str(path), reason, number or None))


def _finite(text: str) -> float | None:
    number = float(text)
    return number if math.isfinite(number) else None


# --- messages of chat completions in rows


ROLES = ("system", "user", "assistant")
_FIELDS = ("role", "content", "name")


def read_messages(value: Json) -> list[dict[str, Json]]:
    """Return the messages of a conversation; a text is one user message.

    Unknown fields are dropped. Raises `NotTakenError` for unknown roles, for content that is
    not text, for an empty list, and for a conversation that ends with an answer.
    """
    if isinstance(value, str):
        return [{"role": "user", "content": value}]
    require(isinstance(value, list) and value, "'input' must be a text or a list of messages")
    messages = [read_message(number, message) for number, message in enumerate(value, 1)]
    if messages[-1]["role"] == "assistant":
        raise NotTakenError("the conversation ends with an answer, so nothing is asked")
    return messages


def read_message(number: int, message: Json) -> dict[str, Json]:
    """Return one message of a conversation; raises `NotTakenError`."""
    if not isinstance(message, dict):
        raise NotTakenError(f"message {number} must be a mapping with 'role' and 'content'")
    role, content = message.get("role"), message.get("content")
    if role not in ROLES:
        known = ", ".join(ROLES)
        raise NotTakenError(f"message {number} has the role '{role}'; there are {known}")
    if isinstance(content, list) and content:
        texts = [part.get("text") if isinstance(part, dict) else None for part in content]
        content = None if None in texts else content
    require(isinstance(content, str | list), f"the content of message {number} is not text")
    require(isinstance(message.get("name", ""), str), f"the name of message {number} is not text")
    return {field: message[field] for field in _FIELDS if field in message}
