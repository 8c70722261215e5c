"""A click on a row of a list."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.events import Click, MouseDown, MouseUp
from textual.pilot import Pilot

from evalstore.interfaces.tui.grid import Grid
from evalstore.interfaces.tui.screens.answer import AnswerPage
from evalstore.interfaces.tui.screens.cases import CasesPage
from evalstore.interfaces.tui.screens.compare import ComparePage
from evalstore.interfaces.tui.screens.dialogs import Choice
from evalstore.interfaces.tui.screens.runs import RunsPage
from evalstore.interfaces.tui.text_view import TextView
from tests.builders import tree
from tests.interfaces.tui.driving import drive, press, resized, screen, settled


async def click(pilot: Pilot[None], row: int, *, chain: int = 1, right: int = 5) -> None:
    """Click on a row of the list; `chain` says which click of a double one it is."""
    shown = pilot.app.screen
    grid = shown.query_one(Grid)
    area = grid.scrollable_content_region
    x, y = area.x + right, area.y + grid.head_lines + row - grid.scroll_offset.y
    buttons = (0, 0, 1, False, False, False)
    for kind in (MouseDown, MouseUp):
        shown._forward_event(kind(grid, x, y, *buttons, x, y))
    shown._forward_event(Click(grid, x, y, *buttons, x, y, chain=chain))
    await settled(pilot)


def page_of(pilot: Pilot[None]) -> type:
    return type(pilot.app.screen)


def page_and_row(pilot: Pilot[None]) -> tuple[type, int]:
    return page_of(pilot), pilot.app.screen.query_one(Grid).cursor


def test_where_a_panel_shows_it_a_click_selects_and_one_on_the_selected_row_opens(
    workspace: Path,
) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await click(pilot, 1)
        assert page_and_row(pilot) == (RunsPage, 1)
        assert "complete: 6 new answers" in pilot.app.screen.query_one("#details", TextView).text
        await click(pilot, 0)
        assert page_and_row(pilot) == (RunsPage, 0)
        await press(pilot, "down")
        await click(pilot, 1)
        assert page_and_row(pilot) == (CasesPage, 0)

    drive(scenario)


def test_a_click_on_a_verdict_or_a_name_takes_the_column_of_the_candidate(workspace: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        page = pilot.app.screen
        assert isinstance(page, CasesPage)
        line = screen(pilot).splitlines()[5]
        one, two = line.index("✗ fail"), line.rindex("✓ pass")
        await click(pilot, 1, right=two)
        assert (page.grid.cursor, page.grid.picked) == (1, 1)
        await click(pilot, 1, right=one)
        assert (page_of(pilot), page.grid.picked) == (CasesPage, 0), "it selects and opens nothing"
        await click(pilot, 1, right=2)
        assert isinstance(pilot.app.screen, AnswerPage)
        await press(pilot, "escape")
        await click(pilot, -1, right=two)
        assert (page_and_row(pilot), page.grid.picked) == ((CasesPage, 1), 1)

    drive(scenario, revision="@")


def test_where_nothing_else_shows_it_one_click_opens_a_row_and_a_double_click_only_that(
    workspace: Path,
) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await click(pilot, 1)
        assert page_and_row(pilot) == (CasesPage, 0)
        await click(pilot, 1, chain=2)
        assert page_of(pilot) is CasesPage
        await click(pilot, 1)
        assert page_of(pilot) is AnswerPage

    drive(scenario, size=(40, 12))


def test_one_click_chooses_a_name_and_folds_a_group(workspace: Path) -> None:
    three = (workspace / "models/two.yaml").read_text().replace("scripted/two", "scripted/three")
    settings = (workspace / "evalstore.yaml").read_text()
    both = "scripted/one, scripted/two"
    tree(
        workspace,
        {
            "models/three.yaml": three,
            "evalstore.yaml": settings.replace(both, f"{both}, scripted/three"),
        },
    )

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "t")
        grid = pilot.app.screen.query_one(Grid)
        lines = grid.row_count
        await click(pilot, 0)
        assert grid.row_count < lines
        await click(pilot, 0, chain=2)
        assert grid.row_count < lines
        await click(pilot, 0)
        assert grid.row_count == lines
        await press(pilot, "down", "x")
        assert isinstance(pilot.app.screen, Choice)
        await click(pilot, 1)
        assert isinstance(pilot.app.screen, ComparePage)
        assert "three" in screen(pilot).splitlines()[0]

    drive(scenario, revision="@work")


@pytest.mark.parametrize("size", [(100, 30), (40, 12)])
def test_a_click_on_a_title_of_pending_work_opens_no_file(
    workspace: Path, size: tuple[int, int]
) -> None:
    (workspace / "tests/new.md").write_text("# 👤\n\nHow is Lima?\n")

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "w")
        await resized(pilot, *size)
        page = pilot.app.screen
        for _ in range(2):
            await click(pilot, 0)
            assert pilot.app.screen is page
        assert not [*pilot.app._notifications]

    drive(scenario, size=size, messages=True)
