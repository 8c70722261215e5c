"""Rows of long files are found by name as among all results, and few nodes are decoded."""

from __future__ import annotations

import random

import pytest

from evalstore.core.values import Case, CaseFile, Json
from evalstore.store import Store, results
from evalstore.store.contents import decode_content
from evalstore.store.results import RowResults, describe_cell, iterate_entries
from evalstore.store.trees import tree_nodes
from evalstore.store.trees.case_chunks import build_case_tree, build_results, collect
from tests.small_parts import store as store

pytestmark = pytest.mark.extended

ODD = ['a "b"', "back\\slash", 'x","row":"row 3', '"case":0', "é\n", "\\"]


def case_of(number: int, chance: random.Random) -> Case:
    """A case; keys and labels of some are equal or odd."""
    return Case(
        row=f"row {number}"
        if chance.random() < 0.7
        else chance.choice([*ODD, f"row {number % 7}"]),
        key=f"{chance.choice([number, number % 9]):016x}",
        tests=(f"{number:032x}",),
        evaluation=f"{7:032x}",
        tags=(),
        prompts=(None, f"{1:032x}")[: chance.choice([1, 2])],
    )


def store_results(store: Store, cases: list[Case], chance: random.Random) -> str:
    """Store results of the cases of a file; returns their leaf."""
    contents: dict[str, tuple[str, str]] = {}
    file = CaseFile(tuple(cases))
    root = build_case_tree(file, collect(contents))
    store.ensure_versions(contents, {})
    described: list[Json] = [
        describe_cell(number, prompt, model, 1, chance.choice(["pass", "fail"]), None, [], [])
        for number, case in enumerate(cases)
        for prompt in range(len(case.prompts))
        for model in ("a", "b")
        if chance.random() < 0.9
    ]
    nodes: dict[str, tuple[str, str]] = {}
    leaves = build_results(
        {"t": described}, {"t": file}, {"t": root}, store.load_cases, collect(nodes)
    )
    store.ensure_versions(nodes, {})
    return leaves["t"]


@pytest.mark.parametrize("most", [50, 10_000])
@pytest.mark.parametrize("seed", range(6))
def test_results_are_found_by_name_as_among_all(
    store: Store, seed: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(results, "_MOST_KEPT", most)
    chance = random.Random(seed)
    sizes = {"t/long.md": 300, "t/middle.md": 90, "t/short.md": 5}
    entries = {
        path: store_results(store, [case_of(n, chance) for n in range(size)], chance)
        for path, size in sizes.items()
    }
    every = {
        path: [cell for batch in iterate_entries(store, {path: leaf}) for cell in batch]
        for path, leaf in entries.items()
    }
    rows = RowResults(store)
    for _ in range(30):
        names = {
            path: {
                name
                for result, _ in chance.sample(every[path], chance.randrange(4))
                for name in (result.key, result.row)
            }
            | {*chance.sample([*ODD, "no such row"], 1)}
            for path in chance.sample(list(entries), chance.randrange(1, 4))
        }
        found = rows.find({path: entries[path] for path in names}, names)
        assert found.keys() == names.keys()
        for path, cells in found.items():
            expected, actual = (
                [cell for cell in listed if not names[path].isdisjoint((cell[0].key, cell[0].row))]
                for listed in (every[path], cells.cells)
            )
            assert actual == expected
            assert cells.total == len(every[path])


def test_few_nodes_are_decoded_for_a_row(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(1)
    cases = [
        Case(f"row {n}", f"{n:016x}", (f"{n:032x}",), f"{7:032x}", (), (None,))
        for n in range(2_000)
    ]
    leaf = store_results(store, cases, chance)
    rows = RowResults(store)
    rows.find({"t": leaf}, {"t": ["row 0"]})
    decoded: list[str] = []

    def count(table: str, id: str, *rest: Json, **options: Json) -> Json:
        decoded.append(id)
        return decode_content(table, id, *rest, **options)

    monkeypatch.setattr(tree_nodes, "decode_content", count)
    for number in (1_000, 1_000, 1_500):
        found = rows.find({"t": leaf}, {"t": [f"row {number}"]})["t"]
        assert f"row {number}" in {result.row for result, _ in found.cells}
    assert 0 < len(decoded) <= 2 * 2  # the results and the cases of two nodes
