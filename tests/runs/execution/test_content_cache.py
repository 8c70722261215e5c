"""What is read from the store for many calls together, and how much of it stays in memory."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from evalstore.core import batches, hashing
from evalstore.core.errors import StoreError
from evalstore.core.results import Session
from evalstore.core.values import EvaluationVersion, Question, Reply, Text
from evalstore.runs.execution.content_cache import ContentCache
from evalstore.store import Store


@pytest.fixture
def read(store: Store, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The ids of each read of judging versions."""
    reads: list[list[str]] = []
    load = store.load_contents

    def load_contents(kind: str, ids: Iterator[str]) -> object:
        reads.append(list(ids))
        return load(kind, reads[-1])

    monkeypatch.setattr(store, "load_contents", load_contents)
    return reads


def add_evaluations(store: Store, count: int) -> list[str]:
    versions = [EvaluationVersion((Text(f"Judge {number}."),)) for number in range(count)]
    described = [hashing.identify(hashing.describe_evaluation(version)) for version in versions]
    store.ensure_versions({id: ("evaluation", content) for id, content in described})
    return [id for id, _ in described]


def add_session(store: Store) -> str:
    session = Session(Question("0" * 32, None, "0" * 32, 0), (Reply("Yes"),), 1, "0" * 16)
    id, content = hashing.identify(hashing.describe_session(session))
    store.record({id: content}, {}, [], wait=True)
    return id


def test_evaluation_versions_are_read_together_and_once(
    store: Store, read: list[list[str]]
) -> None:
    ids = add_evaluations(store, 3)
    cache = ContentCache(store)
    cache.read_evaluations(ids[:2])
    cache.read_evaluations(ids)
    cache.read_evaluations(ids)
    assert read == [ids[:2], ids[2:]]


def test_the_oldest_contents_are_dropped(
    store: Store, read: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "SIZE", 2)
    ids = add_evaluations(store, 4)
    cache = ContentCache(store)
    for id in ids:
        cache.read_evaluations([id])
    assert [cache.has_input((), id) for id in ids] == [False, True, True, True]
    assert read == [[id] for id in ids]


def test_the_input_of_a_judgement_is_read_with_those_that_follow(
    store: Store, read: list[list[str]]
) -> None:
    first, second = add_evaluations(store, 2)
    session = add_session(store)
    cache = ContentCache(store)
    assert not cache.has_input([session], first)
    cache.read_ahead([([session], first), ([session], second)])
    assert cache.has_input([session], first)
    assert cache.has_input([session], second)
    assert read == [[first, second]]


def test_what_is_loaded_for_another_thread_is_not_kept(store: Store) -> None:
    (evaluation,) = add_evaluations(store, 1)
    session = add_session(store)
    cache = ContentCache(store)
    sessions, contents = cache.load_uncached([(session,)], [evaluation, None])
    assert (list(sessions), list(contents)) == ([session], [evaluation])
    assert not cache.has_input([session], evaluation)


def test_a_session_that_is_missing_is_an_error(store: Store) -> None:
    with pytest.raises(StoreError):
        ContentCache(store).sessions(["0" * 32])
