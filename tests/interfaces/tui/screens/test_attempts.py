"""Several attempts at a case: each page shows the one that explains the verdict or its change."""

from __future__ import annotations

from pathlib import Path
from unittest import mock

import pytest
from textual.pilot import Pilot

from evalstore.interfaces.cli.main import main
from evalstore.planning.options import Location
from evalstore.results.table.cases import cases
from tests.builders import tree
from tests.interfaces.cli.conftest import Echo
from tests.interfaces.tui.driving import drive, press, screen

FIRST = ["30 days", "14 days", "30 it is", "surely 30", "yes, 30"]
SECOND = ["of course 30", "14 it is", "14 at most", "14 at least", "30 or so"]
MODEL = "id: scripted/one\nprovider: scripted\nresponses: [{answer: it is not asked}]\n"
TEST = "# 👤\n\nHow long?\n\n---\n\n```checks\n- contains: '30'\n```\n"


@pytest.fixture
def flaky(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two runs with five attempts at a case, of which first one and then three fail."""
    folder = tree(
        tmp_path / "flaky",
        {
            "evalstore.yaml": "candidates: [scripted/one]\nattempts: 5\n",
            "models/one.yaml": MODEL,
            "tests/days.md": TEST,
        },
    )
    monkeypatch.chdir(folder)
    answers = iter(FIRST + SECOND)
    provider = Echo(lambda _text: next(answers))
    with mock.patch("evalstore.runs.execution.key_access.open_provider", return_value=provider):
        assert main(["run", "-q"]) == 0
        assert main(["run", "-q", "--refresh"]) == 1
    return folder


def test_a_comparison_shows_the_attempts_that_changed(
    flaky: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["diff", "@~1", "@", "--answers"])
    printed = capsys.readouterr().out
    assert "pass -> fail, 1 of 5 attempts failed -> 3 of 5  (asked again)" in printed
    assert "was:" not in printed
    assert "now: '30' is not in '14 it is'\n" in printed
    assert "-30 days\n" in printed
    assert "+14 it is\n" in printed

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "down", "d")
        text = screen(pilot)
        assert "1 of 5 attempts failed -> 3 of 5" in text
        assert "answer before (1 of 5)\n 30 days" in text
        assert "answer after (2 of 5)\n 14 it is" in text
        await press(pilot, "i")
        assert "3 of 5 attempts failed -> 1 of 5" in screen(pilot)
        await press(pilot, "i", "enter")
        assert "3 of 5 attempts fail  answer 2 of 5" in screen(pilot)

    drive(scenario)


def test_the_cases_mark_attempts_that_differ_and_show_the_first_that_failed(flaky: Path) -> None:
    listed = cases(Location(flaky), "@~1")
    (result,) = listed.rows[0].results
    assert result
    assert listed.shown_attempt(result) == 1

    async def scenario(pilot: Pilot[None]) -> None:
        text = screen(pilot)
        assert "✗ fail 3/5" in text
        assert "3 of 5 attempts fail  answer 2 of 5" in text
        assert "'30' is not in '14 it is'" in text
        await press(pilot, "enter")
        assert "14 it is" in screen(pilot)
        assert "answer 2 of 5" in screen(pilot)
        for key, number in (("a", 3), ("A", 2), ("A", 1), ("A", 5), ("a", 1)):
            await press(pilot, key)
            assert f"answer {number} of 5" in screen(pilot)

    drive(scenario, revision="@")
