"""Hints are wrapped between words in a terminal, and commands in them stay whole."""

from __future__ import annotations

import sys

import pytest

from evalstore.cli import output

COMMAND = "\"evalstore show 'tests/refund.md::time=six weeks' -m large\""
HINT = f"(use {COMMAND} to see why the first one failed)"


def test_a_hint_is_wrapped_between_words_and_around_its_command() -> None:
    assert output.wrap_sentence(HINT, 80) == [
        f"(use {COMMAND} to see why the",
        "first one failed)",
    ]
    assert output.wrap_sentence(HINT, 40) == ["(use", COMMAND, "to see why the first one failed)"]
    assert output.wrap_sentence(HINT, 200) == [HINT]


@pytest.mark.parametrize("is_terminal", [True, False])
def test_only_a_terminal_wraps(
    is_terminal: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(output, "quiet", False)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal, raising=False)
    output.talk(HINT)
    assert capsys.readouterr().err.count("\n") == 1 + is_terminal
