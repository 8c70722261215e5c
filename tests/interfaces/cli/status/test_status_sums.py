"""The status of many rows without a run, added up in batches, is that of the whole plan."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from evalstore.planning import cells
from evalstore.planning.options import Location, SelectionOptions
from evalstore.planning.status_report import Status
from evalstore.runs.status import status as plan_status
from tests.builders import tree
from tests.interfaces.cli.conftest import Evalstore
from tests.interfaces.cli.long_files import (
    CHECK,
    CHECKED,
    JUDGE,
    ONE,
    PRICE,
    ROWS,
    TWO,
    treat_as_long,
)

pytestmark = pytest.mark.extended

PYTHON = "~~~checks\n- python: {file: checks/word.py, function: check}\n~~~\n"
WORKSPACES = {
    "checks": {
        "evalstore.yaml": "candidates: [one]\n",
        "models/one.yaml": ONE,
        "tests/rows.md": CHECKED + CHECK,
    },
    "candidates and judges with prices, system prompts, attempts": {
        "evalstore.yaml": "candidates: [one, two]\nevaluators: [judge]\nattempts: 2\n",
        "models/one.yaml": ONE + PRICE,
        "models/two.yaml": TWO + "capabilities: {output: {structured: false}}\n",
        "models/judge.yaml": JUDGE + PRICE,
        "prompts/short.md": "# ⚙️\n\nBe short.\n",
        "prompts/long.md": "# ⚙️\n\nBe long.\n",
        "tests/rows.md": (
            CHECKED.replace("---\n", "---\nsystemPrompts: [short, long]\n", 1)
            + "Is it a city?\n\n"
            + CHECK
        ),
        "tests/other.md": "---\ntags: [a, _json_mode]\n---\n\n# 👤\n\nHi\n\n---\n\nA greeting.\n",
    },
    "no judge, a check that is not trusted, and recorded answers": {
        "evalstore.yaml": "candidates: [one]\n",
        "models/one.yaml": ONE,
        "tests/checks/word.py": "def check(answer):\n    return True\n",
        "tests/rows.md": CHECKED + "Is it a city?\n",
        "tests/code.md": CHECKED.replace("Where", "What") + PYTHON,
        "tests/given.md": (
            CHECKED.replace("Where", "Who").replace("---\n", "---\nanswer: '{{capital}}'\n", 1)
            + CHECK
        ),
    },
}


@pytest.fixture(params=WORKSPACES)
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    treat_as_long(monkeypatch)
    root = tree(tmp_path / "ws", WORKSPACES[request.param] | {"tests/data.jsonl": ROWS})
    monkeypatch.chdir(root)
    return root


def statuses(
    root: Path, monkeypatch: pytest.MonkeyPatch, selection: SelectionOptions
) -> tuple[Status, Status]:
    """The status that is added up batch by batch, and that of the whole plan."""
    quick = plan_status.status(Location(root), selection, whole=False)
    with monkeypatch.context() as patch:
        patch.setattr(cells, "BATCH", 10**9)
        whole = plan_status.status(Location(root), selection)
    return quick, whole


def forget_runs(root: Path) -> None:
    """Remove the runs, as if what is stored came from elsewhere."""
    with closing(sqlite3.connect(root / ".evalstore/store.db")) as raw, raw:
        raw.execute("DELETE FROM runs")


@pytest.mark.parametrize("options", [(), ("--limit", "40"), ("--attempts", "1")])
def test_sums_are_those_of_the_whole_plan(
    place: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...]
) -> None:
    selections = (
        SelectionOptions(),
        SelectionOptions(tags=("a",)),
        SelectionOptions(models=("one",), attempts=3),
        SelectionOptions(refresh=True),
        SelectionOptions(offline=True),
    )
    for is_first in (True, False):
        for selection in selections:
            quick, whole = statuses(place, monkeypatch, selection)
            assert whole.items or not whole.is_any
            assert quick == replace(whole, items=[])
        if is_first:
            ran = evalstore("run", "--yes", "--fail-on", "none", "--offline", *options)
            assert "run " in ran.stdout, ran
            forget_runs(place)


@pytest.mark.parametrize("place", ["checks"], indirect=True)
def test_what_is_printed_is_that_of_the_whole_plan(
    place: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick = evalstore("status")
    assert "75 answers" in quick.stdout
    again = evalstore("status")
    listed = evalstore("status", "--json")
    assert listed.stdout.count('"kind": "ask"') == 75
    monkeypatch.setattr(cells, "BATCH", 10**9)
    assert evalstore("status") == quick == again
    assert evalstore("status", "--json") == listed
