"""The table of many cases: the first that are wanted, the count of all, and a filter."""

from __future__ import annotations

import gc
import json
import weakref
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import cast

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from evalstore.interfaces.cli.main import main
from evalstore.interfaces.tui.app import Browser
from evalstore.interfaces.tui.case_filter import FilteredCases, LookedUp, read_query
from evalstore.interfaces.tui.case_listing import CasePlace
from evalstore.interfaces.tui.data_source import WorkspaceSource
from evalstore.interfaces.tui.grid import Grid
from evalstore.interfaces.tui.screens import cases as cases_page
from evalstore.interfaces.tui.screens.case_panels import case_title
from evalstore.interfaces.tui.screens.cases import CasesPage
from evalstore.planning.options import Location
from evalstore.results.table import cases
from evalstore.results.table.cases import Cases, CaseWindow
from tests.builders import tree
from tests.interfaces.tui.driving import drive, press, screen, settled

ROWS = 300
TEST = (
    "---\ndataset: data.jsonl\n---\n\n# 👤\n\nWhat is the capital of {{country}}?\n\n"
    "---\n\n~~~checks\n- contains: Oslo\n~~~\n"
)
ZOO = "# 👤\n\nWhere is the zoo?\n\n---\n\n~~~checks\n- contains: Oslo\n~~~\n"
MODEL = (
    "id: {}\nprovider: scripted\n"
    "responses: [{{when: '7.?[?]', answer: Rome}}, {{answer: Oslo it is}}]\n"
)


@pytest.fixture(autouse=True)
def many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Be in a workspace with a run of cases that are treated as many."""
    rows = "".join(json.dumps({"country": f"country {n}"}) + "\n" for n in range(ROWS))
    root = tree(
        tmp_path / "ws",
        {
            "evalstore.yaml": "candidates: [two, one]\n",
            "models/one.yaml": MODEL.format("one"),
            "models/two.yaml": MODEL.format("two"),
            "tests/rows.md": TEST,
            "tests/data.jsonl": rows,
            "tests/zoo.md": ZOO,
        },
    )
    monkeypatch.chdir(root)
    assert main(["run", "--yes", "--quiet", "--fail-on", "none"]) == 0
    monkeypatch.setattr(cases, "MANY", 2 * ROWS)
    monkeypatch.setattr(cases, "AT_ONCE", 40)
    monkeypatch.setattr(cases, "KEPT", 50)


def title(pilot: Pilot[None]) -> str:
    page = page_of(pilot)
    parts = case_title(page.revision, page.listing, page.filter_query, page.filter_progress)
    return "  ".join(part if isinstance(part, str) else part[0] for part in parts if part)


def page_of(pilot: Pilot[None]) -> CasesPage:
    assert isinstance(pilot.app.screen, CasesPage)
    return pilot.app.screen


def rows_of(pilot: Pilot[None]) -> list[str]:
    return [f"{row.file} {row.row}" for row in page_of(pilot).listing.rows]


async def opened(pilot: Pilot[None], revision: str | None) -> None:
    cast("Browser", pilot.app).open("cases", revision)
    await settled(pilot)


async def filtered(pilot: Pilot[None], typed: str) -> list[str]:
    page_of(pilot).query_one("#filter", Input).value = typed
    await settled(pilot)
    return rows_of(pilot)


FIRST = [f"tests/rows.md country=country {n}" for n in range(50)]
FAILING = [f"tests/rows.md country=country {n}" for n in range(ROWS) if 7 in (n % 10, n // 10 % 10)]


@pytest.mark.parametrize("revision", ["@", None])
def test_the_first_are_listed_with_the_count_of_all(revision: str | None) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await opened(pilot, revision)
        assert rows_of(pilot) == FIRST
        shown = title(pilot)
        assert f"the first 50 of {ROWS + 1} cases" in shown
        # The verdicts of a run are known without reading all of it.
        assert ("488 ✓ pass" in shown) == (revision is not None), shown
        await press(pilot, "end")
        assert pilot.app.screen.query_one(Grid).cursor == 49

    drive(scenario)


@pytest.mark.parametrize("revision", ["@", None])
def test_a_filter_looks_at_all_cases(revision: str | None) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await opened(pilot, revision)
        assert await filtered(pilot, "zoo") == ["tests/zoo.md "]
        assert f"1 of {ROWS + 1} cases" in title(pilot)
        assert await filtered(pilot, "verdict:fail") == FAILING[:50]
        assert await filtered(pilot, "no-such-name") == []
        numbers = (29, 129, 229, *range(290, 300))
        named = [f"tests/rows.md country=country {n}" for n in numbers]
        assert await filtered(pilot, "29") == named
        assert await filtered(pilot, "verdict:fail 29") == ["tests/rows.md country=country 297"]
        assert await filtered(pilot, "answer:rome 27") == [
            f"tests/rows.md country=country {n}" for n in (27, 127, 227, *range(270, 280))
        ]
        assert await filtered(pilot, "model:one verdict:pass 299") == [
            "tests/rows.md country=country 299"
        ]
        assert await filtered(pilot, "") == FIRST
        assert "of " in screen(pilot)

    drive(scenario)


def test_an_answer_is_opened_and_its_neighbours() -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await settled(pilot)
        assert await filtered(pilot, "zoo") == ["tests/zoo.md "]
        pilot.app.screen.query_one(Grid).focus()
        await press(pilot, "enter")
        await settled(pilot)
        assert "Where is the zoo?" in screen(pilot)

    drive(scenario, revision="@")


@pytest.mark.parametrize(
    "row", ["country=country 7", "country=country 77", "country=country 250", "gone"]
)
def test_a_case_that_is_not_among_the_first_is_looked_for(row: str) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        cast("Browser", pilot.app).open("cases", "@", place=CasePlace("tests/rows.md", row))
        await settled(pilot)
        case = page_of(pilot).case
        assert (case.row if case else "gone") == row
        await filtered(pilot, "")
        assert rows_of(pilot) == FIRST

    drive(scenario)


class Held(WorkspaceSource):
    """Reads cases with a filter only when it is told to, a part at a time."""

    def __init__(self, location: Location) -> None:
        super().__init__(location)
        self.go, self.has_ended = Event(), Event()
        self.texts: list[str] = []

    def cases(self, revision: str | None, window: CaseWindow | None = None) -> Cases:
        assert window is not None
        if window.wants is None:
            return super().cases(revision, window)
        report = window.report

        def held(done: int, total: int) -> bool:
            goes_on = report(done, total)
            while goes_on and not self.go.wait(0.01):
                goes_on = report(done, total)
            return goes_on

        try:
            return super().cases(revision, replace(window, report=held))
        finally:
            self.has_ended.set()


def test_the_progress_is_shown_and_what_is_typed_next_ends_the_reading(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cases_page, "_LONG_SEARCH_SECONDS", 0)
    source = Held(Location(Path()))

    async def scenario(pilot: Pilot[None]) -> None:
        await settled(pilot)
        line = page_of(pilot).query_one("#filter", Input)
        line.value = "no-such-name"
        while "looking at all cases … 12%" not in title(pilot):
            await pilot.pause()
        await pilot.press("down")
        assert pilot.app.screen.query_one(Grid).cursor <= 1
        line.value = "zoo"
        while not source.has_ended.is_set():  # though it was never told to go on
            await pilot.pause()
        source.go.set()
        await settled(pilot)
        assert rows_of(pilot) == ["tests/zoo.md "]
        assert "looking" not in title(pilot)

    async def released(pilot: Pilot[None]) -> None:
        try:
            await scenario(pilot)
        finally:
            source.go.set()  # the browser waits for its threads

    drive(released, source=source, revision="@")


def test_cases_that_do_not_match_are_freed_at_once() -> None:
    read = cases.cases(Location(Path()), "@")
    gc.disable()
    try:
        filtered_cases = FilteredCases(read)
        _ = filtered_cases.sizes
        assert filtered_cases.select(read_query("29"), "file", LookedUp())
        gone = weakref.ref(filtered_cases)
        del filtered_cases
        assert gone() is None
    finally:
        gc.enable()
