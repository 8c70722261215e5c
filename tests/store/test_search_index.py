"""The search index: what is in it, and what it stands."""

from __future__ import annotations

import multiprocessing
import os
import sqlite3
from collections.abc import Iterator, Sequence, Set
from contextlib import closing
from pathlib import Path

import pytest

from evalstore.core import batches, hashing
from evalstore.core.values import EvaluationVersion, Question, Reply, Session, Text, ToolCall
from evalstore.store import Store
from evalstore.store.location import read_location
from evalstore.store.search import index as search_index
from evalstore.store.search.index import KINDS, SearchIndex, find_word_places, split_words
from tests.store.sessions import a_test, an_evaluation, session_row, versions

MODEL = "f" * 32
CHECKS = ({"type": "json", "revision": 2},)


def add(store: Store, *texts: str, started: int = 1) -> list[str]:
    """Store a session for each text; returns their ids."""
    ids = []
    for number, text in enumerate(texts):
        question = Question("a" * 32, None, MODEL, 0)
        id, _, content = session_row(
            Session(question, (Reply(text),), started, nonce=f"{text} {number}")
        )
        store.record({id: content})
        ids.append(id)
    return ids


def open_index(folder: Path) -> SearchIndex:
    """Return the index that a search uses."""
    return SearchIndex.open(folder / "search.db")


@pytest.fixture
def index(tmp_path: Path) -> Iterator[SearchIndex]:
    """Return a new index."""
    with closing(open_index(tmp_path)) as opened:
        yield opened


def find(index: SearchIndex, text: str) -> Set[str]:
    found = index.find_sessions(split_words(text))
    assert found is not None
    return found


def test_words_are_found_in_all_that_belongs_to_an_answer(store: Store, index: SearchIndex) -> None:
    [(test, content)] = a_test("How is Oslo?").items()
    store.ensure_versions({test: content})
    turns = (Reply("first turn"), Reply(None, (ToolCall("look_up", {"place": "Bergen"}),)))
    id, _, text = session_row(Session(Question(test, None, MODEL, 0), turns, 1, nonce="n"))
    judged = an_evaluation(id, feedback="It is too cold.")
    store.record({id: text}, {judged[0]: judged[2]})
    index.update(store)
    for words in ("oslo", "first", "look_up", "bergen", "too cold", "oslo bergen cold", "bER"):
        assert find(index, words) == {id}, words
    assert find(index, "bergen nowhere") == find(index, "") == find(index, '"') == frozenset()
    assert [*index.find_documents(("o",), KINDS)] == [("tests", test)]
    assert [*index.find_documents(("too", "cold"), ("feedback",))] == [("feedback", judged[0])]
    assert [*index.find_documents(("too", "cold"), ("answers",))] == []
    assert index.sessions_of([judged[0], test]) == {test: (id,), judged[0]: (id,)}
    assert index.sessions_of(["9" * 32]) == {}


def test_only_what_is_new_is_taken_in_whenever_it_was_made(
    store: Store, index: SearchIndex
) -> None:
    taken: list[tuple[int, int]] = []

    def report(done: int, total: int) -> bool:
        taken.append((done, total))
        return True

    add(store, "one", "two", started=1_000)
    index.update(store, report)
    merged = add(store, "three", started=5)
    index.update(store, report)
    index.update(store, report)
    assert taken == [(0, 2), (2, 2), (0, 1), (1, 1)]
    assert find(index, "three") == set(merged)


def test_what_was_stopped_goes_on_where_it_was(
    store: Store, index: SearchIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search_index, "_BATCH", 2)
    monkeypatch.setattr(batches, "SIZE", 2)
    ids = add(store, *(f"number{n}" for n in range(7)))
    assert not index.update(store, lambda done, _total: done < 4)
    known = [n for n in range(7) if find(index, f"number{n}")]
    assert len(known) == 4
    assert not index.update(store, lambda _done, total: total != 3)
    assert index.update(store)
    assert [find(index, f"number{n}") for n in range(7)] == [{id} for id in ids]


def test_judgements_without_words_cost_nothing_but_link_their_instructions(
    file_store: Store, tmp_path: Path
) -> None:
    store = file_store
    [(by, content)] = versions(
        ("evaluation", hashing.describe_evaluation(EvaluationVersion((Text("Is it warm?"),))))
    ).items()
    [(mute, silent)] = versions(
        ("evaluation", hashing.describe_evaluation(EvaluationVersion((), CHECKS)))
    ).items()
    store.ensure_versions({by: content, mute: silent})
    first, second = add(store, "yes", "no")
    judged = [an_evaluation(first, evaluation=by), an_evaluation(second, evaluation=mute)]
    store.record({}, {id: text for id, _, text in judged})
    with closing(SearchIndex.open(tmp_path / "search.db")) as index:
        index.update(store)
        assert find(index, "is it warm") == {first}
        known = {row[0].hex() for row in index._connection.execute("SELECT id FROM documents")}
        assert known >= {by, first, second, judged[0][0]}
        assert known.isdisjoint({mute, judged[1][0]})


def test_instructions_that_are_stored_after_their_judgement_are_found_with_its_answer(
    store: Store, index: SearchIndex
) -> None:
    [(by, content)] = versions(
        ("evaluation", hashing.describe_evaluation(EvaluationVersion((Text("Is it warm?"),))))
    ).items()
    (session,) = add(store, "yes")
    id, _, text = an_evaluation(session, evaluation=by)
    store.record({}, {id: text})
    index.update(store)
    store.ensure_versions({by: content})
    index.update(store)
    assert find(index, "is it warm") == {session}


def test_one_index_has_the_texts_of_several_stores_and_each_once(
    file_store: Store, tmp_path: Path
) -> None:
    both = add(file_store, "one", "two")
    with (
        closing(Store.open(tmp_path / "other.db", create=True)) as other,
        closing(SearchIndex.open(tmp_path / "search.db")) as index,
    ):
        (third,) = add(other, "one")
        (fourth,) = add(other, "four")
        assert third == both[0]
        for store in (file_store, other, file_store, other):
            index.update(store)
        assert find(index, "one") == {third}
        assert find(index, "four") == {fourth}
        assert len(index.find_documents(("t",), KINDS)) == 1
        (row,) = index._connection.execute("SELECT count(*) FROM words_docsize").fetchall()
        assert row == (3,)


def test_long_texts_are_added_few_at_a_time(
    file_store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search_index, "_LARGEST_BATCH", 5_000)
    ids = add(file_store, *(f"number{number} {'word ' * 1_000}" for number in range(5)))
    seen: list[int] = []
    with closing(SearchIndex.open(tmp_path / "search.db")) as index:
        assert index.update(file_store, lambda done, _total: not seen.append(done))  # type: ignore[func-returns-value]
        assert seen == [0, 1, 2, 3, 4, 5]
        assert [find(index, f"number{number}") for number in range(5)] == [{id} for id in ids]


def _update(folder: str, location: str) -> None:
    search_index._BATCH = batches.SIZE = 7
    store = Store.open(read_location(location))
    open_index(Path(folder)).update(store)


def test_two_processes_make_one_index(store: Store, tmp_path: Path) -> None:
    ids = add(store, *(f"number{n}" for n in range(200)))
    context = multiprocessing.get_context("spawn")
    processes = [
        context.Process(target=_update, args=(str(tmp_path), store.path)) for _ in range(2)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0]
    index = open_index(tmp_path)
    assert find(index, "number") == set(ids)
    assert len(index.find_documents(("number",), KINDS)) == 200
    (row,) = index._connection.execute("SELECT count(*) FROM words_docsize").fetchall()
    assert row == (200,)


def test_an_index_of_another_format_is_made_anew(file_store: Store, tmp_path: Path) -> None:
    (id,) = add(file_store, "one")
    path = tmp_path / "search.db"
    SearchIndex.open(path).update(file_store)
    old = sqlite3.connect(path)
    old.execute("UPDATE identity SET text = 'search 1'")
    old.commit()
    old.close()
    index = SearchIndex.open(path)
    assert find(index, "one") == frozenset()
    index.update(file_store)
    assert find(index, "one") == {id}


def test_where_nothing_can_be_written_the_index_is_in_memory(
    file_store: Store, tmp_path: Path
) -> None:
    (id,) = add(file_store, "one")
    (tmp_path / "no folder").write_text("")
    index = SearchIndex.open(tmp_path / "no folder" / "search.db")
    index.update(file_store)
    assert (index.path, set(find(index, "one"))) == ("", {id})


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_is_read_only_stays_as_it_is(file_store: Store, tmp_path: Path) -> None:
    (id,) = add(file_store, "one")
    folder = tmp_path / "closed"
    folder.mkdir(mode=0o500)
    index = SearchIndex.open(folder / "search.db")
    index.update(file_store)
    assert (index.path, set(find(index, "one"))) == ("", {id})
    assert not list(folder.iterdir())


def test_words_are_marked_where_they_stand() -> None:
    text = "Der Fluß ist kühl, der Fluss nicht: kühler!"
    marked = [text[a:b] for a, b in find_word_places(text, ("fluss", "kuhl"))]
    assert marked == ["Fluß", "kühl", "Fluss", "kühl"]
    assert find_word_places(text, ("luß", "hl")) == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("次の電車は14:05です。", ("14:05",)),
        ("次の電車は14:05です。", ("電車", "14:05")),
        ("乗車券ABCを買う", ("ABC", "買う")),
        ("价格是25元，退票免费。", ("25", "退票")),
        ("ราคา25บาท", ("25", "บาท")),
        ("서울역은14:05", ("14:05",)),
        ("ok🙂yes", ("ok", "yes")),
    ],
)
def test_words_are_marked_beside_characters_that_are_words_by_themselves(
    text: str, words: Sequence[str]
) -> None:
    assert [text[a:b] for a, b in find_word_places(text, words)] == [*words]
