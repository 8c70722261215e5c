"""`grep`: words in what is stored."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from evalstore.planning.options import Location
from evalstore.results import grep
from evalstore.store import Store
from evalstore.store.rows.row_queries import ResultIds, ResultLeaf
from tests.builders import tree
from tests.interfaces.cli.conftest import Echo, Evalstore, Ran
from tests.interfaces.cli.run.test_run import edit
from tests.interfaces.cli.test_documents import schema_of
from tests.postgresql_server import PostgreSQLServer

ASKED = "# 👤\n\nQuestion?\n\n---\n\n~~~checks\n- {contains: nowhere, not: true}\n~~~\n"


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the database of the store, which is searched in another way in each."""
    if request.param == "postgresql":
        server: PostgreSQLServer = request.getfixturevalue("postgresql_server")
        monkeypatch.setenv("EVALSTORE_STORE", server.url())
    return str(request.param)


in_each_database = pytest.mark.usefixtures("database")


def hits(document: Any) -> list[tuple[str, str, str]]:
    return [(hit["kind"], hit["row"], hit["context"]) for hit in document["hits"]]


@in_each_database
def test_words_are_found_with_their_place(
    workspace: Path, documents: Any, evalstore: Evalstore
) -> None:
    documents("run")
    assert evalstore("grep", "cold") == Ran(
        0,
        "tests/weather.md\n"
        "  answer <short>  [city=Oslo]  scripted/one\n"
        "    Cold.\n"
        "  feedback <short>  [city=Oslo]  scripted/one\n"
        "    It is cold there.\n",
        "",
    )
    assert evalstore("grep", "cold", "--in", "feedback").stdout.count("\n") == 3
    assert evalstore("grep", "oslo", "--in", "answers") == Ran(1, "", "")
    tests = evalstore("grep", "--in", "tests", "warm").stdout
    assert tests.startswith("tests/weather.md\n  instructions <short>  [city=Oslo]  scripted/one\n")


@in_each_database
def test_all_words_must_be_in_a_text_and_the_last_may_be_a_beginning(
    workspace: Path, documents: Any
) -> None:
    documents("run")
    actual = ("judgement", "city=Oslo", "It is cold there.")
    assert hits(documents("grep", "there cold")) == [actual]
    assert hits(documents("grep", "there co")) == [actual]
    assert hits(documents("grep", "ther cold")) == []
    assert hits(documents("grep", '"cold there"')) == [actual]
    assert hits(documents("grep", '"there cold"')) == []


@in_each_database
@pytest.mark.parametrize(
    ("answer", "pattern", "marked"),
    [
        ("Das Café in der STRASSE", "cafe straße", ["Café", "STRASSE"]),
        ("Das Café in der Straße", "cafe STRASSE", ["Café", "Straße"]),
        ("今日は東京の天気が良い", "東京", ["東京"]),
        ("今日は東京の天気が良い", "京東", []),
        ("ประเทศไทยสวยงาม", "ไทย", ["ไทย"]),
        ("हिन्दी में उत्तर", "हिन्दी", ["हिन्दी"]),
        ("Fine \U0001f642!", "\U0001f642", ["\U0001f642"]),
        ("don't AND won't", "don't NEAR", []),
        ("don't AND won't", "don't and", ["don't", "AND"]),
        ("a*b NEAR(c) x:y -z ^w", "NEAR(c) x:y -z ^w a*b", ["a*b", "NEAR(c", "x:y", "z", "w"]),
        ('He said "yes" to it', 'said "yes', ["said", "yes"]),
        ("two lines\nof text \x1b[31m", "lines of", ["lines", "of"]),
    ],
)
def test_whatever_is_typed_is_words(
    echo: Echo, documents: Any, answer: str, pattern: str, marked: list[str]
) -> None:
    echo.reply = lambda _text: answer
    tree(Path.cwd(), {"tests/one.md": ASKED})
    documents("run")
    actual = documents("grep", pattern, "--in", "answers")["hits"]
    assert [[item["context"][a:b] for a, b in item["matches"]] for item in actual] == (
        [marked] if marked else []
    )


@pytest.mark.parametrize("pattern", ['"', "*", "()", " ", "'\"'", "-", "\u200d"])
def test_what_has_no_word_is_refused(workspace: Path, evalstore: Evalstore, pattern: str) -> None:
    evalstore("run")
    ran = evalstore("grep", "--", pattern)
    assert (ran.exit_code, ran.stderr.splitlines()[0].endswith("has no word to search for")) == (
        2,
        True,
    )


@in_each_database
def test_a_long_text_is_shown_around_the_words(echo: Echo, documents: Any) -> None:
    echo.reply = lambda _text: "before " * 50 + "needle " + "after " * 50
    tree(Path.cwd(), {"tests/one.md": ASKED})
    documents("run")
    (actual,) = documents("grep", "needle")["hits"]
    ((start, end),) = actual["matches"]
    assert actual["context"][start:end] == "needle"
    assert actual["context"].startswith("… before")
    assert actual["context"].endswith("after …")
    assert len(actual["context"]) < 140


def test_hostile_texts_stay_texts(echo: Echo, evalstore: Evalstore) -> None:
    echo.reply = lambda _text: "[bold]\x1b[31m needle \u202e"
    tree(Path.cwd(), {"tests/one.md": ASKED})
    evalstore("run")
    assert evalstore("grep", "needle").stdout.endswith("[bold]\\x1b[31m needle \\u202e\n")


def test_a_damaged_index_is_made_anew(workspace: Path, documents: Any) -> None:
    documents("run")
    before = documents("grep", "cold")
    index = workspace / ".evalstore/search.db"
    for damage in (b"", b"no database", index.read_bytes()[:5000] + b"\xff" * 4000):
        index.write_bytes(damage)
        assert documents("grep", "cold") == before
    index.unlink()
    index.mkdir()
    assert documents("grep", "cold") == before


def test_a_store_that_comes_back_older_is_searched_as_it_is(
    workspace: Path, documents: Any
) -> None:
    documents("run")
    store = workspace / ".evalstore/store.db"
    shutil.copy(store, workspace / "copy.db")
    tree(workspace, {"tests/new.md": "# 👤\n\nHow is Bergen?\n\n---\n\nIt is warm.\n"})
    documents("run")
    assert len(documents("grep", "bergen")["hits"]) == 1
    for name in ("store.db", "store.db-wal", "store.db-shm"):
        (workspace / ".evalstore" / name).unlink(missing_ok=True)
    shutil.copy(workspace / "copy.db", store)
    assert documents("grep", "bergen")["hits"] == []
    assert len(documents("grep", "cold")["hits"]) == 2


@in_each_database
def test_the_document_has_its_shape(workspace: Path, documents: Any) -> None:
    documents("run")
    for pattern in ("oslo", "cold", "warm", "nothing"):
        document = documents("grep", pattern)
        jsonschema.Draft202012Validator(schema_of(["grep"])).validate(document)


@in_each_database
def test_options_of_other_greps(workspace: Path, evalstore: Evalstore, documents: Any) -> None:
    """Case is ignored anyway; `-k` selects cases as elsewhere, `-l` names files."""
    documents("run")
    assert evalstore("grep", "-i", "COLD") == evalstore("grep", "cold")
    assert evalstore("grep", "-l", "warm") == Ran(0, "tests/weather.md\n", "")
    rows = {hit["row"] for hit in documents("grep", "warm", "-k", "rome and not oslo")["hits"]}
    assert rows == {"city=Rome"}
    assert evalstore("grep", "warm", "-k", "nowhere") == Ran(1, "", "")
    assert evalstore("grep", "warm", "-k", "and").exit_code == 2


@in_each_database
def test_results_are_read_once_also_when_many_runs_have_them(
    workspace: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    evalstore("run")
    edit(workspace / "models/one.yaml", "Cold.", "Chilly.")
    edit(workspace / "tests/weather.md", "Oslo", "Bergen")
    for _ in range(3):
        evalstore("run")
    read: list[ResultLeaf] = []
    find_result_ids = Store.find_result_ids

    def count(store: Store, leaves: Iterable[ResultLeaf]) -> dict[str, list[ResultIds]]:
        read.extend(listed := list(leaves))
        return find_result_ids(store, listed)

    monkeypatch.setattr(Store, "find_result_ids", count)
    hits = evalstore("grep", "cold", "--in", "answers").stdout
    assert hits.startswith("tests/weather.md")
    assert len(read) == 2
    searcher = grep.Searcher(Location(workspace, store=os.environ.get("EVALSTORE_STORE")))
    texts = searcher.find("cold", 200, lambda _done, _all: True)
    assert len(read) == 4
    assert searcher.find("cold", 200, lambda _done, _all: True) == texts
    assert len(read) == 4
    evalstore("run", "--refresh")
    assert searcher.find("cold", 200, lambda _done, _all: True) == texts
    assert len(read) == 7


def test_who_may_only_read_a_store_searches_all_of_it(
    workspace: Path, evalstore: Evalstore, postgresql_server: PostgreSQLServer
) -> None:
    url = postgresql_server.url()
    reading = f"{url}&options=-c%20default_transaction_read_only%3Don"
    evalstore("--store", url, "run")
    found = evalstore("--store", reading, "grep", "cold")
    assert (found.exit_code, found.stderr) == (0, "")
    assert found.stdout.startswith("tests/weather.md")
    edit(workspace / "tests/weather.md", "How is", "Cold in")
    evalstore("--store", url, "run")
    assert evalstore("--store", reading, "grep", "cold").stdout.count("\n") > found.stdout.count(
        "\n"
    )


def test_answers_to_several_system_prompts_are_listed_with_these(
    echo: Echo, evalstore: Evalstore, documents: Any
) -> None:
    echo.reply = lambda _: "Same."
    test = f"---\nsystemPrompts: [brief, long]\n---\n{ASKED}"
    prompts = {"prompts/brief.md": "Be brief.", "prompts/long.md": "Be long."}
    tree(Path.cwd(), {"tests/a.md": test, **prompts})
    evalstore("run", "-q")
    first, second = (
        f"  answer <short>  ({name})  scripted/one\n    Same.\n" for name in ("brief", "long")
    )
    assert evalstore("grep", "same").stdout in (
        f"tests/a.md\n{first}{second}",
        f"tests/a.md\n{second}{first}",
    )
    assert not any("prompt" in hit for hit in documents("grep", "same")["hits"])
