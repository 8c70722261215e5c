"""Digests in little memory: the same as a set of them."""

from __future__ import annotations

import tracemalloc
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstore.core import hashing
from evalstore.core.hashing import (
    DigestSet,
    ValueSet,
    count_distinct,
)
from evalstore.workspace.testfiles.replacements import labels


def random_numbers(count: int) -> list[int]:
    random = Random(2)
    return [0, 2**64 - 1, *(random.getrandbits(64) for _ in range(count))]


def test_a_number_is_new_once() -> None:
    actual, numbers = DigestSet(), random_numbers(100)
    assert all(map(actual.add, numbers))
    assert not any(map(actual.add, numbers))
    assert actual.add(1)


def test_different_numbers_are_counted() -> None:
    numbers = random_numbers(100)
    assert count_distinct([]) == 0
    assert count_distinct([*numbers, *numbers[::3], 0]) == len(numbers)


def test_very_many_take_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hashing, "_BUCKET_BITS", 6)
    random = Random(3)
    sizes = []
    for count in (1_000, 5_000):
        tracemalloc.start()
        actual = DigestSet()
        for _ in range(count):
            actual.add(random.getrandbits(64))
        sizes.append(tracemalloc.get_traced_memory()[0])
        tracemalloc.stop()
    assert sizes[1] - sizes[0] < 4_000 * 12


@given(st.lists(st.dictionaries(st.sampled_from("ab"), st.sampled_from(["x", "y", "x #2"]))))
def test_rows_have_labels_of_their_own(rows: list[dict[str, str]]) -> None:
    assert len(set(labels(rows))) == len(rows)


def test_a_set_of_ids_has_those_that_were_added() -> None:
    ids = [hashing.hash_content(str(number)) for number in range(100)]
    empty, some = ValueSet(), ValueSet(ids[:50])
    assert not empty
    assert empty.isdisjoint(ids)
    assert some
    assert [id in some for id in ids] == [True] * 50 + [False] * 50
    assert some.isdisjoint(ids[50:])
    assert not some.isdisjoint(ids[40:])
