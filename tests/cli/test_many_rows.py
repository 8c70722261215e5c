"""Files with very many rows: what is stored as it is read is what would be stored at once."""

from __future__ import annotations

import json
import sqlite3
import tracemalloc
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

import pytest

from evalstore import expand
from evalstore import library as kept
from evalstore.expand import expand_test
from evalstore.parse import parse_test
from evalstore.store import Store
from evalstore.values import Json
from tests.builders import library, tree
from tests.cli.conftest import Evalstore

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
        found = raw.execute("SELECT id, content FROM nodes")
        return {id for id, content in found if json.loads(content)["kind"] == "cases"}


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
    found: list[object] = []
    text = TEST.format(head=head).replace("capital of", "capital {{n}} of" if "n:" in head else "c")
    for most in (10_000, 20):
        folder = tree(place / str(most), FILES)
        tree(folder, {"tests/rows.md": text, "tests/data.jsonl": as_lines(rows)})
        monkeypatch.chdir(folder)
        monkeypatch.setattr(expand, "_MOST_AT_ONCE", most)
        Store.open(folder / ".evalstore/store.db", create=True).close()
        first, again = evalstore("check", "--json"), evalstore("check", "--json")
        cases = evalstore("ls", "cases", "--full", "--json")
        assert evalstore("run", "--yes", "--quiet").exit_code == (2 if first.exit_code else 1)
        found.append((first, again, cases, nodes_of(folder)))
    assert found[0] == found[1]


def test_without_a_store_that_can_be_written_to_rows_are_read_all_the_same(
    place: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expand, "_MOST_AT_ONCE", 20)
    tree(place, {**FILES, "tests/data.jsonl": data(200)})
    assert '"cases": 200' in evalstore("check", "--json").stdout
    Store.open(place / ".evalstore/store.db", create=True).close()
    with closing(sqlite3.connect(place / ".evalstore/store.db")) as raw:
        raw.execute("CREATE TRIGGER t BEFORE INSERT ON nodes BEGIN SELECT RAISE(ABORT, 'no'); END")
        raw.commit()
    assert '"cases": 200' in evalstore("check", "--json").stdout
    assert nodes_of(place) == set()


def test_a_row_needs_little_memory_until_it_is_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expand, "_MOST_AT_ONCE", 100)
    monkeypatch.setattr(kept, "KEPT_AT_ONCE", 100)
    test = parse_test("tests/rows.md", FILES["tests/rows.md"])
    peaks: list[int] = []
    # The first loads what is needed; tables of the interpreter may grow in one of the last.
    for count in (500, 500, 2_500, 2_500):
        known = library(data={"data.jsonl": data(count)})
        tracemalloc.start()
        found = expand_test(test, known, lambda _contents, _files: None, in_nodes=True)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert found.node
    assert min(peaks[2:]) - peaks[1] < 2_000 * 400


def test_the_problems_of_all_rows_are_told_when_a_line_is_broken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    test = parse_test("tests/rows.md", FILES["tests/rows.md"])
    rows = as_lines([*ROWS[:3], {"capital": "Oslo"}, *ROWS[3:]]) + "{\n"
    known = library(data={"data.jsonl": rows})
    at_once = expand_test(test, known).problems
    monkeypatch.setattr(expand, "_MOST_AT_ONCE", 10)
    streamed = expand_test(test, known, lambda _contents, _files: None, in_nodes=True).problems
    assert len(at_once) > 1
    assert streamed == at_once


def test_the_first_cases_are_taken_without_reading_the_others(
    place: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree(place, {**FILES, "tests/data.jsonl": data(8_000)})
    assert evalstore("run", "--yes", "--limit", "1").exit_code == 0
    read: list[str] = []
    load = Store.load_cases

    def count(store: Store, ids: Iterable[str]) -> dict[str, Json]:
        wanted = list(ids)
        read.extend(wanted)
        return load(store, wanted)

    monkeypatch.setattr(Store, "load_cases", count)
    ran = evalstore("run", "--yes", "--limit", "10")
    assert "9 asked, 9 judged, 1 reused" in ran.stdout
    assert evalstore("check").stdout == "1 test file, 8,000 cases: no errors\n"
    assert len(read) < 140
    assert len(nodes_of(place)) > 190
