"""The frame around the screens: terminals, sizes, keys in the footer, stores that change."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from evalstore.cli.main import main
from evalstore.tui.app import Browser
from evalstore.tui.screens.cases import CasesPage
from evalstore.tui.screens.runs import RunsPage
from evalstore.tui.widgets.footer import KeyFooter
from evalstore.tui.widgets.grid import Grid
from tests.tui.driving import drive, press, resized, screen, settled
from tests.tui.screens.test_actions import notified


def footer(pilot: Pilot[None]) -> list[str]:
    return [key.binding.description for key in pilot.app.screen.query_one(KeyFooter).keys]


async def look(pilot: Pilot[None]) -> None:
    assert isinstance(pilot.app, Browser)
    pilot.app.check_store()
    await settled(pilot)


@pytest.mark.parametrize("command", ["view", "tui"])
def test_without_a_terminal_other_commands_are_named(
    workspace: Path,
    command: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    assert main([command]) == 2
    assert capsys.readouterr().err == (
        "error: 'view' needs an interactive terminal\n"
        "hint: 'evalstore log' lists the runs, and 'evalstore show ID' shows what is stored\n"
    )


def test_a_port_needs_the_web(workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["view", "--port", "8000"]) == 2
    assert capsys.readouterr().err == "error: '--port' needs '--web'\n"


def test_the_footer_has_few_keys_and_the_first_screen_no_way_back(workspace: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        keys = footer(pilot)
        assert "Back" not in keys
        assert {"Run", "Pending work", "Compare", "Statistics"} < {*keys}
        assert len(keys) <= 7
        await press(pilot, "escape", "backspace")
        assert isinstance(pilot.app.screen, RunsPage)
        await press(pilot, "down", "enter")
        keys = footer(pilot)
        assert "Back" in keys
        assert len(keys) <= 6
        assert "? Help" in screen(pilot).splitlines()[-1]

    drive(scenario, size=(80, 24))


def test_a_wide_footer_names_further_keys_of_the_page_as_far_as_they_fit(workspace: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        few = footer(pilot)
        await resized(pilot, 160, 40)
        many = footer(pilot)
        assert many[: len(few)] == few
        assert many[len(few)] == "Sort"
        assert {"Versions", "Statistics", "Label pass"} < {*many}
        assert " s Sort " in screen(pilot).splitlines()[-1]
        assert len(screen(pilot).splitlines()[-1]) <= 160
        await resized(pilot, 300, 40)
        assert {*many, "Judge again", "Edit the file", "Save view"} < {*footer(pilot)}
        for never in ("Previous failure", "Down", "Mark", "Commands"):
            assert never not in footer(pilot)
        await resized(pilot, 40, 12)
        assert footer(pilot) == ["Open", "Back", "Help", "Quit"]

    drive(scenario, size=(80, 24), revision="@")


def test_a_terminal_that_is_too_small_is_told(workspace: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        for width, height, small in (
            (19, 24, True),
            (20, 6, False),
            (80, 5, True),
            (80, 24, False),
        ):
            await resized(pilot, width, height)
            assert ("too small" in screen(pilot)) == small, (width, height)
        await press(pilot, "down", "enter")
        await resized(pilot, 18, 3)
        assert screen(pilot).startswith("too small")

    drive(scenario)


def test_the_revision_of_the_workspace_opens_its_cases(workspace: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        assert isinstance(pilot.app.screen, CasesPage)
        assert "workspace" in screen(pilot).splitlines()[0]

    drive(scenario, revision="@work")


def test_a_revision_that_is_not_there_is_told_and_the_runs_are_behind_it(workspace: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        text = screen(pilot)
        assert "error: " in text
        assert "hint: " in text
        assert "reading" not in text
        await press(pilot, "escape")
        assert screen(pilot).splitlines()[0] == " evalstore › 1 run"

    drive(scenario, revision="beef")


def test_a_store_that_goes_away_or_breaks_is_told_until_it_is_back(workspace: Path) -> None:
    store = workspace / ".evalstore/store.db"

    async def scenario(pilot: Pilot[None]) -> None:
        await look(pilot)
        aside = store.rename(store.with_suffix(".aside"))
        await look(pilot)
        assert "is gone" in " ".join(screen(pilot).split())
        await press(pilot, "j", "k", "down", "enter", "escape")
        assert "is gone" in " ".join(screen(pilot).split())
        await press(pilot, "R", "escape", "r")
        assert "is gone" in " ".join(screen(pilot).split())
        assert not store.exists()
        assert pilot.app.screen.query_one(Grid).row_count == 2
        store.touch()
        await press(pilot, "r")
        assert "is empty" in " ".join(screen(pilot).split())
        store.write_bytes(b"no store at all" * 100)
        await look(pilot)
        assert "error: " in screen(pilot)
        await press(pilot, "down", "enter", "r", "escape")
        aside.replace(store)
        await look(pilot)
        await press(pilot, "r")
        assert "error: " not in screen(pilot)
        assert screen(pilot).splitlines()[0] == " evalstore › 1 run"

    drive(scenario)


def test_what_is_typed_before_the_line_has_the_focus_is_not_lost(workspace: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        page = pilot.app.screen
        assert isinstance(page, CasesPage)
        for burst in (("slash", "o", "s"), ("l", "o")):
            for key in burst:
                pilot.app.simulate_key(key)
            await settled(pilot)
        assert page.query_one("#filter", Input).value == "oslo"
        assert [row.row for row in page.listing.rows] == ["city=Oslo"]

    drive(scenario, revision="@")


def test_a_screen_takes_the_size_that_the_terminal_got_meanwhile(workspace: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        assert "trend" in screen(pilot) or "the workspace" in screen(pilot)
        await press(pilot, "enter")
        await resized(pilot, 40, 12)
        await press(pilot, "escape")
        assert isinstance(pilot.app.screen, RunsPage)
        lines = screen(pilot).splitlines()
        assert lines[0] == " evalstore › 1 run"
        assert "enter shows the cases" not in "\n".join(lines)

    drive(scenario)


def test_nothing_is_written_into_another_store_when_the_store_has_gone(workspace: Path) -> None:
    store = workspace / ".evalstore/store.db"

    async def scenario(pilot: Pilot[None]) -> None:
        await look(pilot)
        aside = store.rename(store.with_suffix(".aside"))
        await press(pilot, "f", "x", "enter")
        assert "is gone" in notified(pilot)
        assert not store.exists()
        aside.replace(store)
        await press(pilot, "enter")
        assert "✎ fail" in screen(pilot)

    drive(scenario, revision="@")


def test_what_is_wrong_with_the_workspace_is_told_until_it_is_right(workspace: Path) -> None:
    file = workspace / "tests/weather.md"
    text = file.read_text(encoding="utf-8")

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "up", "enter")
        file.write_text("---\ntags: [\n---\n", encoding="utf-8")
        await press(pilot, "r", "j", "k")
        assert "error: tests/weather.md:" in screen(pilot)
        file.write_text(text, encoding="utf-8")
        await press(pilot, "r")
        assert "error: " not in screen(pilot)

    drive(scenario)


def test_a_bug_is_told_without_the_values_of_variables(
    workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        app = pilot.app
        key = "sk-" + "secret"
        try:
            raise ValueError(f"a key of {len(key)} characters")
        except ValueError:
            app._fatal_error()

    drive(scenario)
    told = capsys.readouterr().err
    assert "a key of 9 characters" in told
    assert "this is a bug in evalstore" in told
    assert "sk-secret" not in told
