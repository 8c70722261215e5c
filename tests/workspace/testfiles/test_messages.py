"""Messages as a row gives them."""

from __future__ import annotations

from typing import Any

import pytest

from evalstore.core.errors import FileProblem
from evalstore.core.values import Message, Text
from evalstore.workspace.testfiles.template_filling import parse_messages


def roles(value: Any) -> list[tuple[str, str | None]]:
    """Role and text of each message; None: the candidate fills it."""
    return [
        (message.role, None if message.filled else "".join(part.text for part in message.parts))  # type: ignore[union-attr]
        for message in parse_messages(value)
    ]


FILLED = {"role": "assistant", "content": None}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (" a ", [("user", " a ")]),
        ([{"content": "a"}], [("user", "a")]),
        (
            [{"role": "system", "content": "s"}, {"role": "user", "content": "a"}],
            [("system", "s"), ("user", "a")],
        ),
        ([{"content": "a"}, FILLED], [("user", "a")]),
        (
            [{"content": "a"}, FILLED, {"content": "b"}, FILLED],
            [("user", "a"), ("assistant", None), ("user", "b")],
        ),
        ([{"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}], None),
        ([{"content": "{{ x }}{{_file:y}}"}], [("user", "{{ x }}{{_file:y}}")]),
    ],
)
def test_a_list_or_a_text_is_taken(value: Any, expected: Any) -> None:
    assert roles(value) == (expected or [("user", "ab")])


def test_the_name_of_a_speaker_is_kept() -> None:
    (message,) = parse_messages([{"role": "user", "content": "a", "name": "bob"}])
    assert message == Message("user", (Text("a"),), name="bob")


def test_an_empty_text_has_no_parts() -> None:
    assert parse_messages([{"content": ""}]) == (Message("user", ()),)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, "not null"),
        ([], r"not '\[\]'"),
        ({}, r"not '\{\}'"),
        (True, "not 'true'"),
        ([None], "message 1 is not an object"),
        ([{"content": "a"}, {"role": "User", "content": "b"}], "message 2 has an unknown role"),
        ([{"role": 5, "content": "b"}], "message 1 has an unknown role, '5'"),
        ([{"content": "a", "Name": "b"}], "message 1 has an unknown field 'Name'"),
        ([{"content": "a", "name": ["b"]}], "the 'name' of message 1 is not a text"),
        ([{"content": []}], "the 'content' of message 1 is not a text"),
        ([{"content": ["a"]}], "the 'content' of message 1 is not a text"),
        ([{"content": [{"type": "text"}]}], "the 'content' of message 1 is not a text"),
        ([{"content": [{"type": "image_url", "text": "a"}]}], "message 1 is not a text"),
        ([{"content": "a", "image": "x.png"}], "data cannot mention files"),
        ([FILLED], "nothing in front of the turn"),
        ([FILLED, {"content": "a"}], "nothing in front of the turn"),
        ([{"role": "assistant"}, {"content": "a"}], "the 'content' of message 1 is not a text"),
        ([{"content": "a"}, {"role": "assistant", "content": "b"}], "ends with a fixed answer"),
    ],
)
def test_other_shapes_are_reported(value: Any, message: str) -> None:
    with pytest.raises(FileProblem, match=message):
        parse_messages(value)
