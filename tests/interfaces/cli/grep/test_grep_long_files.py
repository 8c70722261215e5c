"""Texts of files with many rows: found where they are, and few of the results are decoded."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from evalstore.core import batches
from evalstore.core.errors import NO, OK
from evalstore.interfaces.cli import progress
from evalstore.interfaces.cli.commands import queries as command
from evalstore.planning.options import Location
from evalstore.results import grep as operation
from evalstore.results import grep as text_places
from evalstore.results.grep import ListedText, list_documents
from evalstore.store import Store
from evalstore.store.results import read_results
from evalstore.store.rows.row_queries import ResultIds, ResultLeaf
from evalstore.store.search.index import Kind, SearchIndex, load_texts
from tests.builders import tree
from tests.interfaces.cli.conftest import Evalstore
from tests.interfaces.cli.long_files import CHECK, CHECKED, JUDGE, ONE, ROWS, TWO, treat_as_long
from tests.interfaces.cli.run.test_run import edit
from tests.postgresql_server import PostgreSQLServer

pytestmark = pytest.mark.extended

WORDS = ("oslo", "rome", "land 57", "land 1", "judge", "nothing", "capital", "where land 14")


@pytest.fixture
def long(workspace: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace with a long file and a short one after several runs; some answers are missing."""
    treat_as_long(monkeypatch)
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
def test_places_are_those_of_the_newest_results_with_the_texts(documents: Any, long: Path) -> None:
    places: dict[str, tuple[str, str]] = {}
    with closing(Store.open(long / ".evalstore/store.db")) as store:
        for run in store.find_recent_runs():
            for result in read_results(store, run):
                for session in result.sessions:
                    places.setdefault(session, (result.file, result.row))
    for words in WORDS:
        hits = documents("grep", words)["hits"]
        assert bool(hits) == (words != "nothing")
        for hit in hits:
            assert (hit["file"], hit["row"]) in {places[id] for id in hit["sessions"]}


@pytest.mark.usefixtures("long")
def test_how_much_is_indexed_is_shown_if_it_takes_long(
    evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert evalstore("grep", "land 57").stderr == ""
    evalstore("run", "--refresh")
    monkeypatch.setattr(command, "_MANY", 1)
    monkeypatch.setattr(progress, "_PLAIN_SECONDS", -1)
    note, *_, last = evalstore("grep", "land 57").stderr.splitlines()
    total = note.removeprefix("note: adding ").removesuffix(" texts to the search index")
    assert last == f"indexing: {total} of {total} texts"
    assert evalstore("grep", "land 57").stderr == ""


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
    find_tree_leaves = Store.find_tree_leaves

    def list_some(index: SearchIndex, documents: Sequence[tuple[Kind, str]]) -> list[ListedText]:
        sizes.append(len(documents))
        return list_documents(index, documents)

    def find(store: Store, tree: str) -> list[ResultLeaf]:
        trees.append(tree)
        return find_tree_leaves(store, tree)

    monkeypatch.setattr(text_places, "list_documents", list_some)
    monkeypatch.setattr(Store, "find_tree_leaves", find)
    monkeypatch.setattr(batches, "SIZE", 13)
    monkeypatch.setattr(batches, "SMALL_SIZE", 2)
    assert [evalstore(*command) for command in commands] == whole
    assert max(sizes) == 13
    assert len(sizes) > 3 * len(commands)
    assert len(trees) <= 3 * len(commands)  # each command reads each run once
    assert [ran.exit_code for ran in whole[-3:]] == [NO, OK, OK]
    assert whole[1].stdout == "tests/lands.md\ntests/weather.md\n"
    assert len(whole[0].stdout.splitlines()) > 250


@pytest.mark.usefixtures("long")
def test_results_that_a_newer_run_has_in_the_same_part_of_a_file_are_not_read_again(
    workspace: Path, evalstore: Evalstore, documents: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    evalstore("run")
    edit(workspace / "tests/data.jsonl", '"land 15"', '"realm 15"')
    evalstore("run")
    read: list[ResultIds] = []
    find_result_ids = Store.find_result_ids

    def find(store: Store, leaves: Iterable[ResultLeaf]) -> dict[str, list[ResultIds]]:
        found = find_result_ids(store, leaves)
        read.extend(result for results in found.values() for result in results)
        return found

    monkeypatch.setattr(Store, "find_result_ids", find)
    hits = documents("grep", "where", "--in", "tests")["hits"]
    places = [hit["row"] for hit in hits if hit["file"] == "tests/lands.md"]
    assert {"country=land 15", "country=realm 15"} <= {place.split(",")[0] for place in places}
    assert 2 * 75 < len(read) < 3 * 75


def test_few_texts_are_read_before_the_first_is_there(
    long: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "SMALL_SIZE", 5)
    read: list[int] = []

    def count(store: Store, kind: Kind, ids: Sequence[str]) -> dict[str, str]:
        read.append(len(ids))
        return load_texts(store, kind, ids)

    monkeypatch.setattr(operation, "load_texts", count)
    found = operation.iterate_hits(Location(long), "oslo")
    first = next(found)
    assert sum(read) == 5
    assert [first, *found] == [*operation.iterate_hits(Location(long), "oslo")]
    assert sum(read) > 250
