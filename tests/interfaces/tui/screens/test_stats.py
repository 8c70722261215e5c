"""What a run comes to."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from textual.pilot import Pilot

from evalstore.interfaces.cli.main import main
from evalstore.interfaces.tui.grid import Grid
from evalstore.interfaces.tui.screens.cases import CasesPage
from evalstore.interfaces.tui.screens.stats import StatsPage
from evalstore.interfaces.tui.text_view import TextView
from evalstore.planning.options import Location
from evalstore.results.labels import label
from tests.builders import tree
from tests.interfaces.cli.run.test_run import edit
from tests.interfaces.tui.driving import drive, press, resized, screen, show_changes


def facts(pilot: Pilot[None]) -> str:
    return pilot.app.screen.query_one("#facts", TextView).text


def test_the_names_of_the_tables_fit_into_a_narrow_terminal(workspace: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "S")
        assert screen(pilot).splitlines()[1] == " 1 candidate  2 prompt  3 tag  4 file"

    drive(scenario, size=(40, 12))


def test_the_details_have_the_lines_that_a_short_table_leaves(workspace: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "S")
        page = pilot.app.screen
        assert page.query_one("#groups").size.height == 3
        assert page.query_one("#facts").size.height == 80 - 8

    drive(scenario, size=(100, 80))


def test_a_run_is_added_up_by_candidate_prompt_tag_and_file(workspace: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "down", "S")
        lines = screen(pilot).splitlines()
        assert lines[0] == (" statistics › run ######## › 50.0% of 6 (95% interval 10.3 to 89.7%)")
        assert lines[4].split() == [
            "scripted/one", "33.3%", "·├────●────────┤····", "1/3", "3", "3",
            "$0.0900", "$3.00", "$0",
        ]  # fmt: skip
        assert facts(pilot) == (
            "scripted/one\n"
            "33.3% of 3 (95% interval 6.1 to 79.2%)\n"
            "2 test files, 3 cases, 3 answers, 3 verdicts\n"
            "answers $0.0900 ($3.00 for 100 answers), judging $0, when they were made; "
            "costs of scripted models are simulated\n"
            "\n"
            "no trend: no earlier run"
        )
        page = pilot.app.screen
        assert isinstance(page, StatsPage)
        seen = []
        for key in ("]", "3", "4", "[", "1"):
            await press(pilot, key)
            assert page.stats
            seen.append([group.name for group in page.stats.groups])
        assert seen == [
            ["no prompt"],
            ["manners", "weather"],
            ["tests/greeting.md", "tests/weather.md"],
            ["manners", "weather"],
            ["scripted/one", "scripted/two"],
        ]
        await press(pilot, "escape")
        assert not isinstance(pilot.app.screen, StatsPage)

    drive(scenario)


def test_enter_shows_the_cases_of_a_line(workspace: Path) -> None:
    tree(workspace, {"prompts/brief.md": "Be brief.\n"})
    edit(workspace / "tests/weather.md", "tags: [weather]", "systemPrompts: [brief]")
    main(["run", "--quiet"])
    edit(workspace / "prompts/brief.md", "brief", "very brief")
    main(["run", "--quiet"])

    async def scenario(pilot: Pilot[None]) -> None:
        async def cases(*keys: str) -> list[str]:
            await press(pilot, *keys)
            page = pilot.app.screen
            assert isinstance(page, CasesPage)
            shown = [
                page.revision or "workspace",
                *(row.row or row.file for row in page.listing.rows),
            ]
            await press(pilot, "escape")
            assert isinstance(pilot.app.screen, StatsPage)
            return shown

        await press(pilot, "down", "S")
        run = pilot.app.screen.revision  # type: ignore[attr-defined]
        assert "enter Open" in screen(pilot)
        assert len(await cases("down", "enter")) == 4
        assert await cases("3", "enter") == [run, "tests/greeting.md"]
        assert await cases("4", "down", "enter") == [run, "city=Oslo", "city=Rome"]
        await press(pilot, "y")
        assert pilot.app.clipboard == "tests/weather.md"
        assert await cases("2", "enter") == [run, "city=Oslo", "city=Rome"]
        assert facts(pilot).startswith("brief\n")
        assert await cases("2", "down", "enter") == [run, "tests/greeting.md"]
        await press(pilot, "3")
        assert "enter Open" in screen(pilot)
        await press(pilot, "down", "enter")
        assert "enter Open" not in screen(pilot)
        assert screen(pilot).startswith(" statistics")

    drive(scenario)


@pytest.mark.parametrize("size", [(80, 36), (120, 36), (200, 60)])
def test_the_trend_has_a_line_for_each_candidate_and_a_hollow_point_for_some_cases(
    workspace: Path, size: tuple[int, int]
) -> None:
    edit(workspace / "tests/greeting.md", "contains: hello", "contains: Warm")
    main(["run", "--quiet"])
    main(["run", "--quiet", "tests/weather.md", "--refresh"])

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "down", "down", "S")
        for key in ("1", "2", "3", "4"):
            await press(pilot, key)
            text = facts(pilot)
            assert "pass rate by candidate, all cases, 2 runs\n" in text
            assert re.search(r"100% ┤.*● two 100.0%", text)
            assert re.search(r"● one 66.7%", text)
            assert "○" not in text
        await press(pilot, "escape", "up", "S")
        text = facts(pilot)
        assert "pass rate by candidate, all cases, 3 runs\n" in text
        assert re.search(r"○ two \d of \d\n", text), "the partial run is not joined"
        assert re.match(r"[^\n]+\n\d of 2 passed\s", text), "no rate is told of some cases"
        table = screen(pilot).partition(" Details ")[0]
        assert (" of 2" in table, "%" in table) == (True, False)
        lines = [line.strip() for line in text.splitlines()]
        assert lines[-1] == "○ partial run, or over 10% of verdicts missing"
        assert re.search(r"\n +\d\d:\d\d", text)
        await resized(pilot, 80, 22)
        assert re.search(r"\none  \d.* 66.7%  .*\ntwo  \d", facts(pilot)), "few rows"
        await resized(pilot, *size)
        await press(pilot, "escape", "G", "S")
        assert "no trend: no earlier run" in facts(pilot)

    drive(scenario, size=size)


def test_names_are_not_cut_and_columns_are_as_wide_as_their_cells(workspace: Path) -> None:
    long = workspace / "tests/a file with quite a long name.md"
    (workspace / "tests/greeting.md").rename(long)
    main(["run", "--quiet"])

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "down", "S", "4")
        lines = screen(pilot).splitlines()
        assert lines[3] == (
            "  file                                    passed  95% interval           of"
        )
        assert lines[4].startswith("  tests/a file with quite a long name.md   ")
        await resized(pilot, 200, 60)
        assert "latency" not in screen(pilot).splitlines()[3]  # no answer has one
        assert "  $0.0600        $3.00       $0" in screen(pilot)

    drive(scenario, size=(80, 24))


def test_the_statistics_of_the_cases_are_those_of_their_run(workspace: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "S")
        assert isinstance(pilot.app.screen, StatsPage)

    drive(scenario, revision="@")


def test_the_statistics_of_the_workspace_follow_it(workspace: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        for keys in (("S",), ("escape", "enter", "S")):
            await press(pilot, *keys)
            assert screen(pilot).startswith(" statistics › workspace › 50.0%")
        label(Location(workspace), "tests/weather.md::city=Oslo", "pass", models=("scripted/one",))
        await show_changes(pilot)
        assert screen(pilot).startswith(" statistics › workspace › 66.7%")
        assert "pass rate by candidate, all cases, 1 run and now" in facts(pilot)
        (workspace / "tests/new.md").write_text("# 👤\n\nHi\n\n---\n\nE\n", encoding="utf-8")
        await show_changes(pilot)
        assert "97.2%); 3 of 4 results judged\n" in facts(pilot)
        await resized(pilot, 60, 24)
        assert screen(pilot).splitlines()[0] == " statistics › workspace › 66.7% of 6"
        await press(pilot, "enter")
        assert screen(pilot).startswith(" workspace › ")

    drive(scenario)


def test_without_a_run_there_are_no_statistics(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tree(tmp_path, {"evalstore.yaml": ""}))
    main(["init", "--quiet"])

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "S")
        assert not isinstance(pilot.app.screen, StatsPage)

    drive(scenario)


def test_tags_are_text(workspace: Path) -> None:
    edit(workspace / "tests/greeting.md", "[manners]", "['[/] [bold red]no markup[/]']")
    main(["run", "--quiet"])

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "down", "S", "3")
        assert "[/] [bold red]no markup[/]" in screen(pilot)
        await press(pilot, "enter")
        assert "1 of 3 cases" in screen(pilot)
        await press(pilot, "escape")
        assert facts(pilot).startswith("[/] [bold red]no markup[/]\n")

    drive(scenario)


@pytest.mark.parametrize("size", [(80, 24), (40, 12), (10, 4), (160, 40)])
def test_every_size_of_the_terminal_will_do(workspace: Path, size: tuple[int, int]) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "down", "S", "]", "1", "j", "G")
        if size == (40, 12):
            assert "scripted/two" in screen(pilot)
            assert "66.7%" in screen(pilot)
        await pilot.resize_terminal(30, 8)
        assert pilot.app.screen.query_one(Grid).row_count == 2

    drive(scenario, size=size)
