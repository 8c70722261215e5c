"""What terminals have room for: lists as wide as they need to be, and texts in whole."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.pilot import Pilot

from evalstore.interfaces.cli.main import main
from evalstore.interfaces.tui.grid import Grid
from evalstore.interfaces.tui.text_view import TextView
from tests.builders import tree
from tests.interfaces.cli.run.test_run import edit
from tests.interfaces.tui.driving import drive, press, resized, screen

LONG = "a-city-whose-name-is-as-long-as-names-of-cities-may-be"


@pytest.mark.parametrize("width", [100, 120, 150, 200])
def test_the_candidates_of_what_a_search_found_are_named_at_any_width(
    workspace: Path, width: int
) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "slash", *"warm", "enter")
        assert " candidate " in screen(pilot).splitlines()[3]

    drive(scenario, size=(width, 40))


def test_the_titles_of_columns_do_not_touch_the_frame(workspace: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        for width in range(112, 180, 2):
            await resized(pilot, width, 40)
            frames = [line.split("│")[1] for line in screen(pilot).splitlines() if "│" in line]
            assert frames
            assert all(inside.endswith(" ") for inside in frames), screen(pilot)

    drive(scenario, size=(120, 40), revision="@")


def test_a_list_takes_the_width_it_needs_and_leaves_enough_for_what_is_beside_it(
    workspace: Path,
) -> None:
    edit(workspace / "tests/weather.md", "Oslo, Rome", f"Oslo, {LONG}")
    main(["run", "--quiet"])

    async def scenario(pilot: Pilot[None]) -> None:
        def widths() -> tuple[int, int]:
            page = pilot.app.screen
            return page.query_one(Grid).size.width, page.query_one("#feedback").size.width

        assert widths() == (98, 95)
        assert "city=a-city" in screen(pilot)
        await resized(pilot, 150, 60)
        assert widths() == (76, 67), "pictures have room beside it"
        await press(pilot, "slash", *"file:greeting", "enter")
        assert widths()[0] >= 70

    drive(scenario, size=(200, 60), revision="@")


@pytest.mark.parametrize("width", [40, 46])
def test_pass_rates_have_a_line_of_their_own_below_which_rows_are_found(
    workspace: Path, width: int
) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        grid = pilot.app.screen.query_one(Grid)
        names, rates, *rows = screen(pilot).splitlines()[2:]
        assert (names.split()[:2], rates.split()[:2]) == (["file", "row"], ["33%", "6-79"])
        last = next(n for n, line in enumerate(rows) if "Rome" in line)
        await pilot.click(Grid, offset=(5, last + 3))  # the title of the panel is above
        assert grid.cursor == last == grid.row_count - 1
        await pilot.click(Grid, offset=(5, 2))
        assert grid.cursor == last, "the titles are no row"

    drive(scenario, size=(width, 24), revision="@")


@pytest.mark.parametrize(
    ("keys", "left", "right"),
    [
        ((), "#runs", "#details"),
        (("w",), "#items", "#details"),
        (("enter",), "#cases", "#feedback"),
    ],
)
def test_a_wide_terminal_has_what_is_read_at_the_right_of_the_list(
    workspace: Path, keys: tuple[str, ...], left: str, right: str
) -> None:
    tree(workspace, {"tests/new.md": "# 👤\n\nOslo?\n\n---\n\nIt must be warm.\n"})

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, *keys)
        for width, height, is_broad in ((80, 24, False), (149, 40, False), (150, 40, True)):
            await resized(pilot, width, height)
            list_at, text_at = (pilot.app.screen.query_one(id).region for id in (left, right))
            assert (text_at.x > list_at.x) == is_broad == (text_at.y == list_at.y)
            assert text_at.y + text_at.height == height - 1, "above the footer"

    drive(scenario)


FEEDBACK = "It is cold and whoever says otherwise has never been there in winter; " * 12


def test_the_feedback_on_other_candidates_is_whole(workspace: Path) -> None:
    edit(workspace / "models/judge.yaml", "It is cold there.", FEEDBACK.strip())
    edit(workspace / "tests/weather.md", "must be warm", "surely must be warm")
    main(["run", "--quiet"])

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "down", "right")
        reader = pilot.app.screen.query_one("#feedback", TextView)
        assert reader.text.count("never been there in winter;") == 12

    drive(scenario, size=(120, 40), revision="@")


def test_lines_of_a_message_stay_lines_in_a_short_panel(workspace: Path) -> None:
    text = "# 👤\n\nRead this letter:\n\n> Hello.\n> Thanks!\n\nAnd answer.\n\n---\n\nAn answer.\n"
    tree(workspace, {"tests/a.md": text})
    main(["run", "--quiet"])

    async def scenario(pilot: Pilot[None]) -> None:
        lines = pilot.app.screen.query_one("#feedback", TextView).text.splitlines()
        assert lines[2:5] == ["user  Read this letter:", "> Hello.", "> Thanks! …"]

    drive(scenario, size=(80, 24), revision="@")


def test_the_head_of_a_comparison_says_what_was_tested(workspace: Path) -> None:
    files = {
        f"tests/more{n}.md": f"# 👤\n\nOslo {n}?\n\n---\n\nIt must be warm.\n" for n in range(5)
    }
    tree(workspace, files)
    main(["run", "--quiet"])

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "x")
        assert "significant" in screen(pilot)
        await resized(pilot, 120, 40)
        await press(pilot, "i", "i")
        assert "(p = 0.031" in " ".join(screen(pilot).split())

    drive(scenario, size=(80, 24), revision="@")


def test_help_has_a_column_for_all_keys_and_examples_as_wide_as_the_terminal(
    workspace: Path,
) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "enter", "tab", "question_mark")
        text = pilot.app.screen.query_one(TextView).text
        entry = next(line for line in text.splitlines() if "pgdn, ctrl+f" in line)
        down = next(line for line in text.splitlines() if "↓, j" in line)
        assert down.index("  Down") + 2 == entry.index("Page down")
        example = next(line for line in text.splitlines() if "helmet" in line)
        assert example.endswith("notes of labels")
        await resized(pilot, 60, 140)  # examples come after the keys
        shown = screen(pilot).splitlines()
        at = next(n for n, line in enumerate(shown) if line.split()[:1] == ["helmet"])
        column = shown[at].index("a word in")
        assert shown[at + 1][:column].strip() == ""
        assert shown[at + 1][column] != " "

    drive(scenario, size=(120, 40))


def test_the_statistics_say_when_costs_arose(workspace: Path) -> None:
    main(["run", "--quiet"])

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "S")
        assert "when they were made" in pilot.app.screen.query_one("#facts", TextView).text
        await press(pilot, "question_mark")
        assert "what the run itself paid" in pilot.app.screen.query_one(TextView).text

    drive(scenario, size=(120, 40), revision="@")


def test_without_colours_the_command_under_the_cursor_is_reversed(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from textual.command import CommandList

    monkeypatch.setenv("NO_COLOR", "1")

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "ctrl+p")
        listed = pilot.app.screen.query_one(CommandList)
        style = listed.get_component_rich_style("option-list--option-highlighted")
        assert style.reverse

    drive(scenario)
