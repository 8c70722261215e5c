"""The search index: what is in it, and what it stands."""

from __future__ import annotations

import multiprocessing
import os
import sqlite3
from pathlib import Path

import pytest

from evalstore.results import Session
from evalstore.store import Store
from evalstore.store import search_index as module
from evalstore.store.location import read_location
from evalstore.store.search_index import SearchIndex
from evalstore.store.search_words import find_word_places, split_words
from evalstore.values import Question, Reply, ToolCall
from tests.store.sessions import a_test, an_evaluation, session_row

MODEL = "f" * 32


def add(store: Store, *texts: str, started: int = 1) -> list[str]:
    """Store a session for each text; returns their ids."""
    ids = []
    for number, text in enumerate(texts):
        question = Question("a" * 32, None, MODEL, 0)
        id, session, content = session_row(
            Session(question, (Reply(text),), started, nonce=f"{text} {number}")
        )
        store.record({id: (session, content)})
        ids.append(id)
    return ids


def find(index: SearchIndex, text: str) -> frozenset[str]:
    return index.find_sessions(split_words(text))


def test_words_are_found_in_all_that_belongs_to_an_answer(store: Store, tmp_path: Path) -> None:
    [(test, content)] = a_test("How is Oslo?").items()
    store.ensure_versions({test: content})
    turns = (Reply("first turn"), Reply(None, (ToolCall("look_up", {"place": "Bergen"}),)))
    id, session, text = session_row(Session(Question(test, None, MODEL, 0), turns, 1, nonce="n"))
    judged = an_evaluation(id, feedback="It is too cold.")
    store.record({id: (session, text)}, {judged[0]: (judged[1], judged[2])})
    index = SearchIndex.open(tmp_path / "search.db")
    index.update(store)
    for words in ("oslo", "first", "look_up", "bergen", "too cold", "oslo bergen cold", "bER"):
        assert find(index, words) == {id}, words
    assert find(index, "bergen nowhere") == find(index, "") == find(index, '"') == frozenset()


def test_only_what_is_new_is_taken_in_whenever_it_was_made(store: Store, tmp_path: Path) -> None:
    index = SearchIndex.open(tmp_path / "search.db")
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
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_BATCH", 2)
    ids = add(store, *(f"number{n}" for n in range(7)))
    index = SearchIndex.open(tmp_path / "search.db")
    assert not index.update(store, lambda done, _total: done < 4)
    known = [n for n in range(7) if find(index, f"number{n}")]
    assert len(known) == 4
    assert not index.update(store, lambda _done, total: total != 3)
    assert index.update(store)
    assert [find(index, f"number{n}") for n in range(7)] == [{id} for id in ids]


def _update(folder: str, location: str) -> None:
    module._BATCH = 7
    store = Store.open(read_location(location))
    SearchIndex.open(Path(folder) / "search.db").update(store)


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
    index = SearchIndex.open(tmp_path / "search.db")
    assert find(index, "number") == set(ids)
    words = sqlite3.connect(tmp_path / "search.db")
    assert words.execute("SELECT count(*) FROM words_docsize").fetchone() == (200,)
    words.close()


def test_an_index_of_another_format_is_made_anew(store: Store, tmp_path: Path) -> None:
    (id,) = add(store, "one")
    path = tmp_path / "search.db"
    SearchIndex.open(path).update(store)
    old = sqlite3.connect(path)
    old.execute("PRAGMA user_version = 99")
    old.close()
    index = SearchIndex.open(path)
    assert find(index, "one") == frozenset()
    index.update(store)
    assert find(index, "one") == {id}


def test_where_nothing_can_be_written_the_index_is_in_memory(store: Store, tmp_path: Path) -> None:
    (id,) = add(store, "one")
    (tmp_path / "no folder").write_text("")
    index = SearchIndex.open(tmp_path / "no folder" / "search.db")
    index.update(store)
    assert (index.path, set(find(index, "one"))) == ("", {id})


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_is_read_only_stays_as_it_is(store: Store, tmp_path: Path) -> None:
    (id,) = add(store, "one")
    folder = tmp_path / "closed"
    folder.mkdir(mode=0o500)
    index = SearchIndex.open(folder / "search.db")
    index.update(store)
    assert (index.path, set(find(index, "one"))) == ("", {id})
    assert not list(folder.iterdir())


def test_words_are_marked_where_they_stand() -> None:
    text = "Der Fluß ist kühl, der Fluss nicht: kühler!"
    marked = [text[a:b] for a, b in find_word_places(text, ("fluss", "kuhl"))]
    assert marked == ["Fluß", "kühl", "Fluss", "kühl"]
    assert find_word_places(text, ("luß", "hl")) == []
