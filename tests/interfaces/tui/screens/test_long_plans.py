"""Pending work and plans of long files: lines are read from a file when they are seen."""

from __future__ import annotations

import asyncio
import json
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

import evalstore
from evalstore.core import batches
from evalstore.core.runs import ProgressListener
from evalstore.interfaces.cli.main import main
from evalstore.interfaces.tui.data_source import WorkspaceSource
from evalstore.interfaces.tui.grid import Grid
from evalstore.interfaces.tui.screens import base, runs
from evalstore.interfaces.tui.screens import run as status_page
from evalstore.interfaces.tui.screens.run import StatusPage
from evalstore.planning import planner
from evalstore.planning.options import Location
from evalstore.planning.plan import FiledItems, Plan, SummedItems
from evalstore.planning.status_report import Status
from evalstore.runs import run
from evalstore.runs.status import status as plan_status
from evalstore.store.driver import UnwantedError
from tests.builders import tree
from tests.interfaces.cli.long_files import CHECK, CHECKED, ONE, ROWS, TWO, treat_as_long
from tests.interfaces.tui.driving import drive, look, press, screen, settled, until

pytestmark = pytest.mark.extended
_SECONDS = 60
"""Until something that does not come is given up."""


@pytest.fixture
def long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace of 75 rows, two candidates and no run, of which nothing may be listed."""
    treat_as_long(monkeypatch)
    monkeypatch.setattr(batches, "SIZE", 16)
    files = {
        "evalstore.yaml": "candidates: [one, two]\nretries: 0\n",
        "models/one.yaml": ONE,
        "models/two.yaml": TWO,
        "tests/data.jsonl": ROWS,
        "tests/rows.md": CHECKED + CHECK,
    }
    root = tree(tmp_path / "ws", files)
    monkeypatch.chdir(root)
    return root


def _refuse(_self: object, asks: list[object], _judgements: list[object]) -> None:
    pytest.fail(f"{len(asks)} items are listed")


def test_the_status_of_the_library_has_items_that_are_read_when_they_are_needed(
    long: Path,
) -> None:
    status = evalstore.Workspace(long).status()
    assert isinstance(status.items, FiledItems)
    assert (len(status.items), status.ask, status.judge) == (300, 150, 150)
    assert status.items[0].kind == "ask"
    assert status.items[-1].row == status.items[149].row
    assert [item.kind for item in status.items[149:151]] == ["ask", "judge"]
    document = json.loads(json.dumps(evalstore.to_json(status)))
    assert len(document["items"]) == 300


def test_each_line_of_much_pending_work_can_be_seen(long: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "w")
        page = pilot.app.screen
        assert isinstance(page, StatusPage)
        grid = page.query_one(Grid)
        assert grid.row_count == 302
        assert "ask 150 answers" in screen(pilot)
        assert screen(pilot).startswith(" pending work › 150 to ask, 150 to judge")
        await press(pilot, "G")
        assert "land 74" in screen(pilot)
        assert "country=land 74" in page.copy_text[0]
        for _ in range(60):
            await press(pilot, "pageup")
        assert "land 0" in screen(pilot)
        assert grid.cursor == 0
        await press(pilot, *["down"] * 5)
        place = page.copy_text
        tree(long, {"tests/new.md": "# 👤\n\nNew?\n\n---\n\n~~~checks\n- contains: a\n~~~\n"})
        await press(pilot, "r")
        assert grid.row_count > 302
        assert page.copy_text == place

    drive(scenario, size=(120, 30))


def test_very_much_pending_work_is_listed_in_part(
    long: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(status_page, "_MOST", 40)

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "w", "G")
        text = screen(pilot)
        assert pilot.app.screen.query_one(Grid).row_count == 84
        assert text.startswith(" pending work › 150 to ask, 150 to judge")
        assert "… 110 more lines: 'evalstore status --json' has all" in text

    drive(scenario, size=(120, 30))


def test_the_plan_of_a_run_counts_reasons_and_lists_nothing(
    long: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        pytest.fail("items are summed up")

    monkeypatch.setattr(FiledItems, "add", _refuse)
    monkeypatch.setattr(SummedItems, "__init__", refuse)
    preview = run.plan(Location(long), run.ALL)
    assert preview.status.items == []
    assert (preview.status.ask, preview.agreed.asks) == (150, 150)
    asks = preview.reasons["ask"]
    assert (asks.total, dict(asks.models)) == (150, {"one": 75, "two": 75})
    assert dict(asks.reasons) == {("new test", ()): 150}

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "R")
        text = screen(pilot)
        assert "one 75, two 75" in text
        assert "150x  new test" in text
        await press(pilot, "enter")
        assert "incomplete: 138 new answers" in screen(pilot)

    drive(scenario, size=(120, 30))


def test_a_run_that_would_do_what_was_not_shown_does_nothing(long: Path) -> None:
    preview = run.plan(Location(long), run.ALL)
    rows = ROWS.replace("land 74", "isle 74")
    tree(long, {"tests/data.jsonl": rows})
    with pytest.raises(evalstore.EvalstoreError, match="4 items of the new plan were not"):
        run.carry_out_request(Location(long), run.ALL, ProgressListener(), preview)


class _Held:
    """From a moment on, lets the plans of a few batches be made, and others once it is released."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, batches: int) -> None:
        self.begins, self.goes_on = threading.Event(), threading.Event()
        self.waits = threading.Event()
        self.made = Counter[int]()
        """How many plans each thread has made since then."""
        make = planner.plan_cells

        def plan_cells(*arguments: Any, **options: Any) -> Plan:
            thread = threading.get_ident()
            if self.begins.is_set():
                if self.made[thread] == batches:
                    self.waits.set()
                    assert self.goes_on.wait(_SECONDS)
                self.made[thread] += 1
            return make(*arguments, **options)

        monkeypatch.setattr(plan_status, "plan_cells", plan_cells)
        monkeypatch.setattr(base, "NEWS_SECONDS", 0.0)


def test_reading_pending_work_stops_when_its_page_is_left(
    long: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = _Held(monkeypatch, batches=2)
    ended: list[int] = []
    status = WorkspaceSource.status

    def read(source: WorkspaceSource) -> Status:
        try:
            return status(source)
        except UnwantedError:
            ended.append(held.made[threading.get_ident()])
            raise

    monkeypatch.setattr(WorkspaceSource, "status", read)

    async def scenario(pilot: Pilot[None]) -> None:
        held.begins.set()
        await pilot.press("w")
        await until(pilot, lambda: "reading … 60 of 150 cases" in screen(pilot))
        await until(pilot, held.waits.is_set)
        await pilot.press("escape")
        held.goes_on.set()
        await until(pilot, lambda: bool(ended))
        assert ended == [3]  # the one that was being made; no batch after it is begun

    drive(scenario, size=(120, 30))


def test_the_plan_of_a_run_says_how_far_its_reading_has_come(
    long: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = _Held(monkeypatch, batches=2)

    async def scenario(pilot: Pilot[None]) -> None:
        held.begins.set()
        await pilot.press("R")
        await until(pilot, lambda: "reading … 60 of 150 cases" in screen(pilot))
        held.goes_on.set()
        await settled(pilot)
        assert "150x  new test" in screen(pilot)

    drive(scenario, size=(120, 30))


def test_pending_work_is_read_once_after_an_edit(
    long: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[str] = []
    status = WorkspaceSource.status

    def read(source: WorkspaceSource) -> Status:
        begun.append("")
        stamp = source.workspace.stamp()
        read = status(source)
        begun[-1] = "wrote" if source.workspace.stamp() != stamp else "only read"
        return read

    monkeypatch.setattr(WorkspaceSource, "status", read)

    async def scenario(pilot: Pilot[None]) -> None:
        await look(pilot)  # the store was made meanwhile
        await press(pilot, "w")
        assert begun == ["only read"]
        tree(long, {"tests/data.jsonl": ROWS.replace("land 74", "isle 74")})
        for _ in range(3):
            await look(pilot)
        assert begun == ["only read", "wrote"]
        await press(pilot, "G")
        assert "isle 74" in screen(pilot)
        await asyncio.to_thread(main, ["run", "--quiet", "--limit", "1", "--fail-on", "none"])
        await look(pilot)
        assert len(begun) == 3

    drive(scenario, size=(120, 30))


def test_the_state_of_the_workspace_says_how_far_a_long_reading_of_it_has_come(
    long: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = _Held(monkeypatch, batches=2)

    async def scenario(pilot: Pilot[None]) -> None:
        held.begins.set()
        await pilot.press("r")
        await until(pilot, lambda: bool(held.made))
        await pilot.pause()
        assert "cases" not in screen(pilot).splitlines()[1]  # it has not taken long
        held.goes_on.set()
        await settled(pilot)
        monkeypatch.setattr(runs, "_LONG_SECONDS", 0.0)
        held.goes_on.clear()
        held.made.clear()
        await pilot.press("r")
        await until(pilot, lambda: "reading … 60 of 150 cases" in screen(pilot).splitlines()[1])
        assert "workspace  reading …" in screen(pilot)
        held.goes_on.set()
        await settled(pilot)
        assert "reading" not in screen(pilot)
        assert screen(pilot).splitlines()[2].startswith(" pending     150 to ask, ")

    drive(scenario, size=(120, 30))


def test_the_state_of_the_workspace_is_not_read_beside_a_plan_but_after_it(
    long: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = _Held(monkeypatch, batches=2)

    def readings(pilot: Pilot[None]) -> list[str]:
        return [worker.group for worker in pilot.app.workers if not worker.is_finished]

    async def scenario(pilot: Pilot[None]) -> None:
        head = "pending     150 to ask, "
        assert head in screen(pilot)
        rows = ROWS.replace("land 74", "isle 74") + ROWS.replace("land", "isle")
        tree(long, {"tests/data.jsonl": rows})
        held.begins.set()
        await pilot.press("r")
        await until(pilot, lambda: "dashboard" in readings(pilot) and bool(held.made))
        await pilot.press("R")
        await until(pilot, lambda: "read" in readings(pilot))
        await pilot.pause(0.1)
        assert readings(pilot) == ["read"]
        held.goes_on.set()
        await settled(pilot)
        assert "298x  new test" in screen(pilot)
        assert "pending     298 to ask, " in screen(pilot)
        assert readings(pilot) == []

    drive(scenario, size=(120, 40))
