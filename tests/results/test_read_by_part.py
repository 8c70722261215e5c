"""What is read part by part is what is found in a list of all results."""

from __future__ import annotations

import random
from collections import Counter
from itertools import chain

import pytest

from evalstore.core.runs import Run
from evalstore.core.values import URGENCY, Case, CaseFile, Json, Result, Verdict
from evalstore.results.log.log import count_leaves
from evalstore.results.show.show import find_urgent_results, result_to_json
from evalstore.store import Store
from evalstore.store.results import describe_cell, iterate_entries
from evalstore.store.trees.case_chunks import build_case_tree, build_results, collect
from evalstore.store.trees.tree_nodes import build_tree
from tests.small_parts import store as store

pytestmark = pytest.mark.extended

VERDICTS: list[Verdict | None] = ["pass", "fail", "undecided", "error", None]


def case_of(number: int, prompts: tuple[str | None, ...]) -> Case:
    return Case(
        row=f"row {number}",
        key=f"{number:016x}",
        tests=(f"{number:032x}",),
        evaluation=f"{7:032x}" if number % 10 else None,
        tags=(),
        prompts=prompts,
    )


Cells = dict[tuple[int, int, str], Verdict | None]
"""Verdicts by number of the case and of its prompt, and candidate."""


def store_results(store: Store, cases: list[Case], cells: Cells) -> str:
    """Store the results of a file; returns their leaf."""
    contents: dict[str, tuple[str, str]] = {}
    file = CaseFile(tuple(cases))
    root = build_case_tree(file, collect(contents))
    store.ensure_versions(contents, {})
    numbers = {case.row: number for number, case in enumerate(cases)}
    described: list[Json] = [
        describe_cell(numbers[f"row {number}"], prompt, model, 1, verdict, None, [], [])
        for (number, prompt, model), verdict in sorted(cells.items())
        if f"row {number}" in numbers
    ]
    nodes: dict[str, tuple[str, str]] = {}
    described.sort(key=lambda cell: cell["case"])
    leaves = build_results(
        {"t": described}, {"t": file}, {"t": root}, store.load_cases, collect(nodes)
    )
    store.ensure_versions(nodes, {})
    return leaves["t"]


def draw_cells(chance: random.Random, models: list[str], prompts: int) -> Cells:
    weights = chance.choice([[1, 0, 0, 0, 0], [90, 5, 1, 1, 3], [20, 20, 20, 20, 20]])
    return {
        (number, prompt, model): chance.choices(VERDICTS, weights)[0]
        for number in range(220)
        for prompt in range(prompts)
        for model in models
    }


@pytest.mark.parametrize("seed", range(8))
def test_verdicts_are_counted_as_in_a_list_of_all(store: Store, seed: int) -> None:
    chance = random.Random(seed)
    models = chance.choice([["a"], ["a", "b"]])
    prompts: tuple[str | None, ...] = chance.choice([(None,), (f"{1:032x}", f"{2:032x}")])
    cells = draw_cells(chance, models, len(prompts))
    cases = [case_of(number, prompts) for number in range(200)]
    drawn: list[str] = []
    for _ in range(12):
        edit = chance.randrange(6)
        places = list(cells)
        if edit == 0:
            cells[chance.choice(places)] = chance.choice(VERDICTS)
        elif edit == 1:
            cases.insert(chance.randrange(len(cases)), cases.pop(chance.randrange(len(cases))))
        elif edit == 2 and len(cases) < 220:
            cases.append(case_of(200 + len(cases) % 20, prompts))
            cases = list({case.row: case for case in cases}.values())
        elif edit == 3:
            cases.pop(chance.randrange(len(cases)))
        some = chance.choice([1, 1, 1, 0.05]) if drawn else chance.choice([1, 0.3])
        kept = {place: word for place, word in cells.items() if chance.random() < some}
        if edit == 4 and drawn:
            drawn.append(chance.choice(drawn))
            continue
        drawn.append(store_results(store, cases, kept))
    counts = count_leaves(store, set(drawn))
    for leaf in set(drawn):
        read = chain.from_iterable(iterate_entries(store, {"t": leaf}))
        assert counts[leaf] == Counter((result.model, result.verdict) for result, _ in read)


def run_with(store: Store, leaves: dict[str, str]) -> Run:
    root, contents = build_tree(leaves)
    store.ensure_versions(contents, {})
    return Run("0" * 32, 1, 2, "complete", root, root, 0, 0, 0, {})


@pytest.mark.parametrize("seed", range(6))
def test_the_most_urgent_results_are_the_first_of_all_by_urgency(store: Store, seed: int) -> None:
    chance = random.Random(seed)
    leaves: dict[str, str] = {}
    every: list[Result] = []
    for path in ("tests/a.md", "tests/b.md", "tests/c.md"):
        prompts: tuple[str | None, ...] = chance.choice([(None,), (f"{1:032x}", f"{2:032x}")])
        cells = draw_cells(chance, chance.choice([["a"], ["b", "a"]]), len(prompts))
        cases = [case_of(number, prompts) for number in range(chance.choice([5, 60, 200]))]
        leaves[path] = store_results(store, cases, cells)
        for batch in iterate_entries(store, {path: leaves[path]}):
            every += [result for result, _ in batch]

    def urgency(result: Result) -> int:
        return URGENCY.index(result.verdict or ("pending" if result.is_missing else "answered"))

    run = run_with(store, leaves)
    for most in (1, 40, 5_000):
        shown, left_out = find_urgent_results(store, run, most)
        expected = sorted(every, key=urgency)[:most]
        asked: dict[tuple[str, str], set[str | None]] = {}
        for result in every:
            asked.setdefault((result.file, result.row), set()).add(result.prompt)
        assert [*shown] == [result_to_json(result) for result in expected]
        for document, has_several in shown.by_urgency():
            assert has_several == (len(asked[document["file"], document["row"]]) > 1)
        assert left_out == len(every) - len(shown)
