"""From failure to failure, among candidates and cases; what broke; and what a filter is about."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from textual.pilot import Pilot

from evalstore.interfaces.cli.main import main
from evalstore.interfaces.tui.grid import Grid
from evalstore.interfaces.tui.page_lines import KeyFooter
from evalstore.interfaces.tui.screens.answer import AnswerPage
from evalstore.interfaces.tui.screens.cases import CasesPage
from evalstore.interfaces.tui.screens.runs import RunsPage
from evalstore.interfaces.tui.text_view import TextView
from evalstore.planning.options import Location
from evalstore.results.table.cases import find_broken_results
from evalstore.store.driver import UnwantedError, while_wanted
from tests.interfaces.cli.run.test_run import edit, release
from tests.interfaces.tui.driving import drive, press, screen, settled


def page_of(pilot: Pilot[None]) -> CasesPage:
    page = pilot.app.screen
    assert isinstance(page, CasesPage)
    return page


def place(pilot: Pilot[None]) -> tuple[str, str]:
    """The case and the candidate under the cursor."""
    page = page_of(pilot)
    assert page.case
    assert page.listing.cases
    return page.case.row, page.listing.cases.models[page.grid.picked]


def reader(pilot: Pilot[None]) -> list[str]:
    return page_of(pilot).query_one("#feedback", TextView).text.splitlines()


def footer(pilot: Pilot[None]) -> dict[str, str]:
    return {keys.id: keys.words.strip() for keys in pilot.app.screen.query_one(KeyFooter).keys}


FAILURES = [
    ("", "scripted/one"),
    ("", "scripted/two"),
    ("city=Oslo", "scripted/one"),
]


@pytest.fixture
def three_failures(workspace: Path) -> Path:
    """Both candidates fail the greeting, and one of them a city."""
    edit(workspace / "models/two.yaml", "answer: Not warm.", "answer: Warm.")
    main(["run", "--quiet", "--refresh"])
    return workspace


def test_each_failure_is_visited_also_two_of_one_case(three_failures: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        assert "3 ✗ fail" in screen(pilot)
        visited = [place(pilot)]
        for _ in range(3):
            await press(pilot, "n")
            visited.append(place(pilot))
        assert visited == [*FAILURES, FAILURES[0]]
        await press(pilot, "N")
        assert place(pilot) == FAILURES[2]

    drive(scenario, revision="@")


def test_the_answer_below_the_list_is_that_of_the_candidate_gone_to(three_failures: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "n")
        assert reader(pilot)[1].split() == ["✗", "fail", "scripted/two"]
        await press(pilot, "f")
        assert "fail: tests/greeting.md scripted/two" in screen(pilot)

    drive(scenario, revision="@")


def test_the_screen_of_an_answer_visits_the_same_failures(three_failures: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "enter")
        visited = []
        for _ in range(4):
            page = pilot.app.screen
            assert isinstance(page, AnswerPage)
            visited.append((page.navigator.case.row, page.navigator.model))
            await press(pilot, "n")
        assert visited == [*FAILURES, FAILURES[0]]

    drive(scenario, revision="@")


def test_with_a_filter_for_a_candidate_only_its_failures_are_visited(three_failures: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "slash", *"model:two", "enter")
        assert "1 ✗ fail" in screen(pilot)
        for _ in range(2):
            await press(pilot, "n")
            assert place(pilot) == FAILURES[1]
        await press(pilot, "enter", "n")
        page = pilot.app.screen
        assert isinstance(page, AnswerPage)
        assert (page.navigator.case.row, page.navigator.model) == FAILURES[1]

    drive(scenario, revision="@")


# --- filters and candidates


def test_a_filter_for_verdicts_selects_the_candidate_that_matches(workspace: Path) -> None:
    edit(workspace / "models/one.yaml", "answer: Cold.", "answer: Warm.")
    main(["run", "--quiet", "--refresh"])
    edit(workspace / "models/two.yaml", "answer: Not warm.", "answer: Cold.")
    main(["run", "--quiet", "--refresh"])

    async def scenario(pilot: Pilot[None]) -> None:
        assert place(pilot)[1] == "scripted/one"
        await press(pilot, "slash", *"weather verdict:fail", "enter")
        assert place(pilot) == ("city=Oslo", "scripted/two")
        assert reader(pilot)[1].split() == ["✗", "fail", "scripted/two"]
        assert re.search(r"last runs.*\n.* two ", screen(pilot))
        await press(pilot, "left")  # the reader may choose another one
        assert place(pilot)[1] == "scripted/one"

    drive(scenario, size=(110, 30), revision="@")


def test_a_candidate_without_results_in_the_list_has_no_column(workspace: Path) -> None:
    edit(workspace / "tests/greeting.md", "tags: [manners]", "tags: [manners, few]")
    few = "{id: scripted/two, requiredTags: [few]}"
    edit(workspace / "evalstore.yaml", "scripted/one, scripted/two", f"scripted/one, {few}")
    main(["run", "--quiet"])

    async def scenario(pilot: Pilot[None]) -> None:
        def head() -> str:
            return screen(pilot).splitlines()[2]

        assert "two" in head()
        await press(pilot, "slash", *"file:weather", "enter")
        assert "two" not in head()
        await press(pilot, "right")
        assert place(pilot)[1] == "scripted/one"
        await press(pilot, "escape")
        assert "two" in head()

    drive(scenario, revision="@")


def test_earlier_verdicts_are_read_for_all_lines_of_a_list_that_grew(workspace: Path) -> None:
    main(["run", "--quiet"])

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "slash", *"verdict:x")
        await press(pilot, *["backspace"] * 1, "f")
        await settled(pilot)
        last_verdicts = page_of(pilot).last_verdicts
        lines = page_of(pilot).listing.rows
        assert len(lines) == 2
        assert all(len(last_verdicts(it)) == 2 for row in lines for it in row.results if it)

    drive(scenario, size=(110, 30), revision="@")


# --- what the key that leaves does


def test_the_filter_of_another_screen_is_left_with_its_screen(workspace: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "S", "3", "enter")
        assert "1 of 3 cases" in screen(pilot)
        assert footer(pilot)["page.back"] == "Back"
        await press(pilot, "slash")
        assert footer(pilot)["page.back"] == "Clear filter"
        await press(pilot, "escape")
        assert "3 cases" in screen(pilot)
        await press(pilot, "escape", "enter", "escape")
        assert pilot.app.screen.TITLE == "Statistics"

    drive(scenario)


def test_a_filter_that_was_typed_is_cleared_before_the_screen_is_left(workspace: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "enter", "slash", *"oslo", "enter")
        assert footer(pilot)["page.back"] == "Clear filter"
        await press(pilot, "escape")
        assert "3 cases" in screen(pilot)
        assert footer(pilot)["page.back"] == "Back"
        await press(pilot, "escape")
        assert isinstance(pilot.app.screen, RunsPage)

    drive(scenario)


def test_the_key_for_a_difference_in_full_width_says_that_it_goes_back(workspace: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "enter", "v")
        assert footer(pilot)["versions.widen"] == "Full-width difference"
        await press(pilot, "z")
        assert footer(pilot)["versions.widen"] == footer(pilot)["page.back"] == "List again"

    drive(scenario)


# --- what broke


@pytest.fixture
def broken(workspace: Path) -> Path:
    """Oslo broke for the second candidate."""
    release(workspace / "models/two.yaml", "answer: Not warm.", "answer: Cold.")
    main(["run", "--quiet"])
    return workspace


def test_a_key_opens_the_cases_that_broke(broken: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        assert "broken      tests/weather.md [city=Oslo] scripted/two" in screen(pilot)
        assert "What broke" in footer(pilot).values()
        await press(pilot, "B")
        assert [row.row for row in page_of(pilot).listing.rows] == ["city=Oslo"]
        assert place(pilot) == ("city=Oslo", "scripted/two")
        assert page_of(pilot).grid.has_focus, "the list was empty while it was looked up"
        await press(pilot, "p", "enter")
        assert "No case matches the filter." in screen(pilot)
        assert "its last verdict before, also in a partial run, was a pass" in screen(pilot)
        assert "Escape leads back." in screen(pilot)
        await press(pilot, "escape")
        assert isinstance(pilot.app.screen, RunsPage)
        assert "broken      none" in screen(pilot)

    drive(scenario, size=(120, 40))


def test_the_key_leaves_out_what_passes_since_an_edit_was_taken_back(workspace: Path) -> None:
    weather = workspace / "tests/weather.md"
    before = weather.read_text()
    edit(weather, "How is {{city}}?", "How is {{city}} ?")
    edit(workspace / "models/two.yaml", "answer: Not warm.", "answer: Cold.")
    main(["run", "--quiet"])

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "B")
        assert [row.row for row in page_of(pilot).listing.rows] == ["city=Oslo"]
        weather.write_text(before)
        edit(workspace / "models/two.yaml", "answer: Cold.", "answer: Not warm.")
        await press(pilot, "escape", "r", "B")
        assert page_of(pilot).listing.rows == []

    drive(scenario, size=(120, 40))


def test_of_a_run_the_key_opens_what_broke_in_it(broken: Path) -> None:
    edit(broken / "models/two.yaml", "answer: Cold.", "answer: Not warm.")
    main(["run", "--quiet", "--refresh"])

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "down", "down", "B")
        assert [row.row for row in page_of(pilot).listing.rows] == ["city=Oslo"]
        await press(pilot, "escape", "up", "B")
        assert page_of(pilot).listing.rows == []

    drive(scenario, size=(120, 40))


def test_a_filter_for_what_broke_can_name_its_candidate(broken: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        for typed, expected in (
            ("verdict:broke", ["city=Oslo"]),
            ("verdict:broke model:two", ["city=Oslo"]),
            ("verdict:broke model:one", []),
            ("-verdict:broke", ["", "city=Rome"]),
        ):
            page_of(pilot).set_filter(typed)
            await settled(pilot)
            assert [row.row for row in page_of(pilot).listing.rows] == expected, typed

    drive(scenario, revision="@work")


def test_what_broke_is_not_read_on_when_nobody_waits_for_it(broken: Path) -> None:
    where = Location(broken)
    with while_wanted(lambda: False), pytest.raises(UnwantedError):
        find_broken_results(where, None)
    found = find_broken_results(where, "@")
    assert list(found) == [("tests/weather.md", "city=Oslo", 0, "scripted/two")]


def test_the_details_of_the_workspace_name_all_that_broke(broken: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        details = pilot.app.screen.query_one("#details", TextView)
        assert "tests/weather.md [city=Oslo] scripted/two" in details.text
        assert "B lists them." in details.text
        grid = pilot.app.screen.query_one("#runs", Grid)
        assert details.size.height > grid.size.height, "the list takes what it needs"

    drive(scenario, size=(120, 40))
