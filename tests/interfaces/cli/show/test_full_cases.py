"""`ls cases --full`: turns that the candidate fills have the names that checks use."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.builders import tree

NAMED = "# 👤\n\nHi {{c}}\n\n# 🤖 @first\n\n# 👤\n\nHo\n\n# 🤖 @second\n\n# 👤\n\nHa\n"
ROWS = "---\nreplacements:\n  c: [a, b]\n---\n"
END = "\n---\n\nE\n"
ASKED = "# 👤\n\nHi\n\n# 🤖 @%s\n\n# 👤\n\n%s\n\n"
RUNS = f"# ▶ one ×2\n\n{ASKED % ('x', 'Ho')}# ▶ two\n\n{ASKED % ('y', 'Ha')}"
GROUP = "\n---\n\n~~~checks\n- {allEqual: , scope: group}\n~~~\n"
UNNAMED = (
    "---\nmessages:\n  - {role: user, content: Hi}\n  - {role: assistant, content: }\n"
    "  - {role: user, content: Ho}\n---\n---\n\nE\n"
)


def fills(document: Any) -> list[list[list[str | None]]]:
    """The names of the filled turns, by case and conversation."""
    return [
        [
            [message["fill"] for message in messages if "fill" in message]
            for messages in case["messages"]
        ]
        for case in document["cases"]
    ]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (ROWS + NAMED + END, [[["first", "second"]]] * 2),
        (ROWS + NAMED + GROUP, [[["first", "second"]] * 2]),
        (RUNS + END, [[["x"], ["x"], ["y"]]]),
        (UNNAMED, [[[None]]]),
        (UNNAMED.replace("content: }", "content: , variable: v}"), [[["v"]]]),
        ("# 👤\n\nHi\n" + END, [[[]]]),
    ],
    ids=["rows", "group", "runs", "unnamed", "variable", "none"],
)
def test_filled_turns_have_their_names(
    workspace: Path, documents: Any, text: str, names: list[list[list[str | None]]]
) -> None:
    (workspace / "tests/weather.md").unlink()
    tree(workspace, {"tests/t.md": text})
    for _ in range(2):  # read anew, and from the store
        document = documents("ls", "cases", "--full")
        assert fills(document) == names
        assert not any(
            "filled" in item
            for case in document["cases"]
            for message in case["messages"]
            for item in message
        )
        documents("run", "--yes")


def test_a_message_keeps_the_name_of_who_speaks(workspace: Path, documents: Any) -> None:
    named = UNNAMED.replace("content: Hi}", "content: Hi, name: Ada}")
    tree(workspace, {"tests/weather.md": named})
    (case,) = documents("ls", "cases", "--full")["cases"]
    assert case["messages"][0][0] == {"role": "user", "name": "Ada", "content": "Hi"}
