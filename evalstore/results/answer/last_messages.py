"""Reads the last messages of users, for lists of answers."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from evalstore.core import deserialize
from evalstore.planning.open_project import open_store
from evalstore.results.rendering import text_of

if TYPE_CHECKING:
    from evalstore.core.values import Json
    from evalstore.planning.options import Location
    from evalstore.store import Store


def last_user_messages(location: Location, tests: Sequence[str]) -> dict[str, str]:
    """Return the last user message of each of these test versions that the store has, by id."""
    with open_store(location) as store:
        return find_last_messages(store, tests)


def find_last_messages(store: Store, tests: Collection[str]) -> dict[str, str]:
    """Return the same from an open store."""
    return read_last_messages(store.load_contents("test", tests))


def read_last_messages(contents: Mapping[str, Json]) -> dict[str, str]:
    """Return the last user message of each of these test versions, by id."""
    messages: dict[str, str] = {}
    for id, content in contents.items():
        for message in reversed(content.get("messages", ())):
            if message["role"] == "user" and not message.get("filled"):
                messages[id] = _text_of(message.get("content", ""))
                break
    return messages


def _text_of(content: Json) -> str:
    """Return a stored message as text; most are one text."""
    return content if isinstance(content, str) else text_of(deserialize.restore_parts(content))
