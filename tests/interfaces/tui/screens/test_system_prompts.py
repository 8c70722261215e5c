"""Cases with several system prompts: counted, gone to, labelled and judged one by one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from evalstore.core.runs import ProgressListener
from evalstore.interfaces.cli.main import main
from evalstore.interfaces.tui.grid import Grid
from evalstore.interfaces.tui.screens.answer import AnswerPage
from evalstore.interfaces.tui.screens.cases import CasesPage
from evalstore.interfaces.tui.screens.search import SearchPage
from evalstore.interfaces.tui.text_view import TextView
from evalstore.planning.open_project import open_store
from evalstore.planning.options import Location
from evalstore.runs import run
from evalstore.store.results import read_results
from tests.builders import tree
from tests.interfaces.cli.run.test_run import edit
from tests.interfaces.tui.driving import drive, press, screen, settled


@pytest.fixture
def prompts(workspace: Path) -> Path:
    """Each city is asked with two system prompts."""
    tree(workspace, {"prompts/brief.md": "Be brief.\n", "prompts/polite.md": "Be polite.\n"})
    edit(workspace / "tests/weather.md", "tags:", "systemPrompts: [brief, polite]\ntags:")
    main(["run", "--quiet"])
    return workspace


def page_of(pilot: Pilot[None]) -> CasesPage:
    page = pilot.app.screen
    assert isinstance(page, CasesPage)
    return page


def text_of(pilot: Pilot[None]) -> str:
    assert isinstance(pilot.app.screen, AnswerPage)
    text = pilot.app.screen.query_one("#text", TextView).text
    return re.sub(r"just now|\d+ seconds? ago", "some time ago", text)


def test_the_title_counts_cases_and_their_lines(prompts: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        assert "workspace › 3 cases, 5 lines › " in screen(pilot)
        await press(pilot, "slash", *"oslo", "enter")
        assert "1 of 3 cases, 2 lines" in screen(pilot)
        await press(pilot, "down", "enter")
        assert "workspace › case 1 of 1" not in screen(pilot)
        assert "prompt 2 of 2" in screen(pilot)
        await press(pilot, "escape", "escape", "t")
        assert "▾ tests/weather.md: 2 cases, 4 lines, " in screen(pilot)
        await press(pilot, "G", "enter")
        assert "case 3 of 3, prompt 2 of 2" in screen(pilot)

    drive(scenario, revision="@work", size=(120, 30))


def test_commands_find_the_case_with_its_system_prompt_from_every_screen(prompts: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "ctrl+p", *"Oslo] (polite)", "enter")
        case = page_of(pilot).case
        assert case
        assert (case.row, case.prompt) == ("city=Oslo", "polite")
        await press(pilot, "g", "ctrl+p", *"Rome] (polite)", "enter")
        case = page_of(pilot).case
        assert case
        assert (case.row, case.prompt) == ("city=Rome", "polite")

    drive(scenario)


def test_a_label_is_seen_from_the_answers_with_other_prompts(prompts: Path) -> None:
    others = "other results of this case"

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "down", "enter")
        assert "✗ fail  (polite)  scripted/one" in text_of(pilot).partition(others)[2]
        await press(pilot, "]", "p", "enter", "[")
        shown = text_of(pilot).partition(others)[2]
        assert "✓ pass ✎  (polite)  scripted/one" in shown
        await press(pilot, "r")
        assert text_of(pilot).partition(others)[2] == shown

    drive(scenario, revision="@work")


def test_in_a_run_a_later_label_stands_behind_the_verdict_of_the_run(prompts: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "down", "down", "enter", "p", "enter", "[")
        assert "✗ fail ✎✓  (polite)  scripted/one" in text_of(pilot)

    drive(scenario, revision="@")


def test_only_the_answer_that_is_shown_is_judged_again(prompts: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "down", "down", "J")
        text = screen(pilot)
        assert "judge 1 result of scripted/one again" in text
        assert "1 verdict" in text
        await press(pilot, "enter")
        assert "1 new verdict" in screen(pilot)
        assert "partial run" not in screen(pilot)

    drive(scenario, revision="@work")


def test_an_answer_is_judged_again_after_its_system_prompt_was_edited(prompts: Path) -> None:
    (prompts / "prompts/polite.md").write_text("Be very polite.\n")

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "down", "down", "J")
        assert "Nothing to do." in screen(pilot), "the edited prompt has no answer yet"

    drive(scenario, revision="@")


@pytest.mark.parametrize("edited", [False, True])
def test_the_shown_answer_is_judged_again_after_prompts_changed_contents(
    prompts: Path, edited: bool
) -> None:
    brief, polite = (prompts / f"prompts/{name}.md" for name in ("brief", "polite"))
    brief.write_text(polite.read_text())
    polite.write_text("Be very brief.\n" if edited else "Be brief.\n")

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "down", "J")
        gone = "the workspace no longer has any of these cases with these system prompts"
        assert (gone if edited else "judge 1 result of scripted/one again") in screen(pilot)

    drive(scenario, revision="@")
    location = Location(prompts)
    with open_store(location) as store:
        results = read_results(store, store.find_runs()[0])
    shown = {result.prompt for result in results}
    first = [result for result in results if not result.prompt_number and result.row][:1]
    if edited:
        return
    request = run.again(location, first, shown)
    planned = run.plan(location, request)
    end = run.carry_out_request(location, request, ProgressListener(), planned)
    [(was, now)] = end.repeated
    assert (was, now.prompt, now.sessions) == (first[0], was.prompt, was.sessions)


PROMPTS = ("", " (brief)", " (polite)")


def test_a_search_names_the_system_prompt_of_an_answer_to_one_of_several(prompts: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "F", *"cold")
        lines = [line.strip("│ ").split() for line in screen(pilot).splitlines()]
        found = [line[2] for line in lines if line[:2] == ["answer", "city=Oslo"]]
        assert sorted(found) == ["(brief)", "(polite)", "scripted/one"], "the last has one prompt"
        page = pilot.app.screen
        assert isinstance(page, SearchPage)
        view = page.query_one("#hit", TextView)
        heads = set()
        await press(pilot, "enter")
        for _ in range(page.query_one(Grid).row_count):
            heads.add(view.text.partition("\n")[0])
            await press(pilot, "down")
        assert {f"tests/weather.md [city=Oslo]{prompt}" for prompt in PROMPTS} <= heads
        page.query_one("#words", Input).value = "how is oslo"
        await settled(pilot)
        assert "tests/weather.md [city=Oslo]\n" in view.text, "the text of the test is that of both"

    drive(scenario, size=(110, 30))
