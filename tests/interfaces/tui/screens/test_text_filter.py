"""Words are searched in answers, feedback and tests while they are typed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence, Set
from functools import partial
from pathlib import Path

from textual.pilot import Pilot
from textual.widgets import Input

from evalstore.core.errors import StoreError
from evalstore.interfaces.cli.main import main
from evalstore.interfaces.tui.case_filter import read_query
from evalstore.interfaces.tui.data_source import WorkspaceSource
from evalstore.interfaces.tui.screens.cases import CasesPage
from evalstore.planning.options import Location
from evalstore.planning.participants import matches_any
from tests.builders import tree
from tests.interfaces.cli.run.test_run import edit
from tests.interfaces.tui.conftest import GREETING, run_with_hostile_answers
from tests.interfaces.tui.driving import drive, press, screen, settled, until

BOTH_PROMPTS = "systemPrompts: [brief, polite]"


def rows(pilot: Pilot[None]) -> list[str]:
    page = pilot.app.screen
    assert isinstance(page, CasesPage)
    return [row.row for row in page.listing.rows]


async def type_filter(pilot: Pilot[None], text: str) -> None:
    pilot.app.screen.query_one("#filter", Input).value = text
    await settled(pilot)


def test_a_filter_searches_answers_and_feedback(workspace: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "slash", "c", "o", "l", "d")
        assert rows(pilot) == ["city=Oslo"]
        assert "searching" not in screen(pilot)
        for text, expected in (
            ("is cold there", ["city=Oslo"]),
            ("must be war", ["city=Oslo", "city=Rome"]),
            ("hello", [""]),
            ('"warm not"', []),
            ("warm verdict:pass model:one", ["city=Rome"]),
            ('NEAR( * "', []),
            ("cold greeting", []),
            ("cold weather", ["city=Oslo"]),
            ("rome warm file:weather", ["city=Rome"]),
            ("is weather cold oslo", ["city=Oslo"]),
            ("-cold", ["", "city=Rome"]),
            ("-rome -hello", ["city=Oslo"]),
            ("weather -cold", ["city=Rome"]),
            ("answer:cold", ["city=Oslo"]),
            ("answer:oslo", []),
            ('answer:"not warm"', ["city=Oslo"]),
            ("answer:cold,nothing file:weather", ["city=Oslo"]),
            ("-answer:cold", ["", "city=Rome"]),
        ):
            await type_filter(pilot, text)
            assert rows(pilot) == expected, text
        await type_filter(pilot, "cold greeting")
        assert "No case matches the filter." in screen(pilot)
        await press(pilot, "escape")
        assert len(rows(pilot)) == 3

    drive(scenario, revision="@", size=(40, 12))


def test_cases_are_filtered_by_the_names_and_ids_of_their_system_prompts(workspace: Path) -> None:
    tree(workspace, {"prompts/brief.md": "Be brief.\n", "prompts/polite.md": "Be polite.\n"})
    edit(workspace / "tests/greeting.md", "tags: [manners]", "systemPrompts: [brief]")
    tree(workspace, {"tests/both.md": GREETING.replace("tags: [manners]", BOTH_PROMPTS)})
    edit(workspace / "tests/weather.md", "tags:", "systemPrompts: [polite]\ntags:")
    main(["run", "--quiet"])

    async def scenario(pilot: Pilot[None]) -> None:
        page = pilot.app.screen
        assert isinstance(page, CasesPage)
        await settled(pilot)
        assert page.listing.cases
        ids = {name: id for id, name in page.listing.cases.prompts.items() if id}
        weather = ["tests/weather.md"] * 2
        for text, files in (
            ("prompt:brief", ["tests/both.md", "tests/greeting.md"]),
            (f"prompt:{ids['brief'][:8]}", ["tests/both.md", "tests/greeting.md"]),
            ("prompt:polite", ["tests/both.md", *weather]),
            ('prompt:"polite"', ["tests/both.md", *weather]),
            ("-prompt:brief", ["tests/both.md", *weather]),
            ('prompt:"polit"', []),
            ("prompt:long", []),
        ):
            await type_filter(pilot, text)
            assert [row.file for row in page.listing.rows] == files, text
        assert "no system prompt contains 'long': brief, polite" in screen(pilot)
        await type_filter(pilot, "")
        await press(pilot, "slash")
        assert "words verdict:… tag:… model:… file:… prompt:… answer:… -not " in screen(pilot)
        assert "f1 explains all" in screen(pilot)

    drive(scenario, revision="@", size=(80, 24))


def test_hostile_answers_are_found_as_text(workspace: Path) -> None:
    run_with_hostile_answers(workspace)

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "slash")
        for text in ("[/] [bold", "שלום", "字", "漢字"):
            await type_filter(pilot, text)
            assert len(rows(pilot)) == 3, text

    drive(scenario, revision="@")


class Slow(WorkspaceSource):
    """Searches only when it is told to."""

    def __init__(self, location: Location) -> None:
        super().__init__(location)
        self.go = threading.Event()
        self.begun = threading.Event()
        self.asked: list[tuple[str, ...]] = []

    def search(
        self, words: Sequence[str], report: Callable[[int, int], bool], *, in_answers: bool = False
    ) -> Set[str] | None:
        self.asked.append(tuple(words))
        report(1, 4)
        self.begun.set()
        while not self.go.wait(0.01):
            if not report(1, 4):
                return None
        return super().search(words, report, in_answers=in_answers)


def test_what_was_typed_last_wins_and_the_title_says_that_it_is_searched(workspace: Path) -> None:
    source = Slow(Location(workspace))

    async def scenario(pilot: Pilot[None]) -> None:
        field = pilot.app.screen.query_one("#filter", Input)
        field.value = "cold"
        while not source.begun.is_set():
            await pilot.pause()
        await pilot.pause()
        assert "searching … 25% of the index is made" in screen(pilot)
        await press_down_while_searching(pilot)
        field.value = "hello"
        await pilot.pause()
        source.go.set()
        await settled(pilot)
        assert rows(pilot) == [""]
        assert "searching" not in screen(pilot)
        assert source.asked == [("cold",), ("hello",)]

    async def press_down_while_searching(pilot: Pilot[None]) -> None:
        await pilot.press("slash")
        assert pilot.app.focused is pilot.app.screen.query_one("#filter", Input)

    drive(scenario, revision="@", source=source)


class Broken(WorkspaceSource):
    """Cannot search."""

    def search(
        self, words: Sequence[str], report: Callable[[int, int], bool], *, in_answers: bool = False
    ) -> Set[str] | None:
        raise StoreError("no full-text search", hint="another Python has it")


def test_without_an_index_names_are_filtered_all_the_same(workspace: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await type_filter(pilot, "oslo")
        assert rows(pilot) == ["city=Oslo"]
        text = screen(pilot)
        assert "error: no full-text search" in text
        assert "hint: another Python has it" in text
        assert "searching" not in text

    drive(scenario, revision="@", source=Broken(Location(workspace)))


def test_the_cursor_and_the_marks_stay_with_their_cases(workspace: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        page = pilot.app.screen
        assert isinstance(page, CasesPage)
        await press(pilot, "down", "space")
        assert page.case is not None
        assert page.case.row == "city=Rome"
        await type_filter(pilot, "file:weather")
        assert page.case is not None
        assert page.case.row == "city=Rome"
        assert {result.row for result in page.selected} == {"city=Oslo"}
        await press(pilot, "s")
        assert page.case.row == "city=Oslo"
        await press(pilot, "G", "s", "r")
        assert page.case.row == "city=Rome"

    drive(scenario, revision="@")


def test_a_case_that_no_longer_matches_leaves_the_cursor_at_the_next_one(workspace: Path) -> None:
    edit(workspace / "models/one.yaml", "answer: Warm.", "answer: Cold.")
    edit(workspace / "tests/weather.md", "[Oslo, Rome]", "[Oslo, Bonn, Lima]")
    main(["run", "--quiet"])

    async def scenario(pilot: Pilot[None]) -> None:
        page = pilot.app.screen
        assert isinstance(page, CasesPage)
        await press(pilot, "slash", *"verdict:fail weather answer -hello", "enter")
        assert rows(pilot) == ["city=Oslo", "city=Bonn", "city=Lima"]
        await press(pilot, "down", "p", *"fine", "enter")
        assert rows(pilot) == ["city=Oslo", "city=Lima"]
        assert page.case
        assert page.case.row == "city=Lima"
        await press(pilot, "p", "enter")
        assert rows(pilot) == ["city=Oslo"]
        assert page.case.row == "city=Oslo"

    drive(scenario, revision="@work")


def test_a_name_in_quotes_is_meant_as_a_whole() -> None:
    query = read_query('tag:"num" tag:num file:"a.md",b verdict:"fail"')
    assert [each.names for each in query.conditions] == [
        ("=num",),
        ("num",),
        ("=a.md", "b"),
        ("fail",),
    ]
    assert not matches_any("numbers", ("=num",))
    assert matches_any("num", ("=num",))
    assert matches_any("numbers", ("num",))


def test_the_title_counts_the_candidate_that_is_meant_and_names_it(workspace: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        assert "3 cases › 3 ✓ pass, 3 ✗ fail" in screen(pilot)
        await type_filter(pilot, "model:one")
        title = screen(pilot).splitlines()[0]
        assert title.endswith(" › 3 cases › 1 ✓ pass, 2 ✗ fail of one"), title
        await type_filter(pilot, "model:one,two")
        assert screen(pilot).splitlines()[0].endswith(" › 3 cases › 3 ✓ pass, 3 ✗ fail")

    drive(scenario, revision="@")


def is_shown(pilot: Pilot[None], text: str) -> bool:
    return text in screen(pilot)


def test_the_line_at_the_top_has_the_rates_of_all_cases_or_counts_of_those_with_a_word(
    workspace: Path,
) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        everything = screen(pilot).splitlines()[3]
        assert "33% 6-79" in everything
        for typed, rate in (
            ("Oslo", "0 of 1 (33%)"),
            ("-greeting", "1 of 2 (33%)"),
        ):
            await type_filter(pilot, typed)
            await until(pilot, partial(is_shown, pilot, rate))
        await press(pilot, "s")  # by verdict: the same cases
        assert "1 of 2 (33%)" in screen(pilot)
        await type_filter(pilot, "")
        await until(pilot, lambda: screen(pilot).splitlines()[3] == everything)

    drive(scenario, revision="@")
