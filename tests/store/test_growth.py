"""What a store has got since it was looked at: SQLite tells, a server does not."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from evalstore import hashing
from evalstore.results import Evaluation, Session
from evalstore.store import Store
from evalstore.store.growth import Extent
from evalstore.store.location import read_address
from evalstore.values import Question
from tests.postgresql_server import PostgreSQLServer
from tests.store.sessions import a_session, an_evaluation

OSLO, ROME, PARIS = (Question(letter * 32, None, "b" * 32, 0) for letter in "abc")


def id_of(question: Question) -> str:
    return hashing.question_id(question)


def record(store: Store, *facts: tuple[str, Session, str] | tuple[str, Evaluation, str]) -> None:
    store.record(
        {id: (fact, content) for id, fact, content in facts if isinstance(fact, Session)},
        {id: (fact, content) for id, fact, content in facts if isinstance(fact, Evaluation)},
    )


def extent_of(store: Store) -> Extent:
    extent = store.measure_extent()
    assert extent is not None
    return extent


def test_what_is_added_is_found_by_its_question(file_store: Store, path: Path) -> None:
    empty = extent_of(file_store)
    oslo, rome = a_session(OSLO), a_session(ROME)
    record(file_store, oslo, rome)
    both = extent_of(file_store)
    assert file_store.find_new_questions(empty, 10) == {id_of(OSLO), id_of(ROME)}
    assert file_store.find_new_questions(both, 10) == set()
    with closing(Store.open(path)) as other:
        record(other, an_evaluation(rome[0], nonce="a label"))
    assert file_store.find_new_questions(both, 10) == {id_of(ROME)}
    record(file_store, a_session(PARIS))
    assert file_store.find_new_questions(both, 10) == {id_of(ROME), id_of(PARIS)}
    assert file_store.find_new_questions(both, 1) is None
    assert file_store.find_new_questions(extent_of(file_store), 0) == set()


def test_a_judgement_of_several_answers_concerns_all_their_questions(file_store: Store) -> None:
    oslo, rome = a_session(OSLO), a_session(ROME)
    record(file_store, oslo, rome)
    before = extent_of(file_store)
    judged = Evaluation((oslo[0], rome[0]), "0" * 32, "1" * 32, "pass", 1, "n")
    id, content = hashing.identify(hashing.describe_evaluation_result(judged))
    record(file_store, (id, judged, content))
    assert file_store.find_new_questions(before, 10) == {id_of(OSLO), id_of(ROME)}


def test_an_extent_of_another_file_tells_nothing(file_store: Store, tmp_path: Path) -> None:
    record(file_store, a_session(OSLO))
    with closing(Store.open(tmp_path / "other.db", create=True)) as other:
        record(other, a_session(ROME), a_session(PARIS))
        assert other.file != file_store.file
        assert file_store.find_new_questions(extent_of(other), 10) is None
        assert other.find_new_questions(extent_of(file_store), 10) is None


def test_a_server_does_not_tell_what_is_new(postgresql_server: PostgreSQLServer) -> None:
    """Its transactions are committed in any order, so no number of a row tells."""
    address = read_address(postgresql_server.url())
    with closing(Store.open(address, create=True)) as store:
        record(store, a_session(OSLO))
        assert store.file is None
        assert store.measure_extent() is None
        assert store.find_new_questions(Extent(0, "", 0, ""), 10) is None
