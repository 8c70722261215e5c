"""Trees of cases: equal files have equal ids, nodes are small, and an edited row costs a few."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from evalstore.core import hashing
from evalstore.core.batches import SMALL_SIZE
from evalstore.core.hashing import canonical_json
from evalstore.core.values import Case, CaseFile, Json
from evalstore.store.trees.case_chunks import (
    MAX_PART,
    MAX_UNDIVIDED,
    ResultBuilder,
    build_case_tree,
    build_results,
    collect,
    find_same,
    is_tree,
)
from evalstore.store.trees.tree_nodes import StoredCases, restore_case_files

Contents = dict[str, tuple[str, str]]


def case(number: int, text: str = "", **fields: object) -> Case:
    key = hashing.row_key({"number": number, "text": text})
    test = hashing.hash_bytes(f"{number}{text}".encode())
    known = {"evaluation": None, "tags": (), "prompts": (None,), **fields}
    return Case(row=f"row {number}", key=key, tests=(test,), **known)  # type: ignore[arg-type]


def file_of(numbers: Iterable[int]) -> CaseFile:
    return CaseFile(tuple(map(case, numbers)), attempts=2, evaluators=(), threshold=0.5, id="x")


def build(file: CaseFile) -> tuple[str, Contents]:
    contents: Contents = {}
    return build_case_tree(file, collect(contents)), contents


class Nodes:
    """Nodes in memory, and how many are read at a time."""

    def __init__(self, *groups: Contents) -> None:
        self.contents = {
            id: json.loads(content[1]) for all in groups for id, content in all.items()
        }
        self.most = 0
        self.read = 0
        self.loads = 0

    def load(self, ids: Iterable[str]) -> dict[str, Json]:
        listed = list(ids)
        self.most = max(self.most, len(listed))
        self.read += len(listed)
        self.loads += 1
        return {id: self.contents[id] for id in listed}


def read(root: str, nodes: Nodes) -> CaseFile:
    return restore_case_files(nodes.load([root]), nodes.load)[root]


def cells_of(file: CaseFile, case_numbers: Iterable[int] | None = None) -> list[Json]:
    numbers = range(len(file.cases)) if case_numbers is None else case_numbers
    return [
        {"case": number, "model": model, "verdict": "pass"}
        for number in numbers
        for model in ("one", "two")
    ]


def results(file: CaseFile, root: str, nodes: Nodes, cells: list[Json]) -> tuple[str, Contents]:
    contents: Contents = {}
    keep = collect(contents)
    roots = build_results({"t": cells}, {"t": file}, {"t": root}, nodes.load, keep)
    return roots["t"], contents


def read_cells(result: str, nodes: Nodes) -> list[Json]:
    content = nodes.contents[result]
    if "cells" in content:
        return [*content["cells"]]
    cells: list[Json] = []
    first = 0
    counts = nodes.contents[content["cases"]]["counts"]
    for part, count in zip(content["parts"], counts, strict=True):
        below = read_cells(part, nodes) if part else ()
        cells += [{**cell, "case": cell["case"] + first} for cell in below]
        first += count
    return cells


sizes = st.integers(1, 400)


@given(sizes)
def test_what_is_built_is_read(size: int) -> None:
    file = file_of(range(size))
    root, contents = build(file)
    assert read(root, Nodes(contents)) == file


@given(sizes, st.sets(st.integers(0, 399), min_size=1), st.lists(st.integers(0, 800)))
def test_results_are_built_in_any_batches(size: int, numbers: set[int], ends: list[int]) -> None:
    file = file_of(range(size))
    root, contents = build(file)
    nodes = Nodes(contents)
    cells = cells_of(file, sorted({number % size for number in numbers}))
    whole, built = results(file, root, nodes, cells)
    kept: Contents = {}
    builder = ResultBuilder(root, nodes.load if is_tree(file) else None, collect(kept))
    for start, end in pairwise([0, *sorted(ends), len(cells)]):
        builder.add(cells[start:end])
    assert (builder.finish(), kept) == (whole, built)
    assert read_cells(whole, Nodes(contents, built)) == cells


def test_a_builder_of_results_holds_those_of_one_part() -> None:
    file = file_of(range(2_000))
    root, contents = build(file)
    kept: Contents = {}
    builder = ResultBuilder(root, Nodes(contents).load, collect(kept))
    builder.add(cells_of(file, range(1_900)))
    described = [json.loads(content) for _, content in kept.values()]
    assert sum(len(description.get("cells", ())) for description in described) > 2 * (
        1_900 - MAX_PART
    )


def test_a_short_file_is_the_node_it_always_was() -> None:
    for size in (1, MAX_UNDIVIDED):
        file = file_of(range(size))
        root, contents = build(file)
        assert contents == {root: ("cases", canonical_json(described(file)))}
        assert root == hashing.identify(described(file))[0]


def described(file: CaseFile) -> Json:
    return hashing.describe_case_file(file)


def test_the_ids_of_long_files_stand_for_ever() -> None:
    assert build(file_of(range(65)))[0] == "22fbc7d66d7b75268cba0f6e7c83ae13"
    assert build(file_of(range(8_000)))[0] == "b46264541b324a39e314903b18a274af"


@given(sizes, st.randoms(use_true_random=False))
def test_results_are_read_as_they_were(size: int, random: object) -> None:
    file = file_of(range(size))
    root, contents = build(file)
    numbers = [n for n in range(size) if not n or random.random() < 0.3]  # type: ignore[attr-defined]
    cells = cells_of(file, numbers)
    nodes = Nodes(contents)
    result, more = results(file, root, nodes, cells)
    assert read_cells(result, Nodes(contents, more)) == cells


def test_a_very_long_file_is_read_part_by_part() -> None:
    file = file_of(range(8_000))
    root, contents = build(file)
    nodes = Nodes(contents)
    cases = read(root, nodes).cases
    assert (len(cases), nodes.read) == (8_000, 1)
    assert cases[5_432] == file.cases[5_432]
    assert cases[-1] == file.cases[-1]
    assert tuple(cases[5_000:5_010]) == file.cases[5_000:5_010]
    assert nodes.read < 500
    assert tuple(cases) == file.cases
    assert cases == file.cases
    assert file.cases == cases
    assert cases != file_of(range(1, 8_001)).cases
    assert nodes.most <= MAX_PART


def test_parts_of_neighbours_are_read_together() -> None:
    file = file_of(range(8_000))
    root, contents = build(file)
    nodes = Nodes(contents)
    cases = read(root, nodes).cases
    assert isinstance(cases, StoredCases)
    parts = len(list(cases.parts()))
    assert parts >= 5
    most = 2 + 2 * len(contents) / MAX_PART
    assert most < parts + 1
    for ways in (lambda: list(cases), lambda: list(cases.labels())):
        nodes.loads = 0
        ways()
        assert nodes.loads <= most
    nodes.loads = 0
    results(file, root, nodes, cells_of(file))
    assert nodes.loads == 2


def test_parts_of_several_files_are_read_together() -> None:
    files = [file_of(range(first, first + 90)) for first in range(0, 8_000, 100)]
    built = [build(file) for file in files]
    nodes = Nodes(*(contents for _, contents in built))
    roots = nodes.load(root for root, _ in built)
    nodes.loads, nodes.most = 0, 0
    restored = restore_case_files(roots, nodes.load)
    assert [restored[root] for root, _ in built] == files
    most = 1 + 2 * len(nodes.contents) / SMALL_SIZE
    assert nodes.loads <= most < len(files) / 2
    assert nodes.most <= SMALL_SIZE


def test_every_node_is_small() -> None:
    alike = [case(7)._replace(row=f"row {number}") for number in range(3_000)]
    for file in (file_of(range(8_000)), CaseFile(tuple(alike))):
        root, contents = build(file)
        result, more = results(file, root, Nodes(contents), cells_of(file))
        assert len(contents) > len(file.cases) / MAX_PART
        assert max(len(text) for _, text in (contents | more).values()) < 32 * 1024
        assert result in more


def test_an_edited_row_costs_a_few_nodes() -> None:
    before, edited = file_of(range(8_000)), list(file_of(range(8_000)).cases)
    edited[5_432] = case(5_432, "edited")
    for cases in (edited, edited[1:], [case(-1), *edited], edited[:6_000] + edited[6_001:]):
        after = replace(before, cases=tuple(cases))
        (was, old), (now, new) = build(before), build(after)
        was_results = results(before, was, Nodes(old), cells_of(before))[1]
        now_results = results(after, now, Nodes(new), cells_of(after))[1]
        added = {**new, **now_results}.keys() - {**old, **was_results}.keys()
        assert len(added) < 24
        assert sum(len({**new, **now_results}[id][1]) for id in added) < 100_000


def test_settings_of_a_file_cost_one_node() -> None:
    file = file_of(range(8_000))
    old, new = build(file)[1], build(replace(file, attempts=3))[1]
    assert len(new.keys() - old.keys()) == 1


def test_the_code_of_all_cases_is_in_the_root() -> None:
    cases = [case(number, code=("b",) if number == 7 else ("a",)) for number in range(100)]
    root, contents = build(CaseFile(tuple(cases)))
    assert json.loads(contents[root][1])["code"] == ["a", "b"]


def test_the_same_cases_are_found_whatever_their_node() -> None:
    file, other = file_of(range(70)), file_of(range(1, 71))
    old = hashing.identify(hashing.describe_case_file(file))[0]
    root, _ = build(file)
    assert root != old
    assert find_same(root, file, {"0": other, old: file}) == old
    assert find_same(root, file, {"0": other, root: file}) == root
    assert find_same(root, file, {"0": other}) is None
