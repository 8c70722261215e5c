"""Of answers that are judged together, the page of the answer opens on the one that fails."""

from __future__ import annotations

from pathlib import Path
from unittest import mock

import pytest
from textual.pilot import Pilot

from evalstore.interfaces.cli.main import main
from tests.builders import tree
from tests.interfaces.cli.conftest import Echo
from tests.interfaces.tui.driving import drive, press, screen

MODEL = "id: scripted/one\nprovider: scripted\nresponses: [{answer: it is not asked}]\n"
SETTINGS = "candidates: [scripted/one]\n"
REPEATED = """\
---
repetitions: 3
---

# User

Say something.

---

~~~checks
- {regex: "^[A-Z]"}
~~~
"""


@pytest.fixture
def repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A case that is asked three times; the second answer fails."""
    files = {"evalstore.yaml": SETTINGS, "models/one.yaml": MODEL, "tests/g.md": REPEATED}
    monkeypatch.chdir(tree(tmp_path / "repeated", files))
    replies = iter(["Bonjour", "hallo", "Salut"])
    provider = Echo(lambda _text: next(replies))
    with mock.patch("evalstore.runs.execution.key_access.open_provider", return_value=provider):
        assert main(["run", "-q", "--concurrency", "1"]) == 1


def test_the_answer_that_fails_is_opened_and_the_others_are_reached(repeated: None) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        text = screen(pilot)
        assert "answer 2 of 3" in text
        assert "hallo" in text
        await press(pilot, "enter")
        text = screen(pilot)
        assert "answer 2 of 3" in text
        assert "regex  at answer 2  (no match in 5 characters)" in text
        assert "expected  a match of '^[A-Z]'" in text
        assert "▸ 2  " in text
        await press(pilot, "a")
        assert "answer 3 of 3" in screen(pilot)
        assert "▸ 3  " in screen(pilot)
        await press(pilot, "a")
        assert "answer 1 of 3" in screen(pilot)
        assert "regex  at answer 2  (no match in 5 characters)" in screen(pilot)

    drive(scenario, revision="@")
