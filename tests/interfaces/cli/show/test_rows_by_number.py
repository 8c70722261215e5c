"""Cells of long files are chosen by their numbers as by the values of their rows."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from evalstore.core.errors import NothingSelectedError
from evalstore.interfaces.cli.main import main
from evalstore.planning import planner
from evalstore.planning.cells import failed_cells, numbered_results
from evalstore.planning.cells.cell_batches import StreamedCells
from evalstore.planning.cells.same_cells import find_cells
from evalstore.planning.open_project import open_project
from evalstore.planning.options import Location, SelectionOptions
from evalstore.planning.planner import resolve_scope
from evalstore.store.rows.row_results import RowResults
from tests.builders import tree
from tests.interfaces.cli.long_files import CHECK, treat_as_long

pytestmark = pytest.mark.extended

MODEL = (
    "id: {id}\nprovider: scripted\nresponses: "
    "[{{when: '{fails}[?]', error: 500}}, {{when: '{wrong}[?]', answer: Rome}}, {{answer: Oslo}}]\n"
)
CANDIDATES = ["[one]", "[one, two]", "[one, {id: two, requiredTags: [b]}]", "[two]"]
CHOICES = [
    SelectionOptions(last_failed=True),
    SelectionOptions(last_failed=True, tags=("a",)),
    SelectionOptions(last_failed=True, models=("one",)),
    SelectionOptions(last_failed=True, sample=20),
    SelectionOptions(sample=60, seed=2),
    SelectionOptions(shard="2/3"),
    SelectionOptions(last_failed=True, sample=40, shard="1/2", limit=9),
]


class Rows:
    """The rows of a data set, which are edited between runs."""

    def __init__(self, chance: random.Random, count: int) -> None:
        self.chance = chance
        self.rows = [{"country": f"land {number}", "capital": "Oslo"} for number in range(count)]
        for _ in range(chance.choice([0, 0, 3])):
            self.rows.insert(chance.randrange(count), chance.choice(self.rows))  # equal rows

    def edit(self) -> None:
        """Edit, remove, add or move some rows."""
        chance, rows = self.chance, self.rows
        for _ in range(chance.choice([0, 0, 1, 5])):
            place = chance.randrange(len(rows))
            match chance.choice(["edit", "check", "remove", "add", "move"]):
                case "edit":
                    rows[place] = {**rows[place], "country": f"isle {chance.randrange(99)}"}
                case "check":
                    rows[place] = {**rows[place], "capital": "Rome"}
                case "remove":
                    del rows[place]
                case "add":
                    rows.insert(place, {"country": f"new {place}", "capital": "Oslo"})
                case _:
                    rows.append(rows.pop(place))

    def __str__(self) -> str:
        return "".join(json.dumps(row) + "\n" for row in self.rows)


def test_file(chance: random.Random) -> str:
    """A test file with several system prompts, or with other questions or checks."""
    prompts = chance.choice(["", "", "[brief]", "[brief, kind]", "[kind, null]", "[kind]"])
    head = f"systemPrompts: {prompts}\n" if prompts else ""
    question = chance.choice(["Where is {{country}}?", "Find {{country}}?"])
    check = chance.choice([CHECK, CHECK, CHECK.replace("contains", "equals")])
    return (
        f"---\ndataset: data.jsonl\ntags: [a, b]\n{head}---\n\n# 👤\n\n{question}\n\n---\n\n{check}"
    )


test_file.__test__ = False  # type: ignore[attr-defined]


def make_history(root: Path, seed: int) -> None:
    """Write a workspace, with runs of several versions of its files, some of them of few cells."""
    chance = random.Random(seed)
    rows = Rows(chance, chance.choice([70, 120]))
    path = root / "tests/lands.md"
    tree(
        root,
        {
            "evalstore.yaml": f"candidates: {chance.choice(CANDIDATES)}\nretries: 0\n",
            "models/one.yaml": MODEL.format(id="one", fails="77", wrong="3"),
            "models/two.yaml": MODEL.format(id="two", fails="8", wrong="1."),
            "prompts/brief.md": "Be brief.\n",
            "prompts/kind.md": "Be kind.\n",
            "tests/data.jsonl": str(rows),
            "tests/lands.md": test_file(chance),
            "tests/hi.md": f"# 👤\n\nHi 3?\n\n---\n\n{CHECK.replace('{{capital}}', 'Oslo')}",
        },
    )
    parts = [[], [], ["-k", "3"], ["--limit", "50"], ["--shard", "1/2"], ["-m", "one"], ["--lf"]]
    for _ in range(chance.choice([2, 3, 4])):
        some = chance.choice(parts)
        main(["-C", str(root), "run", "--yes", "--quiet", "--fail-on", "none", *some])
        rows.edit()
        (path.parent / "data.jsonl").write_text(str(rows))
        if chance.random() < 0.4:
            path.write_text(test_file(chance))
        if chance.random() < 0.2:
            path = path.rename(path.with_name(f"lands{chance.randrange(9)}.md"))


def choose(root: Path, choice: SelectionOptions) -> object:
    """What a command is about: its cells, and all that is known of them."""
    with open_project(Location(root)) as project:
        try:
            cells = resolve_scope(project, choice).cells
        except NothingSelectedError as problem:
            return str(problem), problem.hint
        assert isinstance(cells, StreamedCells)
        summary = cells.summary
        return (
            [
                (c.file, c.case, c.number, c.prompt_number, c.candidate.id, c.questions)
                for c in cells
            ],
            len(cells),
            cells.skipped,
            len({*summary.judges.values()}),
            [*summary.unjudged],
            summary.has_others,
            {id for cell in cells for id in cell.questions if id in cells.shared},
        )


@pytest.fixture
def long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of some dozen rows are long, and cells are looked for in parts."""
    treat_as_long(monkeypatch)
    monkeypatch.setattr(failed_cells, "_AT_ONCE", 40)


@pytest.mark.usefixtures("long")
@pytest.mark.parametrize("seed", range(8))
def test_cells_are_chosen_by_numbers_as_by_the_values_of_rows(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_history(tmp_path / "ws", seed)
    chosen = [choose(tmp_path / "ws", choice) for choice in CHOICES]
    monkeypatch.setattr(planner, "CellLayout", lambda **_: None)
    for choice, by_number in zip(CHOICES, chosen, strict=True):
        assert choose(tmp_path / "ws", choice) == by_number, choice


@pytest.fixture
def looked_for(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """How many results were looked for by the values of their rows."""
    count = 0

    def find(rows: RowResults, entries: Mapping[str, str], cells: Iterable[Any]) -> list[Any]:
        nonlocal count
        listed = list(cells)
        count += len(listed)
        return find_cells(rows, entries, listed)

    monkeypatch.setattr(failed_cells, "find_cells", find)
    return lambda: count


def make_run(root: Path, rows: Rows) -> str:
    """Write a workspace with these rows, and run it; returns its test file."""
    head = "---\ndataset: data.jsonl\nsystemPrompts: [brief]\n---\n\n"
    file = head + "# 👤\n\nWhere is {{country}}?\n\n---\n\n" + CHECK
    tree(
        root,
        {
            "evalstore.yaml": "candidates: [one]\nretries: 0\n",
            "models/one.yaml": MODEL.format(id="one", fails="77", wrong="3"),
            "prompts/brief.md": "Be brief.\n",
            "tests/data.jsonl": str(rows),
            "tests/lands.md": file,
        },
    )
    main(["-C", str(root), "run", "--yes", "--quiet", "--fail-on", "none"])
    return file


@pytest.mark.usefixtures("long")
@pytest.mark.parametrize("edit", ["nothing", "check", "prompt", "name", "row", "equal rows"])
def test_only_other_rows_are_looked_for_by_their_values(
    edit: str, tmp_path: Path, looked_for: Callable[[], int]
) -> None:
    root = tmp_path / "ws"
    rows = Rows(random.Random(1), 0 if edit == "equal rows" else 90)
    rows.rows = rows.rows or [{"country": "here", "capital": "Rome"}] * 90
    file = make_run(root, rows)
    path = root / "tests/lands.md"
    if edit == "check":
        path.write_text(file.replace("contains", "equals"))
    elif edit == "prompt":
        (root / "prompts/brief.md").write_text("Be very brief.\n")
    elif edit == "name":
        path.rename(path.with_name("isles.md"))
    elif edit == "row":
        rows.rows[5]["country"] = "isle"
        (root / "tests/data.jsonl").write_text(str(rows))
    cells = choose(root, SelectionOptions(last_failed=True))
    assert isinstance(cells, tuple)
    assert cells[1] == (90 if edit == "equal rows" else 10)
    assert bool(looked_for()) == (edit in ("row", "equal rows"))
    assert looked_for() in (0, 90)


@pytest.mark.usefixtures("long")
def test_cells_that_are_kept_are_summarised_without_reading_them_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_run(tmp_path / "ws", Rows(random.Random(2), 90))
    monkeypatch.setattr(StreamedCells, "_summarise", None)
    with open_project(Location(tmp_path / "ws")) as project:
        cells = resolve_scope(project, SelectionOptions(sample=60, seed=2)).cells
    assert len(cells) == 60


def test_a_result_without_a_verdict_has_failed_if_it_lacks_one() -> None:
    assert numbered_results._has_failed({"verdict": "pass"}, is_judged=True) is False
    assert numbered_results._has_failed({"verdict": "error"}, is_judged=True)
    assert numbered_results._has_failed({}, is_judged=True)
    assert numbered_results._has_failed({}, is_judged=False)
    assert not numbered_results._has_failed({"sessions": ["1"]}, is_judged=False)
