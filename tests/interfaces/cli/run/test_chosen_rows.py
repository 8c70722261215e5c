"""Rows of long files that are chosen by earlier results, by chance or by their number."""

from __future__ import annotations

import gc
import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from evalstore.core import batches
from evalstore.interfaces.cli.main import main
from evalstore.planning import cells
from evalstore.planning.open_project import open_project
from evalstore.planning.options import Location, SelectionOptions
from evalstore.planning.planner import resolve_scope
from evalstore.store import results
from tests.builders import tree
from tests.interfaces.cli.conftest import Evalstore
from tests.interfaces.cli.long_files import CHECK, CHECKED, JUDGE, ONE, ROWS, TWO, treat_as_long

pytestmark = pytest.mark.extended

LANDS = "tests/lands.md"
FILES = {
    "evalstore.yaml": "candidates: [one, two]\nevaluators: [judge]\nretries: 0\n",
    "models/one.yaml": ONE,
    "models/two.yaml": TWO,
    "models/judge.yaml": JUDGE.replace(
        "responses: [", "responses: [{when: 'land 5', error: 500}, "
    ),
    "tests/data.jsonl": ROWS.replace("land 6", "land 1"),  # several rows ask the same
    LANDS: CHECKED + "Is it the capital of {{country}}?\n\n" + CHECK,
    "tests/hi.md": "# 👤\n\nHi\n\n---\n\nA greeting.\n",
}
CHOICES = [
    ["--last-failed"],
    ["--retry-errors"],
    ["--changed"],
    ["--sample", "60"],
    ["--sample", "60", "--seed", "3", "--shard", "1/2", "--limit", "20"],
    ["--shard", "2/3"],
    ["--last-failed", "--sample", "40"],
    ["--retry-errors", "--shard", "1/2"],
    ["--changed", "--sample", "7", "-m", "two"],
    ["--limit", "50"],
    ["--limit", "90", "-m", "two", "--tag", "b"],
]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, evalstore: Evalstore) -> Path:
    """A workspace with a long file that was edited and renamed after a run."""
    treat_as_long(monkeypatch)
    monkeypatch.setattr(batches, "SIZE", 40)
    root = tree(tmp_path / "ws", FILES)
    monkeypatch.chdir(root)
    assert "answers" in evalstore("run", "--yes", "--fail-on", "none").stdout
    assert evalstore("run", "--yes", "--fail-on", "none", "-k", "3").exit_code in (0, 3)
    (root / LANDS).rename(root / "tests/renamed.md")
    lines = (root / "tests/data.jsonl").read_text().splitlines(keepends=True)
    edited = [line.replace('"Oslo"', '"Rome"') for line in lines[65:]]
    (root / "tests/data.jsonl").write_text("".join([*lines[1:65], *edited]))
    return root


@pytest.mark.parametrize("choice", CHOICES, ids=" ".join)
def test_chosen_rows_are_planned_batch_by_batch_as_together(
    place: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch, choice: list[str]
) -> None:
    commands = [
        ["run", "--dry-run", *choice],
        ["status", "--explain", *choice],
        ["status", "--json", *choice],
    ]

    def print_all() -> list[object]:
        printed: list[object] = [evalstore(*command) for command in commands]
        with open_project(Location(place)) as project:
            options = SelectionOptions(**_options(choice))
            cells = [*resolve_scope(project, options).cells]
        return [*printed, [(cell.file, cell.number, cell.candidate.id) for cell in cells]]

    in_batches = print_all()
    monkeypatch.setattr(batches, "SIZE", 10_000)
    monkeypatch.setattr(cells, "BATCH", 10_000)
    assert print_all() == in_batches
    assert in_batches[-1]
    assert "Traceback" not in str(in_batches)


def _options(choice: list[str]) -> dict[str, Any]:
    names = {"-m": "models", "--tag": "tags"}
    options: dict[str, Any] = {}
    words = iter(choice)
    for word in words:
        name = names.get(word, word.lstrip("-").replace("-", "_"))
        if name in ("last_failed", "retry_errors", "changed"):
            options[name] = True
        else:
            value = next(words)
            options[name] = (
                (value,) if name in names.values() else value if name == "shard" else int(value)
            )
    return options


@pytest.mark.usefixtures("place")
def test_a_run_of_chosen_rows_does_the_plan_that_was_shown(evalstore: Evalstore) -> None:
    for choice in (["--retry-errors"], ["--last-failed", "--sample", "40"], ["--shard", "2/3"]):
        shown = json.loads(evalstore("status", "--json", *choice).stdout)
        ran = evalstore("run", "--yes", "--fail-on", "none", *choice, "--json")
        done = json.loads(ran.stdout)
        assert done["asked"] + done["failed"] >= shown["ask"]
        assert evalstore("fsck").exit_code == 0


_GROWTH = [
    ["--last-failed"],
    ["--retry-errors"],
    ["--changed"],
    ["--sample", "40"],
    ["--shard", "1/2"],
    ["--limit", "5000"],
]


def test_memory_does_not_grow_with_the_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    treat_as_long(monkeypatch)
    monkeypatch.setattr(cells, "BATCH", 30)
    monkeypatch.setattr(batches, "SIZE", 40)
    monkeypatch.setattr(batches, "SMALL_SIZE", 8)
    monkeypatch.setattr(results, "_MOST_KEPT", 40)
    files = {
        "evalstore.yaml": "candidates: [one]\nretries: 0\n",
        "models/one.yaml": "id: one\nprovider: scripted\n"
        "responses: [{when: '77[?]', error: 500}, {when: '3[?]', answer: Rome}, {answer: Oslo}]\n",
        LANDS: CHECKED + CHECK,
    }
    peaks: dict[int, list[int]] = {}
    for count in (150, 450):
        root = tree(tmp_path / str(count), files)
        rows = (json.dumps({"country": f"a{row}", "capital": "Oslo"}) for row in range(count))
        data = "".join(f"{row}\n" for row in rows)
        (root / "tests/data.jsonl").write_text(data)
        monkeypatch.chdir(root)
        assert main(["run", "--yes", "--quiet", "--fail-on", "none"]) == 3
        (root / "tests/data.jsonl").write_text(data.replace("a1", "b1"))
        with open_project(Location(root)) as project:  # the files are read
            project.store_versions()
            project.reading.save_index(project.workspace)
        peaks[count] = []
        for choice in (_GROWTH[0], *_GROWTH):  # the first one loads what is needed
            gc.collect()
            with open_project(Location(root)) as project:
                tracemalloc.start()
                resolve_scope(project, SelectionOptions(**_options(choice)))
            peaks[count].append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
    growth = [more - few for few, more in zip(peaks[150][1:], peaks[450][1:], strict=True)]
    assert max(growth) < 300 * 250, growth


def test_a_second_expression_for_names_does_not_replace_the_first(
    workspace: Path, evalstore: Evalstore
) -> None:
    for command in (("run",), ("grep", "warm")):
        told = evalstore(*command, "-k", "Oslo", "-k", "Rome")
        assert told.exit_code == 2
        assert told.stderr.startswith("error: '--name' is given twice\n")
        assert "-k 'Oslo or Rome'" in told.stderr
    assert evalstore("run", "-q", "--fail-on", "none", "-k", "Oslo or Rome").exit_code == 0
