"""The places of texts, found in a temporary database."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from evalstore.core import batches
from evalstore.files.temporary_list import open_temporary
from evalstore.results import grep
from evalstore.results.grep import TextPlace, find_places
from evalstore.store.rows.row_queries import ResultIds, ResultLeaf

RUNS: dict[str, dict[str, list[ResultIds]]] = {
    "new": {"tests/b.md": [ResultIds("2", "m", None, 1, ("s2", "j2"))]},
    "old": {
        "tests/a.md": [
            ResultIds("1", "n", "p", 2, ("s1", "j1")),
            ResultIds("1", "m", "p", 2, ("s1", "j1")),
            ResultIds("3", "m", "q", 2, ("s3", "s4")),
        ],
        "tests/b.md": [ResultIds("9", "old", None, 1, ("s2",))],
    },
}


class _Store:
    """Runs with results of two files."""

    def __init__(self) -> None:
        self.read: list[str] = []

    def find_tree_leaves(self, tree: str) -> list[ResultLeaf]:
        return [ResultLeaf(f"{tree} {file}", "", file) for file in RUNS[tree]]

    def find_result_ids(self, leaves: Iterator[ResultLeaf]) -> dict[str, list[ResultIds]]:
        ids = [leaf.id for leaf in leaves]
        self.read += ids
        return {id: RUNS[id.split()[0]][id.split()[1]] for id in ids}


def _find(store: Any, *ids: str) -> list[tuple[Any, ...]]:
    runs: Any = [SimpleNamespace(id=name, results=name) for name in RUNS]
    listed = [("answers", id, TextPlace((id,))) for id in ids]
    found: Any = find_places(store, listed, runs)  # type: ignore[arg-type]
    return [(id, each.run, each.file, each.row, each.models, each.prompts) for _, id, each in found]


@pytest.mark.parametrize("few", [1, 100])
@pytest.mark.parametrize("size", [1, 100])
def test_a_text_is_in_the_results_of_the_newest_run_that_has_it(
    monkeypatch: pytest.MonkeyPatch, size: int, few: int
) -> None:
    monkeypatch.setattr(batches, "SMALL_SIZE", size)
    monkeypatch.setattr(grep, "_FEW", few)
    assert _find(_Store(), "s9", "s2", "j1", "s4", "s3", "s1") == [
        ("j1", "old", "tests/a.md", "1", ("n", "m"), ("p",)),
        ("s1", "old", "tests/a.md", "1", ("n", "m"), ("p",)),
        ("s3", "old", "tests/a.md", "3", ("m",), ("q",)),
        ("s4", "old", "tests/a.md", "3", ("m",), ("q",)),
        ("s2", "new", "tests/b.md", "2", ("m",), ()),
        ("s9", None, None, "", (), ()),
    ]


def test_older_runs_are_not_read_when_all_texts_have_a_place() -> None:
    store = _Store()
    assert [run for _, run, *_ in _find(store, "s2", "j2")] == ["new", "new"]
    assert store.read == ["new tests/b.md"]


def test_results_without_the_texts_are_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    statements: list[str] = []

    def note(owner: object, tables: str) -> sqlite3.Connection:
        connection = open_temporary(owner, tables)
        connection.set_trace_callback(statements.append)
        return connection

    monkeypatch.setattr(grep, "open_temporary", note)
    written: list[int] = []
    for count in (10, 1_000):
        statements.clear()
        others = [ResultIds(f"{n}", "m", None, 1, (f"x{n}", f"y{n}")) for n in range(count)]
        results = [*others, ResultIds("2", "m", None, 1, ("s2", "j2"))]
        monkeypatch.setitem(RUNS, "new", {"tests/b.md": results})
        assert [row for _, _, _, row, *_ in _find(_Store(), "s2")] == ["2"]
        written.append(sum("INTO results" in statement for statement in statements))
    assert written == [1, 1]


def test_a_search_that_is_ended_finds_nothing() -> None:
    runs: Any = [SimpleNamespace(id="new", results="new")]
    store: Any = _Store()
    listed: Any = [("answers", "s2", TextPlace(("s2",)))]
    assert find_places(store, listed, runs, lambda: False) is None
    assert listed[0][2].run is None
