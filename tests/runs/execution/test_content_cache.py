"""What is read from the store for many calls together, and how much of it stays in memory."""

from __future__ import annotations

import pytest

from evalstore.core import batches, hashing
from evalstore.core.values import EvaluationVersion, Question, Reply, Session, Text
from evalstore.runs.execution.candidates import ContentCache
from evalstore.store import Store


@pytest.fixture
def read(store: Store, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The ids of the contents that are read one by one."""
    reads: list[str] = []
    load = store.load_any

    def load_any(kind: str, id: str) -> object:
        reads.append(id)
        return load(kind, id)

    monkeypatch.setattr(store, "load_any", load_any)
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


def test_the_oldest_contents_are_dropped(
    store: Store, read: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "SIZE", 2)
    ids = add_evaluations(store, 4)
    cache = ContentCache(store)
    for id in ids:
        cache.add(store.load_contents("evaluation", [id]))
    for id in [*reversed(ids), ids[0]]:
        assert cache.content("evaluation", id)
    assert read == ids[:1]


def test_what_is_loaded_for_another_thread_is_not_kept(store: Store, read: list[str]) -> None:
    (evaluation,) = add_evaluations(store, 1)
    session = add_session(store)
    cache = ContentCache(store)
    sessions, contents = cache.load_uncached([(session,)], [evaluation, None])
    assert (list(sessions), list(contents)) == ([session], [evaluation])
    assert cache.content("evaluation", evaluation)
    assert read == [evaluation]
