"""Texts of files with many rows: found where they are, and few of the results are decoded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Any

import pytest

from evalstore.cli import copy_progress
from evalstore.cli.commands import grep as command
from evalstore.errors import NO, OK
from evalstore.files import temporary_list
from evalstore.operations import grep as operation
from evalstore.operations import text_places
from evalstore.operations.text_places import ListedText, list_documents
from evalstore.planning.options import Location
from evalstore.results import Result
from evalstore.store import Store, result_finder
from evalstore.store.path_trees import Load, read_tree
from evalstore.store.result_finder import FoundResults, ResultFinder
from evalstore.store.results import iterate_entries
from evalstore.store.search_index import SearchIndex
from evalstore.store.search_texts import Kind, load_texts
from evalstore.values import Case
from tests.builders import tree
from tests.cli.conftest import Evalstore
from tests.cli.long_files import CHECK, CHECKED, JUDGE, ONE, ROWS, TWO, treat_as_long
from tests.cli.test_run import edit
from tests.postgresql_server import PostgreSQLServer

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


def _counting(read: list[Result]) -> Callable[..., Iterator[list[tuple[Result, Case]]]]:
    """Return what reads results, and adds them to a list."""

    def count(
        store: Store, entries: Mapping[str, str], without: Set[str]
    ) -> Iterator[list[tuple[Result, Case]]]:
        for batch in iterate_entries(store, entries, without):
            read.extend(result for result, _ in batch)
            yield batch

    return count


@pytest.mark.usefixtures("long")
def test_few_results_are_decoded_to_find_a_place(
    documents: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[Result] = []
    monkeypatch.setattr(text_places, "iterate_entries", _counting(read))
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


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_texts_placed_in_batches_are_those_of_one(
    request: pytest.FixtureRequest,
    evalstore: Evalstore,
    monkeypatch: pytest.MonkeyPatch,
    database: str,
) -> None:
    if database == "postgresql":
        server: PostgreSQLServer = request.getfixturevalue("postgresql_server")
        monkeypatch.setenv("EVALSTORE_STORE", server.url())
    request.getfixturevalue("long")
    options: tuple[tuple[str, ...], ...] = (
        *((), ("-l",), ("--json",), ("-k", "land 1"), ("--in", "tests"), ("--in", "feedback")),
        *(("-o", each) for each in ("jsonl", "csv", "md")),
    )
    commands = [("grep", "oslo", *each) for each in options]
    commands += [("grep", words) for words in WORDS]
    whole = [evalstore(*command) for command in commands]
    sizes: list[int] = []
    trees: list[str] = []

    def list_some(index: SearchIndex, documents: Sequence[tuple[Kind, str]]) -> list[ListedText]:
        sizes.append(len(documents))
        return list_documents(index, documents)

    def read(root: str, load: Load) -> dict[str, str]:
        trees.append(root)
        return read_tree(root, load)

    monkeypatch.setattr(text_places, "list_documents", list_some)
    monkeypatch.setattr(text_places, "read_tree", read)
    monkeypatch.setattr(text_places, "_AT_ONCE", 13)
    monkeypatch.setattr(operation, "_AT_ONCE", 5)
    monkeypatch.setattr(temporary_list, "_SORTED_AT_ONCE", 40)
    monkeypatch.setattr(temporary_list, "_MERGED_AT_ONCE", 7)
    monkeypatch.setattr(temporary_list, "_IN_MEMORY", 0)
    assert [evalstore(*command) for command in commands] == whole
    assert max(sizes) == 13
    assert len(sizes) > 3 * len(commands)
    assert len(trees) <= 3 * len(commands)  # each command reads each run once
    assert [ran.exit_code for ran in whole[-3:]] == [NO, OK, OK]
    assert whole[1].stdout == "tests/lands.md\ntests/weather.md\n"
    assert len(whole[0].stdout.splitlines()) > 500


@pytest.mark.usefixtures("long")
def test_results_that_a_newer_run_has_in_the_same_part_of_a_file_are_not_read_again(
    workspace: Path, evalstore: Evalstore, documents: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    evalstore("run")
    edit(workspace / "tests/data.jsonl", '"land 15"', '"realm 15"')
    evalstore("run")
    read: list[Result] = []
    monkeypatch.setattr(text_places, "iterate_entries", _counting(read))
    hits = documents("grep", "where", "--in", "tests")["hits"]
    places = [hit["row"] for hit in hits if hit["file"] == "tests/lands.md"]
    assert {"country=land 15", "country=realm 15"} <= {place.split(",")[0] for place in places}
    assert 2 * 150 < len(read) < 3 * 150


def test_few_texts_are_read_before_the_first_is_there(
    long: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operation, "_AT_ONCE", 5)
    read: list[int] = []

    def count(store: Store, kind: Kind, ids: Sequence[str]) -> dict[str, str]:
        read.append(len(ids))
        return load_texts(store, kind, ids)

    monkeypatch.setattr(operation, "load_texts", count)
    found = operation.iterate_hits(Location(long), "oslo")
    first = next(found)
    assert sum(read) == 5
    assert [first, *found] == [*operation.iterate_hits(Location(long), "oslo")]
    assert sum(read) > 500
