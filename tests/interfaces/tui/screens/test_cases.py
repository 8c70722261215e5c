"""The reader beside or below the list of cases, and the panels of pages."""

from __future__ import annotations

import json
import re
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from textual.pilot import Pilot

from evalstore.core.values import Result
from evalstore.interfaces.cli.main import main
from evalstore.interfaces.tui.data_source import WorkspaceSource
from evalstore.interfaces.tui.grid import Grid
from evalstore.interfaces.tui.screens.cases import CasesPage
from evalstore.interfaces.tui.text_view import TextView
from evalstore.planning.options import Location
from evalstore.results.answer.answer import AnswerView
from tests.builders import tree
from tests.interfaces.tui.conftest import HOSTILE
from tests.interfaces.tui.driving import drive, press, resized, screen, settled, show_changes, until


def page_of(pilot: Pilot[None]) -> CasesPage:
    assert isinstance(pilot.app.screen, CasesPage)
    return pilot.app.screen


def reader_of(pilot: Pilot[None]) -> TextView:
    return page_of(pilot).query_one("#feedback", TextView)


def answering(text: str, id: str = "scripted/one") -> str:
    return f"id: {id}\nprovider: scripted\nresponses: [{{answer: {json.dumps(text)}}}]\n"


class Counting(WorkspaceSource):
    """Counts the answers that are read, and waits for a test that holds them back."""

    def __init__(self) -> None:
        super().__init__(Location(Path.cwd()))
        self.read: list[str] = []
        self.may_read = threading.Event()
        self.may_read.set()

    def session(self, id: str, result: Result) -> AnswerView:
        self.read.append(f"{result.file}::{result.row} {result.model}")
        self.may_read.wait()
        return super().session(id, result)


def test_the_case_under_the_cursor_is_read_without_opening_it(workspace: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "down")
        lines = reader_of(pilot).text.split("\n")
        assert lines[:7] == [
            "tests/weather.md [city=Oslo]  weather",
            "✗ fail  scripted/one",
            "✗ scripted/judge: It is cold there.",
            "user  How is Oslo?",
            "",
            "▌ answer",
            "Cold.",
        ]
        assert lines[8].startswith("✗ fail  by scripted/judge")
        assert lines[9:] == ["It is cold there.", "", "✓ pass  scripted/two"]
        await press(pilot, "right")
        lines = reader_of(pilot).text.split("\n")
        assert (lines[1], lines[5]) == ("✓ pass  scripted/two", "Not warm.")
        assert lines[-2:] == ["✗ fail  scripted/one", "It is cold there."]

    drive(scenario, revision="@", size=(100, 24))


def test_the_reason_of_a_failure_is_seen_above_a_long_answer(workspace: Path) -> None:
    """The panel takes the lines that the list does not need."""
    long = "\n".join(f"Line {number} of the answer is here." for number in range(30))
    for name in ("one", "two"):
        tree(workspace, {f"models/{name}.yaml": answering(long, f"scripted/{name}")})
    main(["run", "--quiet", "--refresh"])

    async def scenario(pilot: Pilot[None]) -> None:
        shown = screen(pilot)
        assert "✗ checks: contains: 'hello' is not in 'Line 0 of the answer is here.…'" in shown
        assert reader_of(pilot).size.height > page_of(pilot).grid.size.height
        await resized(pilot, 74, 60)
        names, figures = screen(pilot).split("\n")[2:4]
        assert (names.split()[-2:], figures.split()[-1]) == (["last", "runs"], "one")

    drive(scenario, revision="@", size=(80, 24))


def without_ages(text: str) -> list[str]:
    return re.sub(r"just now|\d+ seconds? ago", "some time ago", text).split("\n")


def test_what_the_reader_shows_is_on_the_page_of_the_answer(workspace: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "n", "n")
        lines = without_ages(reader_of(pilot).text)
        await press(pilot, "enter")
        page = without_ages(pilot.app.screen.query_one("#text", TextView).text)
        end = lines.index("✓ pass  scripted/two")
        assert [line for line in lines[:end] if line not in page] == ["user  How is Oslo?"]

    drive(scenario, revision="@", size=(100, 24))


@pytest.mark.parametrize(("width", "is_beside"), [(149, False), (150, True), (200, True)])
def test_the_reader_is_at_the_right_when_there_is_room(
    workspace: Path, width: int, is_beside: bool
) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        grid, reader = page_of(pilot).grid, reader_of(pilot)
        assert (grid.region.y == reader.region.y) == is_beside
        assert (grid.region.right < reader.region.x) == is_beside
        if is_beside:
            assert 68 <= reader.region.width <= grid.region.width + 2
        await resized(pilot, 300 - width, 30)
        assert (grid.region.y == reader.region.y) == (300 - width >= 150)
        await resized(pilot, width, 12)
        assert not reader.display or not reader.region.area

    drive(scenario, revision="@", size=(width, 40))


def test_tab_moves_the_focus_to_the_reader_which_scrolls(workspace: Path) -> None:
    tree(workspace, {"models/one.yaml": answering("hello\n" + "line\n" * 90)})
    main(["run", "--quiet", "--refresh"])

    async def scenario(pilot: Pilot[None]) -> None:
        reader = reader_of(pilot)
        assert "━ ▸ Cases ━" in screen(pilot)
        assert "─ Answer ─" in screen(pilot)
        await press(pilot, "tab")
        assert pilot.app.focused is reader
        assert "─ Cases ─" in screen(pilot)
        assert "━ ▸ Answer ━" in screen(pilot)
        await press(pilot, "j", "pagedown")
        assert reader.scroll_y > 5
        await press(pilot, "G")
        await until(pilot, lambda: reader.scroll_y == reader.max_scroll_y > 80)
        await press(pilot, "shift+tab")
        assert page_of(pilot).grid.has_focus

    drive(scenario, revision="@")


def test_only_the_answer_on_which_the_cursor_stays_is_read(workspace: Path) -> None:
    source = Counting()

    async def scenario(pilot: Pilot[None]) -> None:
        source.read.clear()
        page_of(pilot).grid.action_go(-1)
        page_of(pilot).grid.action_go(0)
        page_of(pilot).grid.action_go(-1)
        await settled(pilot)
        assert source.read == ["tests/weather.md::city=Rome scripted/one"]

    drive(scenario, source=source, revision="@")


def test_an_answer_that_is_read_too_late_is_not_shown_and_nothing_waits(workspace: Path) -> None:
    source = Counting()

    async def scenario(pilot: Pilot[None]) -> None:
        source.read.clear()
        source.may_read.clear()
        try:
            await pilot.press("down")
            await until(pilot, lambda: len(source.read) == 1)
            await pilot.press("down")  # while the first one is read
            await until(pilot, lambda: "city=Rome" in reader_of(pilot).text)
            assert "▌ answer" not in reader_of(pilot).text
        finally:
            source.may_read.set()
        await settled(pilot)
        assert reader_of(pilot).text.startswith("tests/weather.md [city=Rome]")
        assert "How is Rome?" in reader_of(pilot).text

    drive(scenario, source=source, revision="@")


def test_the_reader_keeps_its_place_when_the_case_is_read_again(workspace: Path) -> None:
    tree(workspace, {"models/one.yaml": answering("hello\n" + "line\n" * 90)})
    main(["run", "--quiet", "--refresh"])

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "tab", "pagedown", "pagedown")
        before = reader_of(pilot).scroll_y
        assert before > 5
        await show_changes(pilot)
        assert reader_of(pilot).scroll_y == before
        await press(pilot, "shift+tab", "down")
        assert reader_of(pilot).scroll_y == 0

    drive(scenario, revision="@")


def test_long_answers_are_cut_with_a_note(workspace: Path) -> None:
    long = "word " * 100_000

    class Long(Counting):
        def session(self, id: str, result: Result) -> AnswerView:
            view = super().session(id, result)
            turns = (*view.conversation[:-1], replace(view.conversation[-1], text=long))
            return replace(view, conversation=turns, answer=long)

    async def scenario(pilot: Pilot[None]) -> None:
        text = reader_of(pilot).text
        assert "… 490,000 more characters: enter shows all of it\n" in text
        assert len(text) < 11_000
        await press(pilot, "enter")
        assert len(pilot.app.screen.query_one("#text", TextView).text) > 500_000

    drive(scenario, source=Long(), revision="@", size=(100, 100))


def test_a_case_without_an_answer_says_how_to_get_it(workspace: Path) -> None:
    test = workspace / "tests/weather.md"
    test.write_text(test.read_text().replace("How is", "How warm is"))

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "enter", "down")
        text = reader_of(pilot).text
        assert "… pending  scripted/one" in text
        assert "user  How warm is Oslo?\n" in text
        assert "No answer yet.\nR gets what is missing, and shows the price first." in text

    drive(scenario, size=(100, 24))


def test_markdown_is_rendered_in_the_reader_and_copied_as_it_is_written(workspace: Path) -> None:
    written = f'# Title\n\nSome **bold** words.\n\n```json\n{{"a": 1}}\n```\n\n{HOSTILE}'
    tree(workspace, {"models/one.yaml": answering(written)})
    main(["run", "--quiet", "--refresh"])

    async def scenario(pilot: Pilot[None]) -> None:
        shown = screen(pilot)
        assert "▌ answer  as Markdown\n   Title\n\n   Some bold words.\n" in shown
        assert "\x1b" not in shown
        await press(pilot, "tab", "G")
        assert "[bold red]no markup[/]" in screen(pilot)
        await press(pilot, "y")
        assert "# Title\n\nSome **bold** words." in pilot.app.clipboard

    drive(scenario, revision="@", size=(100, 40))


def test_a_group_has_no_answer(workspace: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "t")
        assert page_of(pilot).case
        assert reader_of(pilot).text
        await press(pilot, "g")
        assert page_of(pilot).case is None
        assert reader_of(pilot).text == ""

    drive(scenario, revision="@")


def test_the_only_file_is_named_in_the_title_and_rows_have_its_column(workspace: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        assert screen(pilot).splitlines()[1].split()[:2] == ["file", "row"]
        await press(pilot, "slash", *"weather", "enter")
        lines = screen(pilot).splitlines()
        assert lines[0].startswith(" run @ › tests/weather.md › 2 of 3 ")
        assert lines[1].split()[0] == "row"
        assert [line.split()[0] for line in lines[3:5]] == ["city=Oslo", "city=Rome"]
        await press(pilot, "escape", "slash", *"greeting", "enter")
        lines = screen(pilot).splitlines()
        words = [line.split()[0] for line in lines[1:4] if line]
        assert words[0] == "case"
        assert words[-1].endswith("ng.md")
        assert pilot.app.screen.query_one(Grid).titles[:2] == ["file", "row"]
        await press(pilot, "escape", "t")
        assert screen(pilot).splitlines()[1].split()[0] == "case"

    drive(scenario, revision="@", size=(40, 12))
