"""Hints are wrapped between words in a terminal, and commands in them stay whole."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from evalstore.core.errors import EvalstoreError
from evalstore.interfaces.cli import output
from tests.interfaces.cli.conftest import Evalstore

COMMAND = "\"evalstore show 'tests/refund.md::time=six weeks' -m large\""
HINT = f"(use {COMMAND} to see why the first one failed)"


@pytest.fixture(autouse=True)
def _without_folder() -> None:
    """Forget the folder of a `-C` that an earlier test gave: hints would name it."""
    output.use_folder(None)


def test_a_hint_is_wrapped_between_words_and_around_its_command() -> None:
    assert output.wrap_sentence(HINT, 80) == [
        f"(use {COMMAND} to see why the",
        "first one failed)",
    ]
    assert output.wrap_sentence(HINT, 40) == ["(use", COMMAND, "to see why the first one failed)"]
    assert output.wrap_sentence(HINT, 200) == [HINT]


def test_a_command_in_single_quotes_stays_whole() -> None:
    command = "'evalstore remote add origin s3://bucket/some/path --dry-run'"
    lines = output.wrap_sentence(f"hint: use {command} to see what it does", 40)
    assert lines == ["hint: use", command, "to see what it does"]


@pytest.mark.parametrize("is_terminal", [True, False])
def test_only_a_terminal_wraps(
    is_terminal: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(output, "quiet", False)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal, raising=False)
    output.talk(HINT)
    assert capsys.readouterr().err.count("\n") == 1 + is_terminal


@pytest.mark.parametrize("is_terminal", [True, False])
def test_an_error_and_its_hint_are_wrapped_in_a_terminal_alone(
    is_terminal: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal, raising=False)
    output.failure(EvalstoreError(f"{'word ' * 9}end", hint=f"{'type ' * 9}{COMMAND}"))
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == (5 if is_terminal else 2)
    assert all(output.shown_columns(line) <= 40 or line == COMMAND for line in lines) == is_terminal
    assert COMMAND in lines[-1]


def test_the_lines_of_a_wrapped_hint_have_its_indent() -> None:
    assert output.wrap_sentence("  (use it to see", 10) == ["  (use it", "  to see"]


@pytest.mark.parametrize("columns", [60, 80])
def test_what_status_and_run_say_at_the_end_fits_the_terminal(
    workspace: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    status = evalstore("status").stdout
    assert "A run would ask for 2 answers and give 2 verdicts" in " ".join(status.split())
    assert '(use "evalstore run" to do it' in status
    ran = evalstore("run").stdout
    words = "complete: 2 new answers, 2 new verdicts, $0.06"
    assert words in " ".join(ran.split())
    assert "run <short> " in ran
    for line in (status + ran).splitlines():
        assert len(line) <= columns
    monkeypatch.delenv("COLUMNS")
    assert "\n(1 candidate)" not in evalstore("status").stdout


def test_paths_and_commands_are_whole() -> None:
    path = "tests/春節期間全部門市休息不營業.md"
    assert output.wrap_sentence(f"in {path}", 12) == ["in", path]
    command = '"evalstore show tests/late.md"'
    assert output.wrap_sentence(f"(use {command})", 12) == ["(use", f"{command})"]


def test_a_line_of_output_is_wrapped_in_a_terminal_and_not_with_wide(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    output.line("  several words that need two lines")
    assert capsys.readouterr().out == "  several words that\n  need two lines\n"
    monkeypatch.setattr(output, "wide", True)
    output.line("  several words that need two lines")
    assert capsys.readouterr().out == "  several words that need two lines\n"


def test_blanks_in_a_quoted_value_remain() -> None:
    text = "no row has 'two  blanks   here', and so nothing is asked"
    assert output.wrap_sentence(text, 36) == [
        "no row has 'two  blanks   here', and",
        "so nothing is asked",
    ]
    assert output.wrap_sentence(text, 80) == [text]
