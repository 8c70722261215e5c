"""Files with many rows: what is stored as it is read is what would be stored at once."""

from __future__ import annotations

import gc
import json
import sqlite3
import tracemalloc
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

import pytest

from evalstore.core import batches, hashing
from evalstore.core.errors import OK
from evalstore.core.values import Case, EvaluationVersion, Json, Result
from evalstore.files import temporary_list
from evalstore.planning import cells
from evalstore.planning.cell_results import CellResult
from evalstore.planning.cells import Cell
from evalstore.planning.open_project import open_store
from evalstore.planning.options import Location
from evalstore.planning.plan import Plan, PlannedAsk, PlannedJudgement
from evalstore.results.flips.verdict_changes import find_verdict_changes
from evalstore.runs.execution.execution_counts import ExecutionCounts
from evalstore.runs.run_report import RunTotals
from evalstore.store import Store
from evalstore.workspace.testfiles import context as kept
from evalstore.workspace.testfiles import expansion
from evalstore.workspace.testfiles.expansion import expand_test
from evalstore.workspace.testfiles.parser import parse_test
from tests.builders import HELLO, library, tree
from tests.interfaces.cli.conftest import Evalstore
from tests.interfaces.cli.long_files import treat_as_long

pytestmark = pytest.mark.extended

TEST = (
    "---\ndataset: data.jsonl\n{head}---\n\n# 👤\n\nWhat is the capital of {{{{country}}}}?\n\n"
    "---\n\n~~~checks\n- contains: '{{{{item.capital}}}}'\n~~~\n"
)
FILES = {
    "evalstore.yaml": "candidates: [one]\n",
    "models/one.yaml": "id: one\nprovider: scripted\nresponses: [{answer: Oslo 1}]\n",
    "tests/rows.md": TEST.format(head=""),
}


def data(count: int) -> str:
    rows = ({"country": f"country {number}", "capital": "Oslo 1"} for number in range(count))
    return "".join(json.dumps(row) + "\n" for row in rows)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def nodes_of(folder: Path) -> set[bytes]:
    with closing(sqlite3.connect(folder / ".evalstore/store.db")) as raw:
        actual = raw.execute("SELECT id, content FROM nodes")
        return {id for id, content in actual if json.loads(content)["kind"] == "cases"}


ROWS = [{"country": f"country {number}", "capital": f"Oslo {number % 7}"} for number in range(120)]


def as_lines(rows: Iterable[Json]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


@pytest.mark.parametrize(
    ("head", "rows"),
    [
        pytest.param("", ROWS, id="different"),
        pytest.param("", [*ROWS, *ROWS[:60]], id="equal rows"),
        pytest.param("attempts: 2\nid: x\ntags: [a]\n", ROWS, id="settings"),
        pytest.param("replacements: {n: [1, 2]}\n", ROWS[:90], id="replacements"),
        pytest.param("", [*ROWS, {"country": "x"}], id="a row lacks a value"),
        pytest.param("rowId: nr\n", [{"nr": n, **row} for n, row in enumerate(ROWS)], id="ids"),
        pytest.param("rowId: nr\n", [*({"nr": 1, **row} for row in ROWS), ROWS[0]], id="no id"),
        pytest.param("", [*ROWS[:40], {"capital": "x"}, *ROWS], id="an early row lacks a value"),
        pytest.param("", [*ROWS[:5], 7, *ROWS], id="a row is none"),
    ],
)
def test_rows_that_are_stored_as_they_are_read_come_to_the_same(
    place: Path,
    evalstore: Evalstore,
    monkeypatch: pytest.MonkeyPatch,
    head: str,
    rows: list[Json],
) -> None:
    actual: list[object] = []
    text = TEST.format(head=head).replace("capital of", "capital {{n}} of" if "n:" in head else "c")
    for most in (10_000, 20):
        folder = tree(place / str(most), FILES)
        tree(folder, {"tests/rows.md": text, "tests/data.jsonl": as_lines(rows)})
        monkeypatch.chdir(folder)
        monkeypatch.setattr(expansion, "_MOST_AT_ONCE", most)
        Store.open(folder / ".evalstore/store.db", create=True).close()
        first, again = evalstore("check", "--json"), evalstore("check", "--json")
        cases = evalstore("ls", "cases", "--full", "--json")
        assert evalstore("run", "--yes", "--quiet").exit_code == (2 if first.exit_code else 1)
        actual.append((first, again, cases, nodes_of(folder)))
    assert actual[0] == actual[1]


@pytest.mark.usefixtures("_few_at_once")
@pytest.mark.parametrize("command", ["run", "status"])
def test_rows_that_are_stored_before_an_error_refer_to_nothing_that_is_missing(
    place: Path, evalstore: Evalstore, command: str
) -> None:
    library = {
        "prompts/brief.md": "Be brief.\n",
        "tools/map.yaml": "name: map\ndescription: Finds a place.\nparameters: {type: object}\n",
    }
    head = "systemPrompts: [brief]\navailableTools: [map]\n"
    tree(place, {**FILES, **library, "tests/data.jsonl": data(200), "tests/z.md": "---\na: {\n"})
    tree(place, {"tests/rows.md": TEST.format(head=head)})
    Store.open(place / ".evalstore/store.db", create=True).close()
    assert evalstore(command).exit_code == 2
    assert nodes_of(place)
    assert evalstore("fsck").exit_code == 0


@pytest.mark.usefixtures("_few_at_once")
def test_a_check_without_a_store_needs_little_memory_for_a_row(
    place: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    peaks: list[int] = []
    for number, count in enumerate((300, 300, 1_800)):
        folder = tree(place / str(number), {**FILES, "tests/data.jsonl": data(count)})
        monkeypatch.chdir(folder)
        tracemalloc.start()
        assert evalstore("check").stdout == f"1 test file, {count:,} cases: no errors\n"
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert not (folder / ".evalstore/store.db").exists()
    assert peaks[2] - peaks[1] < 1_500 * 250
    assert evalstore("check", "tests/rows.md::country=country 7").exit_code == 0
    assert "no row is called" in evalstore("check", "tests/rows.md::x").stderr


def test_what_all_rows_have_in_common_is_described_once(
    place: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    messages = TEST.format(head="").replace("'{{item.capital}}'", "Oslo")
    tree(place, {**FILES, "tests/rows.md": messages, "tests/data.jsonl": data(50)})
    described: list[EvaluationVersion] = []

    def describe(version: EvaluationVersion) -> Json:
        described.append(version)
        return original(version)

    original = hashing.describe_evaluation
    monkeypatch.setattr(hashing, "describe_evaluation", describe)
    assert evalstore("check").exit_code == 0
    assert len(described) == 1


def test_without_a_store_that_can_be_written_to_rows_are_read_all_the_same(
    place: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expansion, "_MOST_AT_ONCE", 20)
    tree(place, {**FILES, "tests/data.jsonl": data(200)})
    assert '"cases": 200' in evalstore("check", "--json").stdout
    Store.open(place / ".evalstore/store.db", create=True).close()
    with closing(sqlite3.connect(place / ".evalstore/store.db")) as raw:
        raw.execute("CREATE TRIGGER t BEFORE INSERT ON nodes BEGIN SELECT RAISE(ABORT, 'no'); END")
        raw.commit()
    assert '"cases": 200' in evalstore("check", "--json").stdout
    assert nodes_of(place) == set()


def test_a_row_needs_little_memory_until_it_is_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expansion, "_MOST_AT_ONCE", 100)
    monkeypatch.setattr(kept, "KEPT_AT_ONCE", 100)
    test = parse_test("tests/rows.md", FILES["tests/rows.md"])
    peaks: list[int] = []
    # The first loads what is needed; tables of the interpreter may grow in one of the last.
    for count in (500, 500, 2_500, 2_500):
        known = library(data={"data.jsonl": data(count)})
        tracemalloc.start()
        actual = expand_test(test, known, lambda _contents, _files: None, in_nodes=True)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert actual.node
    assert min(peaks[2:]) - peaks[1] < 2_000 * 400


def test_the_problems_of_all_rows_are_reported_when_a_line_is_broken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    test = parse_test("tests/rows.md", FILES["tests/rows.md"])
    rows = as_lines([*ROWS[:3], {"capital": "Oslo"}, *ROWS[3:]]) + "{\n"
    known = library(data={"data.jsonl": rows})
    at_once = expand_test(test, known).problems
    monkeypatch.setattr(expansion, "_MOST_AT_ONCE", 10)
    streamed = expand_test(test, known, lambda _contents, _files: None, in_nodes=True).problems
    assert len(at_once) > 1
    assert streamed == at_once


RECORDED = {
    "evalstore.yaml": "candidates: []\n",
    "tests/rows.md": TEST.format(head="answer: '{{item.answer}}'\n"),
}


def answers(count: int) -> str:
    """Rows with answers of which every second is wrong; the first ones are asked twice."""
    return as_lines(
        {"country": f"country {number}", "capital": f"Oslo {number % 2}", "answer": "Oslo 1"}
        for number in [*range(count), *range(5)]
    )


@pytest.mark.parametrize("are_recorded", [False, True])
def test_the_first_cases_are_taken_without_reading_the_others(
    place: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch, are_recorded: bool
) -> None:
    files, rows = (RECORDED, answers(7_995)) if are_recorded else (FILES, data(8_000))
    tree(place, {**files, "tests/data.jsonl": rows})
    assert "1 new verdict" in evalstore("run", "--yes", "--limit", "1").stdout
    read: list[str] = []
    load = Store.load_cases

    def count(store: Store, ids: Iterable[str]) -> dict[str, Json]:
        expected = list(ids)
        read.extend(expected)
        return load(store, expected)

    monkeypatch.setattr(Store, "load_cases", count)
    ran = evalstore("run", "--yes", "--limit", "10")
    assert "1 reused, 9 new verdicts" in ran.stdout
    assert evalstore("check").stdout == "1 test file, 8,000 cases: no errors\n"
    assert len(read) < 160
    assert len(nodes_of(place)) > 190


@pytest.fixture
def _few_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of hundreds of rows are what files of many thousands are."""
    treat_as_long(monkeypatch)


@pytest.mark.usefixtures("_few_at_once")
def test_a_run_needs_little_memory_for_a_row(
    place: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    peaks: list[int] = []
    thresholds = gc.get_threshold()
    gc.set_threshold(500)  # with that of the tests much garbage is counted, or none, by chance
    for number, count in enumerate((100, 100, 500)):
        folder = tree(place / str(number), {**RECORDED, "tests/data.jsonl": answers(count)})
        monkeypatch.chdir(folder)
        tracemalloc.start()
        ran = evalstore("run", "--quiet")
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert f"{count:,} recorded" in ran.stdout, ran
    gc.set_threshold(*thresholds)
    assert peaks[2] - peaks[1] < 400 * 400


@pytest.mark.usefixtures("_few_at_once")
def test_the_comparison_of_a_run_needs_little_memory_for_a_row(
    place: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(temporary_list, "_FEW", 20)
    monkeypatch.setattr(batches, "SIZE", 20)
    monkeypatch.setattr(batches, "SMALL_SIZE", 20)
    peaks: list[int] = []
    for number, count in enumerate((200, 200, 1_000)):
        folder = tree(place / str(number), {**FILES, "tests/data.jsonl": data(count)})
        monkeypatch.chdir(folder)
        assert evalstore("run", "--quiet", "--limit", f"{count // 2}").exit_code == OK
        tree(folder, {"models/one.yaml": FILES["models/one.yaml"].replace("Oslo", "Rome")})
        assert evalstore("run", "--quiet", "--refresh").exit_code == 1
        with open_store(Location(folder)) as store:
            (run,) = store.find_runs(limit=1)
            gc.collect()
            tracemalloc.start()
            changes = find_verdict_changes(store, "tests", run)
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
        assert changes
        assert len(changes.broke) == len(changes.new) == count // 2
    assert peaks[2] - peaks[1] < 800 * 1_400


@pytest.mark.usefixtures("_few_at_once")
def test_no_more_rows_are_in_memory_when_there_are_more(
    place: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    actual: list[int] = []
    kinds = {Cell, Case, PlannedAsk, PlannedJudgement, CellResult, Result}
    add = RunTotals.add

    def count(totals: RunTotals, plan: Plan, outcome: ExecutionCounts) -> None:
        add(totals, plan, outcome)
        most = sum(map(kinds.__contains__, map(type, gc.get_objects())))
        actual[-1] = max(most, actual[-1])

    monkeypatch.setattr(RunTotals, "add", count)
    for number in (100, 300):
        folder = tree(place / str(number), {**RECORDED, "tests/data.jsonl": answers(number)})
        monkeypatch.chdir(folder)
        actual.append(0)
        assert f"{number} recorded" in evalstore("run", "--quiet").stdout
    assert actual[1] - actual[0] < 200  # of any kind, for 200 rows more


@pytest.mark.usefixtures("_few_at_once")
@pytest.mark.parametrize("size", [1, 7])
def test_a_run_in_batches_of_rows_finds_what_one_as_a_whole_finds(
    place: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    tree(place, {**RECORDED, "tests/data.jsonl": answers(60)})
    actual: list[object] = []
    commands = (
        ["run"],
        ["run"],
        ["run", "--refresh", "--fail-on", "regression"],
        ["run", "-k", "country and not 3"],
    )
    for batch in (size, 4_000):
        monkeypatch.setattr(cells, "BATCH", batch)
        store = str(place / f"{batch}.db")
        ran = [evalstore(*command, "--store", store) for command in commands]
        messages = [(item.exit_code, item.stdout) for item in ran]
        reports = [
            json.loads(evalstore(*command, "--store", store, "--json").stdout)
            for command in commands
        ]
        actual.append((messages, list(map(without_ids, reports))))
    assert actual[0] == actual[1]


def without_ids(report: Json) -> Json:
    report = {**report, "run": "", "seconds": 0, "session": ""}
    return {**report, "cases": [{**case, "session": "", "sessions": 0} for case in report["cases"]]}


def test_a_case_that_nobody_answers_is_reported_unless_it_is_beyond_the_limit(
    place: Path, evalstore: Evalstore
) -> None:
    tree(place, {**RECORDED, "tests/data.jsonl": answers(3), "tests/z.md": HELLO})
    ran = evalstore("run")
    assert (ran.exit_code, ran.stderr.split("\n")[0]) == (2, "error: no candidates")
    assert "1 new verdict" in evalstore("run", "--limit", "1").stdout
