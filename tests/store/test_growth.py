"""What a store has got since it was looked at."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from evalstore.core import hashing
from evalstore.core.values import Evaluation, Failure, Question, Session
from evalstore.store import Store
from evalstore.store.driver import Extent
from evalstore.store.location import StoreLocation, read_address
from tests.postgresql_server import PostgreSQLServer
from tests.store.sessions import a_run, a_session, an_evaluation

OSLO, ROME, PARIS = (Question(letter * 32, None, "b" * 32, 0) for letter in "abc")


def id_of(question: Question) -> str:
    return hashing.question_id(question)


def record(store: Store, *facts: tuple[str, Session, str] | tuple[str, Evaluation, str]) -> None:
    store.record(
        {id: content for id, fact, content in facts if isinstance(fact, Session)},
        {id: content for id, fact, content in facts if isinstance(fact, Evaluation)},
    )


def extent_of(store: Store) -> Extent:
    extent = store.measure_extent()
    assert extent is not None
    return extent


@pytest.fixture
def other(store: Store, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Store]:
    """Another store in a database of the same kind."""
    location: StoreLocation = tmp_path / "other.db"
    if store.is_remote:
        server: PostgreSQLServer = request.getfixturevalue("postgresql_server")
        location = read_address(server.url())
    with closing(Store.open(location, create=True)) as opened:
        yield opened


def test_what_is_added_is_found_by_its_question(store: Store, location: StoreLocation) -> None:
    empty = extent_of(store)
    oslo, rome = a_session(OSLO), a_session(ROME)
    record(store, oslo, rome)
    both = extent_of(store)
    assert store.count_added(empty, both) == (2, 0)
    assert store.find_new_questions(empty, 10) == {id_of(OSLO), id_of(ROME)}
    assert store.find_new_questions(both, 10) == set()
    with closing(Store.open(location)) as other:
        record(other, an_evaluation(rome[0], nonce="a label"))
    assert store.count_added(both, extent_of(store)) == (0, 1)
    assert store.find_new_questions(both, 10) == {id_of(ROME)}
    record(store, a_session(PARIS))
    assert store.find_new_questions(both, 10) == {id_of(ROME), id_of(PARIS)}
    assert store.find_new_questions(both, 1) is None
    assert store.find_new_questions(extent_of(store), 0) == set()


def test_what_is_there_already_is_not_new(store: Store) -> None:
    record(store, a_session(OSLO))
    before = extent_of(store)
    record(store, a_session(OSLO))
    assert store.count_added(before, extent_of(store)) == (0, 0)
    assert store.find_new_questions(before, 0) == set()


def test_a_judgement_of_several_answers_concerns_all_their_questions(store: Store) -> None:
    oslo, rome = a_session(OSLO), a_session(ROME)
    record(store, oslo, rome)
    before = extent_of(store)
    judged = Evaluation((oslo[0], rome[0]), "0" * 32, "1" * 32, "pass", 1, "n")
    id, content = hashing.identify(hashing.describe_evaluation_result(judged))
    record(store, (id, judged, content))
    assert store.find_new_questions(before, 10) == {id_of(OSLO), id_of(ROME)}


def test_an_extent_of_another_store_tells_nothing(store: Store, other: Store) -> None:
    record(store, a_session(OSLO))
    record(other, a_session(ROME), a_session(PARIS))
    assert store.find_new_questions(extent_of(other), 10) is None
    assert other.find_new_questions(extent_of(store), 10) is None


@pytest.mark.parametrize(
    "extent",
    [(), ("x",), ("x", "y"), (1, 2), ("0" * 36, "1:1:", 0, ""), ("0" * 36, "2:1:"), (0, "", 0)],
)
def test_what_is_no_extent_tells_nothing(store: Store, extent: Extent) -> None:
    assert store.find_new_questions(extent, 10) is None


def test_an_extent_of_a_database_of_another_kind_tells_nothing(
    store: Store, file_store: Store, pg_store: Store
) -> None:
    other = file_store if store.is_remote else pg_store
    assert store.find_new_questions(extent_of(other), 10) is None


@pytest.fixture
def pg_store(postgresql_server: PostgreSQLServer) -> Iterator[Store]:
    """A new store in PostgreSQL."""
    with closing(Store.open(read_address(postgresql_server.url()), create=True)) as store:
        yield store


def test_the_newest_of_what_is_recorded_differs_with_each_fact_and_with_no_version(
    store: Store, location: StoreLocation
) -> None:
    seen = [store.find_newest()]

    def look() -> None:
        with closing(Store.open(location)) as other:
            seen.append(other.find_newest(seen[-1]))

    oslo = a_session(OSLO)
    record(store, oslo)
    look()
    record(store, an_evaluation(oslo[0], nonce="a label"))
    look()
    store.record(None, None, [Failure(id_of(ROME), None, None, "status", "no", 1, "n")])
    look()
    store.record_run(a_run(1))
    look()
    assert len(set(seen)) == 5
    id, content = hashing.identify({"kind": "prompt", "text": "Be brief."})
    store.ensure_versions({id: ("prompt", content)}, {})
    record(store, oslo)
    look()
    assert seen[-1] == seen[-2]
