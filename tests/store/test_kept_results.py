"""Results that a command reads repeatedly are decoded once, and as many are kept as have room."""

from __future__ import annotations

import pytest

from evalstore.errors import StoreError
from evalstore.store import Store
from evalstore.store.case_chunks import build_case_tree, build_results, collect
from evalstore.store.kept_results import KeptResults
from evalstore.store.results import iterate_entries
from evalstore.values import Case, CaseFile, Json
from tests.store.test_case_files import FILE as LONG


def short_file(name: str) -> CaseFile:
    """A file with two cases."""
    rows = [(f"{name} {number}", f"{ord(name):015x}{number}") for number in range(2)]
    return CaseFile(tuple(Case(row, key, ("0" * 32,), None, (), (None,)) for row, key in rows))


def store_results(store: Store, files: dict[str, CaseFile]) -> dict[str, str]:
    """Store a result of each case; returns the leaves by path."""
    contents: dict[str, tuple[str, str]] = {}
    keep = collect(contents)
    roots = {path: build_case_tree(file, keep) for path, file in files.items()}
    store.ensure_versions(contents)
    cells: dict[str, list[Json]] = {
        path: [{"case": number, "model": "m"} for number in range(len(file.cases))]
        for path, file in files.items()
    }
    leaves = build_results(cells, files, roots, store.load_cases, keep)
    store.ensure_versions(contents)
    return dict(leaves)


def rows_of(store: Store, entries: dict[str, str]) -> list[tuple[str, str]]:
    """The file and the row of each result, in the order in which they are read."""
    cells = [cell for batch in iterate_entries(store, entries) for cell in batch]
    assert all(result.row == case.row for result, case in cells)
    return [(result.file, result.row) for result, _ in cells]


def forget_nodes(store: Store) -> None:
    """Remove all nodes from a store behind its back."""
    with store.writing() as connection:
        connection.execute("DELETE FROM nodes")


@pytest.mark.parametrize("files", [{name: short_file(name) for name in "ab"}, {"a": LONG}])
def test_kept_results_are_not_read_again(store: Store, files: dict[str, CaseFile]) -> None:
    leaves = store_results(store, files)
    plain = rows_of(store, leaves)
    with store.keeping_results():
        assert rows_of(store, leaves) == plain
        forget_nodes(store)
        assert rows_of(store, leaves) == plain
    with pytest.raises(StoreError):
        rows_of(store, leaves)


def test_kept_cases_are_not_read_again(store: Store) -> None:
    files = {"a": short_file("a"), "b": short_file("b")}
    contents: dict[str, tuple[str, str]] = {}
    nodes = [build_case_tree(file, collect(contents)) for file in files.values()]
    store.ensure_versions(contents)
    with store.keeping_results():
        assert store.load_case_files(nodes[:1]) == {nodes[0]: files["a"]}
        assert store.load_case_files(nodes) == dict(zip(nodes, files.values(), strict=True))
        forget_nodes(store)
        assert store.load_case_files(nodes) == dict(zip(nodes, files.values(), strict=True))
    with pytest.raises(StoreError):
        store.load_case_files(nodes)


def test_what_is_kept_and_what_is_read_stay_in_order(store: Store) -> None:
    leaves = store_results(store, {name: short_file(name) for name in "abcdef"})
    plain = rows_of(store, leaves)
    with store.keeping_results():
        rows_of(store, {name: leaves[name] for name in "bce"})
        assert rows_of(store, leaves) == plain


def test_a_file_without_room_is_read_again(store: Store) -> None:
    leaves = store_results(store, {"a": short_file("a"), "b": LONG, "c": short_file("c")})
    plain = rows_of(store, leaves)
    with store.keeping_results():
        store.kept = kept = KeptResults(most=100)
        assert rows_of(store, leaves) == plain
        assert kept.cells("b", leaves["b"]) is None
        assert rows_of(store, leaves) == plain
        forget_nodes(store)
        with pytest.raises(StoreError):
            rows_of(store, leaves)


def test_there_is_room_for_the_first_results() -> None:
    kept = KeptResults(most=3)
    file = short_file("a")
    kept.add_file("1", file)
    kept.add_file("2", file)
    assert kept.files(["1", "2"]) == {"1": file}
    kept.add_cells("a", "1", [])
    assert kept.cells("a", "1") == []
    assert kept.room == 3


def test_a_damaged_node_is_an_error_also_while_results_are_kept(store: Store) -> None:
    leaves = store_results(store, {"a": short_file("a")})
    with store.writing() as connection:
        connection.execute("UPDATE nodes SET content = replace(content, 'a 1', 'a 7')")
    with store.keeping_results(), pytest.raises(StoreError, match="does not match its id"):
        rows_of(store, leaves)
