"""Text files of a test, below the message that has them."""

from __future__ import annotations

from pathlib import Path

from textual.pilot import Pilot

from evalstore.core.values import FileRef
from evalstore.interfaces.cli.main import main
from evalstore.interfaces.tui.render.answer import text_file_lines
from evalstore.interfaces.tui.screens.answer import AnswerPage
from evalstore.results.answer.answer import TurnView
from tests.builders import tree
from tests.interfaces.tui.driving import drive, press, screen


def texts(data: bytes) -> list[str]:
    return [line.text for line in text_file_lines("files/a.txt", data)]


def test_a_file_is_shown_under_its_path() -> None:
    assert texts(b"One.\n\nTwo.\n") == ["│ files/a.txt", "│ One.", "│ ", "│ Two."]


def test_of_a_long_file_the_beginning_is_shown_and_how_much_is_left() -> None:
    assert texts(b"line\n" * 100)[-2:] == ["│ line", "│ … 301 more bytes"]
    lines = texts("ü".encode() * 5_000)
    assert len(lines[1]) == 2 + 4_000
    assert lines[-1] == "│ … 2,000 more bytes"


def test_what_is_not_utf8_and_control_characters_are_escaped() -> None:
    assert texts(b"a\x1b[31m\xff")[1] == "│ a\\x1b[31m\ufffd"


def test_files_that_are_texts_are_known_by_their_media_types() -> None:
    kinds = ("text/plain", "application/json", "image/png", "application/pdf", "image/svg+xml")
    files = [FileRef(f"f{number}", kind, str(number)) for number, kind in enumerate(kinds)]
    found = TurnView("user", "", files=tuple(files)).text_files
    assert [file.media_type for file in found] == ["text/plain", "application/json"]


def test_the_screen_of_an_answer_shows_the_text_files_of_the_question(workspace: Path) -> None:
    tree(
        workspace,
        {
            "tests/files/terms.txt": "Late bikes cost 5 euros an hour.\n",
            "tests/terms.md": "# 👤\n\nLate? `{{_file:files/terms.txt}}`\n\n---\n\nA price.\n",
        },
    )
    main(["run", "--quiet"])

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "slash", *"file:terms", "enter", "enter")
        assert isinstance(pilot.app.screen, AnswerPage)
        assert "│ Late bikes cost 5 euros an hour." in screen(pilot)
        await press(pilot, "m")
        assert "Late bikes" not in screen(pilot), "as it is written, the file is named"
        assert "terms.txt, text/plain" in screen(pilot)

    drive(scenario, revision="@", size=(100, 50))
