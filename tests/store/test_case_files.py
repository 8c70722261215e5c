"""Trees of cases that do not fit together are damage, named before much is read."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import nullcontext

import pytest

from evalstore.core import hashing
from evalstore.core.errors import StoreError
from evalstore.core.hashing import canonical_json
from evalstore.core.values import Case, CaseFile, Json
from evalstore.store import Store
from evalstore.store.results import iterate_entries, load_whole, read_cells
from evalstore.store.trees.case_chunks import SCHEME, build_case_tree, build_results, collect

FILE = CaseFile(
    tuple(
        Case(f"row {number}", hashing.row_key({"": number}), ("0" * 32,), None, (), (None,))
        for number in range(6_000)
    )
)
CELLS = [{"case": number, "model": "m"} for number in range(6_000)]
Change = Callable[[Json], None]


@pytest.fixture(scope="module")
def built() -> tuple[str, str, dict[str, Json]]:
    """The ids of the cases and results of a long file, and all nodes."""
    contents: dict[str, tuple[str, str]] = {}
    keep = collect(contents)
    root = build_case_tree(FILE, keep)

    def load(ids: object) -> dict[str, Json]:
        return {id: json.loads(contents[id][1]) for id in ids}  # type: ignore[attr-defined]

    results = build_results({"t": CELLS}, {"t": FILE}, {"t": root}, load, keep)["t"]
    return root, results, load(contents)


def put(store: Store, contents: list[Json]) -> list[str]:
    """Store contents; returns their ids."""
    identified = [(*hashing.identify(content), content["kind"]) for content in contents]
    store.ensure_versions({id: (kind, text) for id, text, kind in identified})
    return [id for id, _, _ in identified]


def test_a_long_file_is_read_from_the_store(
    store: Store, built: tuple[str, str, dict[str, Json]]
) -> None:
    root, results, nodes = built
    put(store, list(nodes.values()))
    assert store.load_case_files([root])[root] == FILE
    entries = {"t": results}
    found = [result for batch in iterate_entries(store, entries) for result, _ in batch]
    assert [(result.row, result.model) for result in found] == [
        (case.row, "m") for case in FILE.cases
    ]
    described = json.loads(canonical_json(hashing.describe_case_file(FILE)))
    assert load_whole(store, root, nodes[root]) == {**described, "cases": []}
    whole = load_whole(store, results, nodes[results])
    assert whole == hashing.describe("results", cases=root, cells=CELLS)


# Nodes are compared after they were read.
@pytest.mark.parametrize("location", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda node: node["counts"].pop(), "how many cases"),
        (lambda node: node["counts"].append(1), "how many cases"),
        (lambda node: node["counts"].__setitem__(0, node["counts"][0] + 1), "not the part"),
        (lambda node: node.__setitem__("level", 1), "how many cases"),
        (lambda node: node.__setitem__("level", 3), "not the part"),
        (lambda node: node["parts"].__setitem__(0, "0" * 32), "it has no node"),
        (lambda node: node["parts"].__setitem__(0, "x" * 32), "not an id"),
        (lambda node: node.__setitem__("parts", node["parts"][::-1]), "not the part"),
    ],
)
def test_a_node_that_does_not_fit_its_parts_is_named(
    store: Store, built: tuple[str, str, dict[str, Json]], change: Change, words: str
) -> None:
    root, results, nodes = built
    forged = json.loads(json.dumps(nodes[root]))
    change(forged)
    put(store, list(nodes.values()))
    [id] = put(store, [forged])
    with pytest.raises(StoreError, match=words):
        list(store.load_case_files([id])[id].cases)
    [other] = put(store, [{**nodes[results], "cases": id}])
    if words == "how many cases":
        # Each node with results names its own cases.
        found = [cell for batch in iterate_entries(store, {"t": other}) for cell in batch]
        assert tuple(case for _, case in found) == FILE.cases


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (
            {"kind": "cases", "scheme": SCHEME, "level": 1, "parts": [], "counts": []},
            "not what a cases has",
        ),
        (
            {"kind": "cases", "scheme": SCHEME, "level": 1, "parts": ["0" * 32] * 129}
            | {"counts": [1] * 129},
            "not what a cases has",
        ),
        (
            {"kind": "cases", "scheme": SCHEME, "level": 17, "parts": ["0" * 32], "counts": [1]},
            "not what a cases has",
        ),
        ({"kind": "cases", "scheme": 3, "cases": []}, "scheme"),
    ],
)
def test_a_node_of_another_shape_is_refused(store: Store, content: Json, words: str) -> None:
    [id] = put(store, [content])
    with pytest.raises(StoreError, match=words):
        store.load_case_files([id])


def test_a_part_that_says_it_has_very_many_cases_is_not_read(store: Store) -> None:
    leaf = hashing.describe_case_file(CaseFile(FILE.cases[:200]))
    [part] = put(store, [leaf])
    root = {"kind": "cases", "scheme": SCHEME, "level": 1, "parts": [part], "counts": [200]}
    [id] = put(store, [root])
    with pytest.raises(StoreError, match="how many cases"):
        store.load_case_files([id])


def test_a_node_whose_level_does_not_match_its_parent_is_named(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def tree(level: int) -> dict[str, Json]:
        return {"b" * 32: {"scheme": SCHEME, "level": level, "parts": [], "cases": "", "cells": []}}

    message = "row b{32} of the table 'nodes': its level does not match its parent"
    for level, is_damage in ((1, False), (2, True), (3, True)):
        monkeypatch.setattr(
            store, "load_leaves", lambda ids, level=level: tree(level) if [*ids] else {}
        )
        contents = {"a" * 32: {"scheme": SCHEME, "level": 2, "parts": ["b" * 32]}}
        with pytest.raises(StoreError, match=message) if is_damage else nullcontext():
            assert store.list_leaves([("tests/a.md", "a" * 32)], contents) == []
    with pytest.raises(StoreError, match=message):
        read_cells(store, [("tests/a.md", "b" * 32)], tree(1))
