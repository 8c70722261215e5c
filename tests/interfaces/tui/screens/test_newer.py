"""The line of an old run that names a newer one, and the key that leads there."""

from __future__ import annotations

from pathlib import Path

from textual.pilot import Pilot

from evalstore.interfaces.cli.main import main
from evalstore.interfaces.tui.grid import Grid
from evalstore.interfaces.tui.screens.answer import AnswerPage
from tests.interfaces.cli.run.test_run import edit
from tests.interfaces.tui.driving import drive, press, screen


def second(pilot: Pilot[None]) -> str:
    """The line below the title."""
    return screen(pilot).splitlines()[1].strip()


def test_each_page_of_an_old_run_names_the_newer_one_and_leads_to_it(workspace: Path) -> None:
    edit(workspace / "models/one.yaml", "answer: Cold.", "answer: Not warm.")
    main(["run", "--quiet", "--refresh"])
    main(["run", "--quiet", "tests/greeting.md"])

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "G", "enter")
        assert second(pilot) == "the partial run ######## is newer: the key @ shows its cases"
        await press(pilot, "n", "n", "enter")
        page = pilot.app.screen
        assert isinstance(page, AnswerPage)
        assert (page.navigator.case.row, page.navigator.result.verdict) == ("city=Oslo", "fail")
        assert second(pilot) == "run ######## is newer: the key @ shows the newer result"
        await press(pilot, "@")
        assert (page.navigator.case.row, page.navigator.result.verdict) == ("city=Oslo", "pass")
        assert "newer" not in screen(pilot), "the newest run has not got this case"
        await press(pilot, "escape", "@")
        assert "1 case" in screen(pilot).splitlines()[0]
        assert "newer" not in screen(pilot)
        await press(pilot, "@", "escape", "k", "d")
        assert second(pilot) == "the partial run ######## is newer: the key @ compares with it"
        assert pilot.app.screen.query_one(Grid).row_count == 1
        await press(pilot, "@")
        assert "newer" not in screen(pilot)
        assert "No verdict differs." in screen(pilot)

    drive(scenario)


def test_a_newer_run_with_the_same_result_is_not_named(workspace: Path) -> None:
    main(["run", "--quiet", "tests/weather.md"])

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "G", "enter")
        assert second(pilot) == "the partial run ######## is newer: the key @ shows its cases"
        await press(pilot, "n", "n", "enter")
        assert isinstance(pilot.app.screen, AnswerPage)
        assert "newer" not in screen(pilot)

    drive(scenario)


def test_the_workspace_has_no_newer_run(workspace: Path) -> None:
    main(["run", "--quiet"])

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "enter", "@", "n", "n", "enter", "@")
        assert isinstance(pilot.app.screen, AnswerPage)
        assert "newer" not in screen(pilot)

    drive(scenario)
