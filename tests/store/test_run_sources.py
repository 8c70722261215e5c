"""Digests of test files: stored once for runs that have the same ones, and copied with them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from evalstore.core.runs import RunSources
from evalstore.store.records import iterate_references
from evalstore.store.results import SourcesReader, ensure_sources
from tests.test_runs import PLAIN

if TYPE_CHECKING:
    from evalstore.store import Store


def sources(number: int) -> RunSources:
    return RunSources({"tests/a.md": {"test": f"{number:012x}", "schema:a": "0" * 12}})


def test_equal_digests_are_one_node(store: Store) -> None:
    ids = [ensure_sources(store, sources(number)) for number in (1, 2, 1)]
    assert ids[0] == ids[2] != ids[1]
    assert store.find_present("nodes", map(bytes.fromhex, ids)) == {*map(bytes.fromhex, ids)}


def test_digests_are_found_for_any_number_of_runs(store: Store) -> None:
    runs = [replace(PLAIN, sources=ensure_sources(store, sources(each))) for each in range(30)]
    reader = SourcesReader(store)
    for _ in range(2):
        assert [reader.find(run) for run in runs] == [sources(each) for each in range(30)]


def test_a_run_without_digests_or_whose_digests_are_missing_has_none(store: Store) -> None:
    reader = SourcesReader(store)
    assert reader.find(replace(PLAIN, sources=None)) is None
    assert reader.find(replace(PLAIN, sources="0" * 32)) is None


def test_a_run_refers_to_its_digests() -> None:
    assert "0" * 32 in iterate_references("run", {"snapshot": "1" * 32, "sources": "0" * 32})
