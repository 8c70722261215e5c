"""The search in all stored texts."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable
from pathlib import Path

from textual.pilot import Pilot
from textual.widgets import Input

from evalstore.core.errors import StoreError
from evalstore.interfaces.cli.main import main
from evalstore.interfaces.tui.data_source import WorkspaceSource
from evalstore.interfaces.tui.screens.answer import AnswerPage
from evalstore.interfaces.tui.screens.cases import CasesPage
from evalstore.interfaces.tui.screens.runs import RunsPage
from evalstore.interfaces.tui.screens.search import SearchPage
from evalstore.interfaces.tui.text_view import TextView
from evalstore.planning.options import Location
from evalstore.results.grep import FoundTexts, MarkedText, Searcher, SearchHit
from evalstore.results.table.cases import list_runs
from tests.interfaces.cli.run.test_run import edit
from tests.interfaces.tui.conftest import run_with_hostile_answers
from tests.interfaces.tui.driving import (
    drive,
    painted_lines,
    press,
    resized,
    screen,
    settled,
    show_changes,
)


def page_of(pilot: Pilot[None]) -> SearchPage:
    assert isinstance(pilot.app.screen, SearchPage)
    return pilot.app.screen


def test_an_answer_that_only_an_old_run_has_is_found_and_opened(workspace: Path) -> None:
    edit(workspace / "models/two.yaml", "answer: Not warm.", "answer: Rather chilly.")
    main(["run", "--quiet", "--refresh"])
    (workspace / "tests/greeting.md").unlink()

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "slash", *'"not warm"')
        assert screen(pilot).splitlines()[0] == " search › 1 text"
        lines = screen(pilot).splitlines()
        assert lines[4].strip() == "tests/weather.md: 1 text"
        assert lines[5].split() == ["answer", "city=Oslo", "scripted/two", "Not", "warm."]
        lines = page_of(pilot).query_one("#hit", TextView).text.split("\n")
        assert lines[0] == "tests/weather.md [city=Oslo]"
        assert lines[3:] == ["Not warm."]
        words = page_of(pilot).query_one("#words", Input)
        words.value = "nothing"
        await settled(pilot)
        words.value = '"not warm"'
        await words.action_submit()  # sooner than the text is found
        await settled(pilot)
        await press(pilot, "enter")
        assert isinstance(pilot.app.screen, AnswerPage)
        assert pilot.app.screen.navigator.model == "scripted/two"
        assert "Not warm." in screen(pilot)
        await press(pilot, "escape", "escape")
        assert pilot.app.screen.TITLE == "Runs"

    drive(scenario)


def test_feedback_is_found_in_the_newest_run_that_used_it(workspace: Path) -> None:
    test = workspace / "tests/weather.md"
    first = [run.id for run in list_runs(Location(workspace))]
    edit(test, "must be warm", "may be cold")
    main(["run", "--quiet"])
    found = Searcher(Location(workspace)).find('"cold there"', 10)
    assert found
    assert {(text.hit.kind, text.run) for text in found.texts} == {("feedback", first[0])}


def test_a_filter_without_a_match_leads_to_the_search_with_its_words(workspace: Path) -> None:
    (workspace / "tests/weather.md").unlink()

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "enter", "slash", *'"not warm"')
        assert "No case matches the filter." in screen(pilot)
        assert "Escape removes the filter." in screen(pilot)
        assert "F searches the texts of all runs." in screen(pilot)
        await press(pilot, "enter", "F")
        assert "1 text" in screen(pilot).splitlines()[0]
        await press(pilot, "escape")
        assert isinstance(pilot.app.screen, CasesPage)

    drive(scenario)


def test_what_is_not_found_and_what_was_not_typed_is_explained(workspace: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "F")
        assert "Type words of an answer" in screen(pilot)
        await press(pilot, *"zzz")
        assert "No stored text contains zzz." in screen(pilot)
        await press(pilot, *" verdict:fail")
        text = " ".join(screen(pilot).split())
        assert "Filters such as verdict:fail work on a list of cases, after /." in text
        await press(pilot, "enter", "down", *["backspace"] * len("zzz verdict:fail"))
        assert "Type words of an answer" in screen(pilot)
        await press(pilot, *'"(*')
        assert "'\"(*' has no word to search for:" in screen(pilot)
        assert "letters, digits or symbols" in screen(pilot)

    drive(scenario, size=(40, 12))


def test_names_and_answers_may_hold_anything(workspace: Path) -> None:
    run_with_hostile_answers(workspace)

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "slash")
        for text in ("markup", "שלום", "漢字"):
            pilot.app.screen.query_one("#words").value = text  # type: ignore[attr-defined]
            await settled(pilot)
            assert re.match(r" search › [1-9]\d* texts?$", screen(pilot).splitlines()[0])
            assert page_of(pilot).highlighted is not None
            assert text in page_of(pilot).query_one("#hit", TextView).text
            for size in ((40, 12), (80, 24), (160, 40)):
                await resized(pilot, *size)
                assert "\x1b" not in screen(pilot)
                assert "\u202e" not in screen(pilot)

    drive(scenario)


class Held(WorkspaceSource):
    """Searches when a test says so, and records whether a search was ended before."""

    def __init__(self) -> None:
        super().__init__(Location(Path.cwd()))
        self.begun, self.may_go_on, self.ended = (threading.Event() for _ in range(3))

    def find_texts(
        self, pattern: str, limit: int, report: Callable[[int, int], bool]
    ) -> FoundTexts | None:
        report(1, 4)
        self.begun.set()
        while not self.may_go_on.wait(0.01):
            if not report(1, 4):
                self.ended.set()
                return None
        return super().find_texts(pattern, 1, report)


def test_a_search_shows_its_progress_and_ends_when_its_screen_is_left(workspace: Path) -> None:
    source = Held()

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "slash")
        await pilot.press("w")
        while not source.begun.is_set():
            await pilot.pause(0.01)
        await pilot.pause()
        assert "searching … 25% of the index is made" in screen(pilot)
        await pilot.press("escape")
        await settled(pilot)
        assert source.ended.is_set()
        assert isinstance(pilot.app.screen, RunsPage)
        source.may_go_on.set()
        await press(pilot, "slash", "w")
        assert " search › 1 of " in screen(pilot)

    drive(scenario, source=source)


class Counting(WorkspaceSource):
    """Counts the texts that are read in full."""

    texts_read = 0

    def read_text(self, hit: SearchHit, pattern: str) -> MarkedText:
        self.texts_read += 1
        return super().read_text(hit, pattern)


def test_what_others_write_leaves_the_text_on_the_screen(workspace: Path) -> None:
    answer = "warm " + "and more words " * 400
    edit(workspace / "models/two.yaml", "answer: Not warm.", f"answer: {answer}")
    main(["run", "--quiet", "--refresh"])
    source = Counting(Location(workspace))

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "slash", *"warm more", "enter")
        view = page_of(pilot).query_one("#hit", TextView)
        view.scroll_to(y=9, animate=False, immediate=True)
        await settled(pilot)
        before, count = screen(pilot), source.texts_read
        assert count
        await show_changes(pilot)
        assert (screen(pilot), source.texts_read) == (before, count)
        await asyncio.to_thread(main, ["run", "--quiet", "--refresh"])
        await show_changes(pilot)
        assert view.scroll_offset.y == 9

    drive(scenario, source=source)


def test_the_first_match_is_on_the_screen(workspace: Path) -> None:
    answer = "some words " * 5_000 + "at last a needle"
    edit(workspace / "models/two.yaml", "answer: Not warm.", f"answer: {answer}")
    main(["run", "--quiet", "--refresh"])

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "slash", *"words needle")
        assert page_of(pilot).query_one("#hit", TextView).scroll_offset.y == 0
        for _ in range(6):
            await press(pilot, "backspace")
        await press(pilot, "ctrl+u", *"needle")
        height = pilot.app.size.height
        shown = [strip.text for strip in painted_lines(pilot.app)][height // 2 :]
        assert any("needle" in line for line in shown)

    drive(scenario, size=(80, 30))


class Failing(WorkspaceSource):
    """Cannot search."""

    def find_texts(
        self, pattern: str, limit: int, report: Callable[[int, int], bool]
    ) -> FoundTexts | None:
        raise StoreError("the search index cannot be used", hint="search again")


def test_a_search_that_fails_says_why(workspace: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "slash", "w")
        assert "error: the search index cannot be used" in screen(pilot)
        assert "searching" not in screen(pilot)
        await press(pilot, "escape")
        assert isinstance(pilot.app.screen, RunsPage)

    drive(scenario, source=Failing(Location(workspace)))


def test_files_of_a_test_have_their_names_in_its_text(workspace: Path) -> None:
    (workspace / "tests/letter.txt").write_text("Dear reader, write soon.")
    test = "# 👤\n\nSum up {{_file:letter.txt}} in a haiku.\n\n---\n\nIs it short?\n"
    (workspace / "tests/new.md").write_text(test, encoding="utf-8")
    main(["run", "--quiet"])

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "slash", *"haiku")
        assert "enter To the texts" in screen(pilot).splitlines()[-1]
        await press(pilot, "enter")
        assert "enter Open" in screen(pilot).splitlines()[-1]
        text = page_of(pilot).query_one("#hit", TextView).text
        assert text.split("\n")[3:] == ["Sum up {{_file:letter.txt}} in a haiku."]

    drive(scenario)


def test_at_80_columns_the_text_around_the_match_has_room_beside_long_names(
    workspace: Path,
) -> None:
    test = workspace / "tests/weather.md"
    edit(test, "[Oslo, Rome]", "[a very long way to the north of Oslo, Rome]")
    test.write_text(f"{test.read_text(encoding='utf-8')}\nNo needle.\n", encoding="utf-8")
    answer = "This answer begins alike, but a needle is in it."
    edit(workspace / "models/two.yaml", "answer: Not warm.", f"answer: '{answer}'")
    main(["run", "--quiet", "--refresh"])

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "slash", *"needle")
        lines = [line for line in screen(pilot).splitlines() if line.startswith("  answer ")]
        assert ["a needle is" in line for line in lines] == [True]

    drive(scenario, size=(80, 24))
