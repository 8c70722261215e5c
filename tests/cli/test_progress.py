"""What a run says of its progress where there is no terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from evalstore.cli.progress import TerminalProgress

if TYPE_CHECKING:
    from pathlib import Path

    from evalstore.cli.progress_mode import Mode
    from tests.cli.conftest import Evalstore


def lines_at(
    mode: Mode,
    times: list[float],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> list[str]:
    """What stands on stderr when a call has ended at each of these seconds."""
    now = [0.0]
    monkeypatch.setattr("evalstore.cli.progress.time.monotonic", lambda: now[0])
    listener = TerminalProgress(mode)
    listener.start(3, 2)
    for now[0] in times:
        listener.advance("asked", 1)
    listener.stop()
    return capsys.readouterr().err.splitlines()


def test_plain_progress_begins_at_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert lines_at("plain", [0.5, 1.5, 9.0, 12.0], monkeypatch, capsys) == [
        "to do: 3 answers, 2 judgements",
        "asked 2/3, judged 0/2, $0, 0 tokens",
        "asked 4/3, judged 0/2, $0, 0 tokens",
    ]


def test_without_a_terminal_a_short_run_says_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert lines_at("auto", [0.5, 9.0], monkeypatch, capsys) == []
    assert lines_at("none", [0.5, 90.0], monkeypatch, capsys) == []
    assert len(lines_at("auto", [11.0, 12.0], monkeypatch, capsys)) == 1


def test_a_run_says_what_it_does(workspace: Path, evalstore: Evalstore) -> None:
    ran = evalstore("run", "--progress", "plain")
    assert ran.stderr.startswith("to do: 2 answers, 2 judgements\n")
