"""Texts of files with very many rows: found where they are, and few of the results are decoded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from pathlib import Path
from typing import Any

import pytest

from evalstore.cli import copy_progress
from evalstore.cli.commands import grep as command
from evalstore.operations import text_places
from evalstore.results import Result
from evalstore.store import Store, result_finder
from evalstore.store.result_finder import FoundResults, ResultFinder
from evalstore.store.results import iterate_entries
from evalstore.values import Case
from tests.builders import tree
from tests.cli.conftest import Evalstore
from tests.cli.long_files import CHECK, CHECKED, JUDGE, ONE, ROWS, TWO, treat_as_long
from tests.cli.test_run import edit

pytestmark = pytest.mark.extended

WORDS = ("oslo", "rome", "land 77", "land 1", "judge", "nothing", "capital", "where land 14")


@pytest.fixture
def long(workspace: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace with a long file and a short one after several runs; some answers are missing."""
    treat_as_long(monkeypatch)
    monkeypatch.setattr(result_finder, "_AT_ONCE", 7)
    tree(
        workspace,
        {
            "tests/weather.md": "# 👤\n\nHow is Oslo?\n\n---\n\nIt is a judge.\n",
            "tests/lands.md": f"{CHECKED}Is it the capital {{{{capital}}}}?\n\n{CHECK}",
            "tests/data.jsonl": ROWS,
            "models/one.yaml": ONE,
            "models/two.yaml": TWO,
            "models/judge.yaml": JUDGE,
            "evalstore.yaml": "candidates: [one, two]\nevaluators: [judge]\n",
        },
    )
    evalstore("run")
    edit(workspace / "tests/data.jsonl", '"land 14"', '"realm 14"')
    evalstore("run", "--limit", "20")
    edit(workspace / "models/one.yaml", "answer: Rome", "answer: Rome?")
    evalstore("run", "-k", "4")
    return workspace


@pytest.mark.usefixtures("long")
def test_places_are_those_that_are_found_among_all_results(
    documents: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = [documents("grep", words)["hits"] for words in WORDS]
    assert [bool(hits) for hits in found] == [words != "nothing" for words in WORDS]

    def find_all(_finder: ResultFinder, entries: Mapping[str, str]) -> FoundResults:
        return FoundResults(dict(entries), set())

    monkeypatch.setattr(ResultFinder, "find", find_all)
    assert [documents("grep", words)["hits"] for words in WORDS] == found


@pytest.mark.usefixtures("long")
def test_few_results_are_decoded_to_find_a_place(
    documents: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[Result] = []

    def count(
        store: Store, entries: Mapping[str, str], without: Set[str]
    ) -> Iterator[list[tuple[Result, Case]]]:
        for batch in iterate_entries(store, entries, without):
            read.extend(result for result, _ in batch)
            yield batch

    monkeypatch.setattr(text_places, "iterate_entries", count)
    (hit,) = documents("grep", "land 77", "--in", "tests")["hits"]
    assert hit["file"] == "tests/lands.md"
    assert 0 < len(read) < 60
    assert any(result.row == hit["row"] for result in read)


@pytest.mark.usefixtures("long")
def test_how_much_is_indexed_is_shown_if_it_takes_long(
    evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert evalstore("grep", "land 77").stderr == ""
    evalstore("run", "--refresh")
    monkeypatch.setattr(command, "_MANY", 1)
    monkeypatch.setattr(copy_progress, "PLAIN_SECONDS", -1)
    note, *_, last = evalstore("grep", "land 77").stderr.splitlines()
    total = note.removeprefix("note: adding ").removesuffix(" texts to the search index")
    assert last == f"indexing: {total} of {total} texts"
    assert evalstore("grep", "land 77").stderr == ""
