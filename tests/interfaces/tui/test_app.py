"""The frame around the screens: terminals, sizes, keys in the footer, stores that change."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from evalstore.interfaces.cli.main import main
from evalstore.interfaces.tui.app import PAGES, REGISTRY, Browser
from evalstore.interfaces.tui.grid import Grid
from evalstore.interfaces.tui.page_lines import KeyFooter, TitleLine, footer_hint, own_actions
from evalstore.interfaces.tui.screens.answer import AnswerPage
from evalstore.interfaces.tui.screens.cases import CasesPage
from evalstore.interfaces.tui.screens.run import StatusPage
from evalstore.interfaces.tui.screens.runs import RunsPage
from evalstore.interfaces.tui.text_view import TextView
from tests.builders import tree
from tests.interfaces.tui.conftest import GREETING
from tests.interfaces.tui.driving import drive, press, resized, screen, settled, until
from tests.interfaces.tui.screens.test_actions import notified
from tests.interfaces.tui.test_meanings import OF_INPUTS


def footer(pilot: Pilot[None]) -> list[str]:
    return [keys.words.strip() for keys in pilot.app.screen.query_one(KeyFooter).keys]


async def look(pilot: Pilot[None]) -> None:
    assert isinstance(pilot.app, Browser)
    pilot.app.check_store()
    await settled(pilot)


@pytest.mark.parametrize("command", ["view"])
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


def test_the_footer_begins_with_what_one_came_for_and_ends_with_the_ways_out(
    workspace: Path,
) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        assert screen(pilot).splitlines()[-1].rstrip() == (
            " enter Open  R Run  w Pending  B What broke  d Compare  / F Find  ? Help  q Quit"
        )
        await press(pilot, "escape", "backspace")
        assert isinstance(pilot.app.screen, RunsPage)
        await press(pilot, "down", "enter")
        assert screen(pilot).splitlines()[-1] == (
            " enter Open  p f Label  e Edit  J Judge  n N Failure  esc Back  ? Help  q Quit"
        )
        await resized(pilot, 40, 12)
        assert footer(pilot) == ["Open", "Back", "Help", "Quit"]
        await resized(pilot, 120, 30)
        await press(pilot, "enter")
        assert screen(pilot).splitlines()[-1] == (
            " p f Label  e Edit  J Judge  n N Failure  [ ] Case  ← → Candidate  b Side by side"
            "  m Markdown  esc Back  ? Help  q Quit"
        )

    drive(scenario, size=(80, 24))


def test_a_wide_footer_names_more_and_no_key_that_can_be_guessed(workspace: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        few = footer(pilot)
        await resized(pilot, 300, 40)
        many = footer(pilot)
        assert many[: len(few) - 3] == few[:-3]
        assert {"Find", "Sort", "Group", "Versions", "Save view"} < {*many}
        assert len(screen(pilot).splitlines()[-1]) <= 300
        for never in ("Down", "Page down", "Commands"):
            assert never not in many

    drive(scenario, size=(80, 24), revision="@")


def test_lists_and_texts_are_moved_through_with_the_same_keys() -> None:
    lists, texts = (
        {key for it in own_actions(kind) for key in it.keys} for kind in (Grid, TextView)
    )
    assert lists - texts == {"enter", *("left", "h", "right", "l")}
    assert not texts - lists


def test_the_footer_of_the_pending_work_begins_with_running_it(workspace: Path) -> None:
    (workspace / "tests/new.md").write_text("# 👤\n\nHow is Lima?\n")

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "w")
        assert footer(pilot) == ["Run", "Open", "Edit", "Copy", "Save view", "Back", "Help", "Quit"]
        await resized(pilot, 40, 12)
        assert footer(pilot) == ["Run", "Back", "Help", "Quit"]

    drive(scenario, size=(80, 24))


def test_the_footer_names_only_actions_that_exist() -> None:
    hints = [footer_hint(named) for page in PAGES for named in page.FOOTER]
    ids = {id for hint in hints for id in hint.ids}
    assert ids <= {*REGISTRY.actions, *OF_INPUTS}


def test_a_message_goes_when_another_screen_covers_its_own(workspace: Path) -> None:
    for file in (workspace / "tests").glob("*.md"):
        file.unlink()
    tree(
        workspace, {"tests/fine.md": "# User\n\nHi\n\n---\n\n~~~checks\n- length: {min: 1}\n~~~\n"}
    )
    main(["run", "--quiet"])

    async def scenario(pilot: Pilot[None]) -> None:
        for key in ("w", "R"):
            await press(pilot, "n")
            assert [each.message for each in pilot.app._notifications] == ["no listed case failed"]
            await press(pilot, key)
            assert not [*pilot.app._notifications]
            await press(pilot, "escape")

    drive(scenario, revision="@", messages=True)


@pytest.mark.parametrize("size", [(80, 24), (40, 12)])
def test_a_message_covers_no_text(workspace: Path, size: tuple[int, int]) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        for keys in ((), ("down", "enter"), ("enter",), ("R",), ("escape", "o")):
            await press(pilot, *keys)
            pilot.app.notify("one line\n" + "many words " * 6)
            await settled(pilot)
            page = pilot.app.screen
            toasts = [toast.region for toast in page.query("Toast")]
            assert toasts
            for text in page.query("Grid, TextView, FittedView, KeyFooter, #box"):
                assert not any(map(text.region.overlaps, toasts)), text
            assert "one line" in screen(pilot)
            pilot.app.clear_notifications()
            await settled(pilot)
            assert not page.query("Toast")

    drive(scenario, size=size, messages=True)


@pytest.mark.parametrize(
    ("keys", "titles", "size"),
    [
        ("", "Runs Details", (80, 24)),
        ("w", "Items Details", (160, 40)),
        ("S", "Results Details", (80, 24)),
        (["d"], "Cases Answers", (160, 40)),
        (["enter"], "Cases Answer", (80, 24)),
        (["enter", "v"], "Versions Edits", (160, 40)),
        (["/", *"warm", "enter"], "Texts Text", (80, 24)),
    ],
    ids=lambda value: "".join(map(str, value))[:6],
)
def test_each_panel_has_a_title_that_shows_the_focus(
    workspace: Path, keys: Sequence[str], titles: str, size: tuple[int, int]
) -> None:
    (workspace / "tests/new.md").write_text(GREETING)

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, *keys)
        page = pilot.app.screen
        panels = [it for it in page.focus_chain if isinstance(it, (Grid, TextView))]
        assert len(panels) == 2
        for panel, title in zip(panels, titles.split(), strict=True):
            panel.focus()
            await settled(pilot)
            others = {it for it in titles.split() if it != title}
            text = screen(pilot)
            assert re.search(rf"[━─] +▸ {title} +[━─]", text)
            assert all(re.search(rf"─ +{other} +─", text) for other in others)
            assert text.count("▸") == 1
        await press(pilot, "shift+tab" if page.focused is panels[1] else "tab")
        assert page.focused is panels[0]
        await resized(pilot, 40, 12)
        assert "▸" not in screen(pilot), "lines are few: only one panel is seen"

    drive(scenario, size=size)


def test_a_terminal_that_is_too_small_is_reported(workspace: Path) -> None:
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


def test_a_revision_that_is_not_there_is_reported_and_the_runs_are_behind_it(
    workspace: Path,
) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        text = screen(pilot)
        assert "error: " in text
        assert "hint: " in text
        assert "reading" not in text
        await press(pilot, "escape")
        assert screen(pilot).splitlines()[0] == " evalstore › 1 run"

    drive(scenario, revision="beef")


def test_a_missing_or_broken_store_is_reported_until_it_is_back(workspace: Path) -> None:
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


def test_keys_wait_for_the_list_of_the_page_that_a_key_before_has_opened(workspace: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        for key in ("ctrl+j", "n", "enter"):
            pilot.app.simulate_key(key)
        await settled(pilot)
        assert isinstance(pilot.app.screen, AnswerPage)
        assert "✗ fail" in screen(pilot)

    drive(scenario)


def test_a_key_that_leaves_drops_those_that_wait_for_a_list(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CasesPage, "reload", lambda _: None)

    async def scenario(pilot: Pilot[None]) -> None:
        for key in ("enter", "f", "n"):
            pilot.app.simulate_key(key)
        await until(pilot, lambda: isinstance(pilot.app.screen, CasesPage))
        pilot.app.simulate_key("escape")
        await settled(pilot)
        assert isinstance(pilot.app.screen, RunsPage)

    drive(scenario)


def test_keys_that_wait_for_the_list_of_a_page_do_nothing_on_another(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CasesPage, "reload", lambda _: None)

    async def scenario(pilot: Pilot[None]) -> None:
        for key in ("enter", "w"):
            pilot.app.simulate_key(key)
        await until(pilot, lambda: isinstance(pilot.app.screen, CasesPage))
        page = pilot.app.screen
        assert isinstance(page, CasesPage)
        page.action_back()
        await settled(pilot)
        shown = [pilot.app.screen]
        await press(pilot, "w")
        shown.append(pilot.app.screen)
        assert [type(each) for each in shown] == [RunsPage, StatusPage]

    drive(scenario)


def test_a_title_says_that_a_page_is_being_read_before_it_has_a_size(workspace: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        line = TitleLine()
        pilot.app.screen.mount(line)
        assert (line.size.width, line.render().plain) == (0, "reading …")

    drive(scenario)


def test_a_screen_takes_the_size_that_the_terminal_got_meanwhile(workspace: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        assert "the workspace" in screen(pilot)
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
        assert "✗ fail  by " in screen(pilot)

    drive(scenario, revision="@")


def test_what_is_wrong_with_the_workspace_is_reported_until_it_is_right(workspace: Path) -> None:
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


def test_a_bug_is_reported_without_the_values_of_variables(
    workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        app = pilot.app
        key = "sk-" + "secret"
        try:
            raise ValueError(f"a key of {len(key)} characters: postgresql://a:{key}@h/d")
        except ValueError:
            app._fatal_error()

    drive(scenario)
    errors = capsys.readouterr().err
    assert "a key of 9 characters: postgresql://a:***@h/d" in errors
    assert "this is a bug in evalstore" in errors
    assert "sk-secret" not in errors
