"""The results with a session are found as among all results, also where ids begin alike."""

from __future__ import annotations

import random

import pytest

from evalstore.store import Store, session_results
from evalstore.store.case_chunks import build_case_tree, build_results, collect
from evalstore.store.path_trees import build_tree
from evalstore.store.results import describe_cell, iterate_entries
from evalstore.store.session_results import SessionResults
from evalstore.values import Case, CaseFile
from tests.small_parts import store as store

pytestmark = pytest.mark.extended

SESSIONS = [f"{number % 40:010x}{number:022x}" for number in range(120)]
"""Ids of sessions, of which three begin alike."""
ODD = [",," + "a" * 30, "z" * 32, "G" * 32, "-" + "1" * 31, '"' + "," * 31]
"""Texts that only a damaged node has in the place of ids."""


def store_tree(
    store: Store, sizes: dict[str, int], chance: random.Random
) -> tuple[str, dict[str, str]]:
    """Store the results of files with so many cases; returns the tree and its entries."""
    contents: dict[str, tuple[str, str]] = {}
    leaves: dict[str, str] = {}
    for path, size in sizes.items():
        file = CaseFile(
            tuple(
                Case(
                    row=f'"sessions":["{n:032x}"]',
                    key=f"{n:016x}",
                    tests=(f"{n:032x}",),
                    evaluation=None,
                    tags=(),
                    prompts=(None,),
                )
                for n in range(size)
            )
        )
        root = build_case_tree(file, collect(contents))
        store.ensure_versions(contents, {})
        given = [chance.sample([*SESSIONS, *ODD], chance.choice([0, 1, 2])) for _ in range(size)]
        cells = [describe_cell(n, 0, "a", 1, "pass", None, ids, []) for n, ids in enumerate(given)]
        leaves |= build_results(
            {path: cells}, {path: file}, {path: root}, store.load_cases, collect(contents)
        )
    tree, nodes = build_tree(leaves)
    store.ensure_versions(contents | nodes, {})
    return tree, leaves


@pytest.mark.parametrize("most", [1, 4_000_000])
def test_results_with_a_session_are_found_as_among_all(
    store: Store, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_results, "_MOST_KEPT", most)
    chance = random.Random(7)
    sizes = {"t/long.md": 300, "t/middle.md": 90, "t/short.md": 5, "t/one.md": 1}
    trees = [store_tree(store, sizes, chance) for _ in range(2)]
    every = {
        tree: [result for batch in iterate_entries(store, leaves) for result, _ in batch]
        for tree, leaves in trees
    }
    found = SessionResults(store)
    for session in (*SESSIONS, "f" * 32):
        for tree, results in every.items():
            having = [result for result in results if session in result.sessions]
            assert found.find(tree, session) == having
    for session in ODD:
        assert [found.find(tree, session) for tree in every] == [[], []]
