"""The results with a session are found as among all results."""

from __future__ import annotations

import random

import pytest

from evalstore.core import hashing
from evalstore.core.values import Case, CaseFile, Question, Reply, Session
from evalstore.store import Store
from evalstore.store.results import SessionResults, describe_cell, iterate_entries
from evalstore.store.trees.case_chunks import build_case_tree, build_results, collect
from evalstore.store.trees.tree_nodes import build_tree
from tests.small_parts import store as store

pytestmark = pytest.mark.extended

TESTS = [f"{number:032x}" for number in range(120)]
ODD = [",," + "a" * 30, "z" * 32, "G" * 32, "-" + "1" * 31, '"' + "," * 31]
"""Texts that are no ids."""


def store_sessions(store: Store) -> dict[str, list[str]]:
    """Store two answers to each test; returns their ids by test."""
    stored = {}
    for number, test in enumerate(TESTS):
        question = Question(test, None, "0" * 32, None)
        sessions = [Session(question, (Reply("Yes."),), number, nonce) for nonce in "ab"]
        named = [hashing.identify(hashing.describe_session(session)) for session in sessions]
        pairs = zip(sessions, named, strict=True)
        store.record({id: content for _, (id, content) in pairs})
        stored[test] = [id for id, _ in named]
    return stored


def store_tree(
    store: Store,
    sizes: dict[str, int],
    chance: random.Random,
    sessions: dict[str, list[str]],
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
        given = [chance.sample(sessions[test], chance.choice([0, 1, 2])) for test in TESTS[:size]]
        cells = [describe_cell(n, 0, "a", 1, "pass", None, ids, []) for n, ids in enumerate(given)]
        leaves |= build_results(
            {path: cells}, {path: file}, {path: root}, store.load_cases, collect(contents)
        )
    tree, nodes = build_tree(leaves)
    store.ensure_versions(contents | nodes, {})
    return tree, leaves


def test_results_with_a_session_are_found_as_among_all(store: Store) -> None:
    chance = random.Random(7)
    sizes = {"t/long.md": 120, "t/middle.md": 40, "t/short.md": 5, "t/one.md": 1}
    sessions = store_sessions(store)
    trees = [store_tree(store, sizes, chance, sessions) for _ in range(2)]
    every = {
        tree: [result for batch in iterate_entries(store, leaves) for result, _ in batch]
        for tree, leaves in trees
    }
    found = SessionResults(store)
    for session in [id for ids in sessions.values() for id in ids]:
        for tree, results in every.items():
            having = [result for result in results if session in result.sessions]
            assert found.find(tree, session) == having
    for session in (*ODD, "f" * 32):
        assert [found.find(tree, session) for tree in every] == [[], []]
