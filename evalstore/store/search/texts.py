"""Extracts the searchable texts of the store, and the sessions that they belong to."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from evalstore.core.values import Json
from evalstore.store.contents import decode_row
from evalstore.store.store import Store

Kind = Literal["answers", "feedback", "tests", "instructions"]
KINDS: tuple[Kind, ...] = ("tests", "instructions", "answers", "feedback")
"""Referenced kinds come first: then new ids are inserted in order, which is quick."""
TABLES = dict(zip(KINDS, ("tests", "evaluation_versions", "sessions", "evaluations"), strict=True))
"""The table of the store with the texts of each kind."""


_FIELDS = {"feedback": "feedback", "instructions": "instructions"}
"""The fields with the texts of kinds that are often without one."""


class StoredText(NamedTuple):
    """A row with a text, as it is stored."""

    id: bytes
    content: str
    place: int | None
    """Of a judgement: where its instructions are in their content; 0 if they have no text."""

    def is_of_use(self, kind: Kind) -> bool:
        """Return whether it may have a text, or link one to a session; it is not decoded for it.

        Instructions that are missing may be stored later.
        """
        field = _FIELDS.get(kind)
        # Inside a string, quotes are escaped.
        return field is None or self.place != 0 or f'"{field}":' in self.content


def stored_texts(kind: Kind, position: str) -> str:
    """Return the columns of `StoredText` and the table, for a query that calls the rows `stored`.

    `position` is the function of the database that finds a text in another one.
    """
    columns, source = "stored.id, stored.content", f"{TABLES[kind]} AS stored"
    if kind != "feedback":
        return f"{columns}, 0 FROM {source}"
    found = f"""{position}(version.content, '"{_FIELDS["instructions"]}":')"""
    return (
        f"{columns}, {found} FROM {source} "
        f"LEFT JOIN {TABLES['instructions']} AS version ON version.id = stored.evaluation"
    )


def load_searched(store: Store, kind: Kind, ids: Sequence[str]) -> dict[str, Json]:
    """Return the contents of those of these documents that the store has."""
    query = f"SELECT id, content FROM {TABLES[kind]} WHERE id IN"
    return dict(decode_row(TABLES[kind], *row) for row in store._select_each(query, ids))


def load_texts(store: Store, kind: Kind, ids: Sequence[str]) -> dict[str, str]:
    """Return the texts of those of these documents that the store has."""
    return {
        id: searchable_text(kind, content)
        for id, content in load_searched(store, kind, ids).items()
    }


def readable_text(kind: Kind, content: Json) -> str:
    """Return the text of a content to be read: as it is searched, with its files by their names."""
    if kind == "tests":
        content = {"messages": [_name_files(message) for message in content.get("messages", ())]}
    return searchable_text(kind, content)


def _name_files(message: Json) -> Json:
    parts = message.get("content", ())
    if isinstance(parts, str):
        return message
    named = "{{{{_file:{path}}}}}"
    return {
        "content": [{"text": named.format(path=it["path"])} if "path" in it else it for it in parts]
    }


def searchable_text(kind: Kind, content: Json) -> str:
    """Return the searchable text of a content."""
    if kind == "answers":
        return "\n\n".join(part for turn in content["turns"] for part in _texts_of_turn(turn))
    if kind == "feedback":
        return str(content.get("feedback", ""))
    if kind == "instructions":
        return _text_of_parts(content.get("instructions", ()))
    messages = content.get("messages", ())
    return "\n\n".join(_text_of_parts(message.get("content", ())) for message in messages)


def _texts_of_turn(turn: Json) -> Iterator[str]:
    for name in ("text", "refusal"):
        if turn.get(name):
            yield str(turn[name])
    for call in turn.get("toolCalls", ()):
        yield f"{call['name']} {json.dumps(call['arguments'], ensure_ascii=False)}"


def _text_of_parts(parts: Json) -> str:
    if isinstance(parts, str):
        return parts
    return "".join(str(part.get("text", " ")) for part in parts)


def list_named(kind: Kind, content: Json) -> list[str]:
    """Return the ids that a document refers to: its test, or its instructions and sessions."""
    if kind == "answers":
        return [str(content["test"])]
    if kind == "feedback":
        return [str(content["evaluation"]), *map(str, content["sessions"])]
    return []


def iterate_links(kind: Kind, id: str, about: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield pairs of documents and sessions."""
    if kind == "answers":
        yield id, id
        yield about[0], id
    elif kind == "feedback":
        for session in about[1:]:
            yield id, session
            yield about[0], session
