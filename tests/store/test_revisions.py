"""Texts that name things in the store."""

from __future__ import annotations

import itertools

import pytest

from evalstore.core import hashing
from evalstore.core.errors import USAGE, RevisionError
from evalstore.core.values import Question
from evalstore.store import Store
from evalstore.store.revisions import resolve, resolve_remote_run, resolve_run
from tests.store.sessions import a_run, a_session, a_test


def runs(store: Store, count: int) -> list[str]:
    return [store.record_run(a_run(n)).id for n in range(1, count + 1)]


def test_the_latest_run_and_those_before_it(store: Store) -> None:
    first, second, third = runs(store, 3)
    assert resolve_run(store, "@").id == third
    assert resolve_run(store, "@~0").id == third
    assert resolve_run(store, "@~1").id == second
    assert resolve(store, "@~2") == ("run", first)


def test_any_revision_of_a_run_may_be_followed_by_the_number_of_runs_before(store: Store) -> None:
    first, second, third = runs(store, 3)
    assert resolve_run(store, f"{third[:8]}~2").id == first
    assert resolve_run(store, f"{third[:8]}~").id == second
    assert resolve_run(store, "@~").id == second
    assert resolve_run(store, f"{second}~0").id == second
    assert resolve_run(store, "@~1~1").id == first
    assert resolve(store, f"{second[:8]}~1") == ("run", first)
    with pytest.raises(RevisionError, match=f"unknown run '{second[:8]}~2'") as caught:
        resolve_run(store, f"{second[:8]}~2")
    assert caught.value.hint == f"1 run came before {second[:8]}"


def test_only_a_run_has_runs_before_it(store: Store) -> None:
    runs(store, 1)
    question = Question("a" * 32, None, "b" * 32, 0)
    id, _, content = a_session(question)
    store.record({id: content})
    with pytest.raises(RevisionError, match=r"is not a run .answer."):
        resolve_run(store, f"{id[:12]}~1")


def test_a_run_of_a_remote_has_runs_before_it() -> None:
    ids = ["c" * 32, "b" * 32, "a" * 32]
    assert resolve_remote_run(ids, "origin", "@~2") == ids[2]
    assert resolve_remote_run(ids, "origin", "cccc~1") == ids[1]
    assert resolve_remote_run(ids, "origin", "@~") == ids[1]
    with pytest.raises(RevisionError) as caught:
        resolve_remote_run(ids, "origin", "bbbb~2")
    assert caught.value.hint == (
        "'origin' had 3 runs when it was last read; 'evalstore pull -n origin' reads them again"
    )


@pytest.mark.parametrize("text", ["@~3", "@~999999999"])
def test_there_is_no_run_before_the_oldest(store: Store, text: str) -> None:
    runs(store, 3)
    with pytest.raises(RevisionError) as caught:
        resolve_run(store, text)
    assert caught.value.hint == "there are 3 runs, the oldest is @~2"
    assert caught.value.exit_code == USAGE


def test_before_the_first_run_the_hint_says_how_to_make_one(store: Store) -> None:
    with pytest.raises(RevisionError) as caught:
        resolve_run(store, "@")
    assert caught.value.hint == "no runs yet: 'evalstore run' makes one"


def test_the_start_of_an_id_is_enough(store: Store) -> None:
    (id,) = runs(store, 1)
    assert resolve(store, id[:4]) == ("run", id)
    assert resolve(store, id[:9].upper()) == ("run", id)
    assert resolve(store, id) == ("run", id)
    assert resolve_run(store, id[:8]).started == 1


def test_a_question_is_found_by_its_id(store: Store) -> None:
    question = Question("a" * 32, None, "b" * 32, 0)
    id, _, content = a_session(question)
    store.record({id: content})
    key = hashing.question_id(question)
    assert resolve(store, key[:10]) == ("question", key)


def test_an_ambiguous_start_lists_the_candidates(store: Store) -> None:
    ids = sorted(next(iter(a_test(str(number)))) for number in range(1_000))
    same = next(id for id, next_ in itertools.pairwise(ids) if id[:4] == next_[:4])
    for number in range(1_000):
        store.ensure_versions(a_test(str(number)))
    with pytest.raises(RevisionError, match="is ambiguous") as caught:
        resolve(store, same[:4])
    assert f"{same[:12]} (test)" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("abc", "'abc' is too short"),
        ("abcd", "nothing in the store starts with 'abcd'"),
        ("xyz", "'xyz' is not a revision"),
        ("", "'' is not a revision"),
        ("@~x", "'@~x' is not a revision"),
        ("@~-1", "'@~-1' is not a revision"),
        ("@~99999999999999999999", "'@~99999999999999999999' is not a revision"),
        ("a" * 33, f"'{'a' * 33}' is not a revision"),
        ("abcd\n", "'abcd\n' is not a revision"),
    ],
)
def test_what_names_nothing_is_refused(store: Store, text: str, message: str) -> None:
    with pytest.raises(RevisionError) as caught:
        resolve(store, text)
    assert str(caught.value) == message


def test_a_revision_that_is_not_a_run_is_refused_where_a_run_is_needed(store: Store) -> None:
    version = a_test()
    store.ensure_versions(version)
    with pytest.raises(RevisionError, match=r"is not a run .test."):
        resolve_run(store, next(iter(version))[:8])
