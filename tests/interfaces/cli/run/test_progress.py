"""What a run says of its progress where there is no terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from evalstore.interfaces.cli import output
from evalstore.interfaces.cli.bars import make_bars
from evalstore.interfaces.cli.progress import TerminalProgress

if TYPE_CHECKING:
    from pathlib import Path

    from evalstore.interfaces.cli.progress import Mode
    from tests.interfaces.cli.conftest import Evalstore


@pytest.fixture(autouse=True)
def _not_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the last command in this process was told stays until the next one."""
    monkeypatch.setattr(output, "quiet", False)


def lines_at(
    mode: Mode,
    times: list[float],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> list[str]:
    """What stands on stderr when a call has ended at each of these seconds."""
    now = [0.0]
    monkeypatch.setattr("evalstore.interfaces.cli.progress.time.monotonic", lambda: now[0])
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
        "to do: 3 answers, 2 verdicts",
        "asked 2/3, judged 0/2, $0, 0 tokens",
        "asked 4/3, judged 0/2, $0, 0 tokens",
    ]


def test_progress_counts_verdicts_and_failed_calls(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = [0.0]
    monkeypatch.setattr("evalstore.interfaces.cli.progress.time.monotonic", lambda: now[0])
    listener = TerminalProgress("plain")
    listener.start(3, 3)
    listener.advance("asked", 3)
    listener.advance("failed", 2)
    for verdict in ("fail", "pass", "pass"):
        listener.judged(verdict)
    now[0] = 2.0
    listener.advance("judged", 3)
    assert capsys.readouterr().err.splitlines()[1:] == [
        "asked 3/3, judged 3/3 (2 pass, 1 fail), 2 calls failed, $0, 0 tokens"
    ]


@pytest.mark.parametrize("columns", [60, 80])
def test_bars_and_the_figures_below_them_fit_the_terminal(
    monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    bars, tasks = make_bars({"asking": 600, "judging": 700})
    bars.advance(tasks["asking"], 240)
    bars.advance(tasks["judging"], 60)
    bars.show(("45 pass, 15 fail", ""), ("2 calls failed", "red"), ("$0.0240, 18.6k tokens", ""))
    with bars.console.capture() as captured:
        bars.console.print(*bars.get_renderables())
    asking, judging, figures = (line.rstrip() for line in captured.get().splitlines())
    assert asking.startswith("asking  ━")
    assert " 240/600 " in asking
    assert " 60/700 " in judging
    assert asking.endswith("left")
    assert figures.startswith("45 pass, 15 fail  2 calls failed  $0.0240, 18.6k ")
    assert max(map(len, (asking, judging, figures))) <= columns


@pytest.mark.parametrize("done", [2, 4])
def test_a_bar_has_not_the_colour_of_a_verdict(done: int) -> None:
    bars, tasks = make_bars({"asking": 4})
    bars.advance(tasks["asking"], done)
    column = bars.columns[1]
    assert not isinstance(column, str)
    bar, *_ = bars.console.render(column(bars.tasks[0]))
    assert bar.style
    assert bar.style.color
    assert bar.style.color.name == "cyan"


def test_without_a_terminal_a_short_run_says_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert lines_at("auto", [0.5, 9.0], monkeypatch, capsys) == []
    assert lines_at("none", [0.5, 90.0], monkeypatch, capsys) == []
    assert len(lines_at("auto", [11.0, 12.0], monkeypatch, capsys)) == 1


def test_a_run_says_what_it_does(workspace: Path, evalstore: Evalstore) -> None:
    ran = evalstore("run", "--progress", "plain")
    assert ran.stderr.startswith("to do: 2 answers, 2 verdicts\n")
