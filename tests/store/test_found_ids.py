"""The ids that a search has found are a set, whatever their number."""

from __future__ import annotations

import random
import sys
from collections.abc import Set

import pytest

from evalstore.core.errors import StoreError
from evalstore.store.search.index import FoundIds


def _ids(count: int) -> list[str]:
    """Ids of which some begin or end with the same half."""
    choice = random.Random(count)
    halves = [f"{choice.getrandbits(64):016x}" for _ in range(max(1, count // 3))]
    return [choice.choice(halves) + choice.choice(halves) for _ in range(count)]


@pytest.mark.parametrize("count", [0, 1, 2, 50, 500])
def test_it_has_the_ids_and_no_others(count: int) -> None:
    ids = set(_ids(count))
    found: Set[str] = FoundIds(map(bytes.fromhex, sorted(ids)))
    assert (len(found), bool(found), [*found]) == (len(ids), bool(ids), sorted(ids))
    assert found == ids
    assert found == frozenset(ids)
    assert all(id in found for id in ids)
    others = {*_ids(count + 1)} - ids
    assert not any(id in found for id in others)
    assert found.isdisjoint(others)
    assert found.isdisjoint([*others, *[*ids][:1]]) == (not ids)
    assert not any(other in found for other in (None, 7, "", "no id", "zz" * 16))
    assert hash(found) == hash(FoundIds(map(bytes.fromhex, sorted(ids))))


def test_an_id_takes_little_memory() -> None:
    choice = random.Random(1)
    numbers = sorted(choice.getrandbits(128) for _ in range(20_000))
    found = FoundIds(number.to_bytes(16, "big") for number in numbers)
    assert sys.getsizeof(found._first) + sys.getsizeof(found._second) < 20 * len(numbers)


def test_what_is_no_id_is_damage() -> None:
    with pytest.raises(StoreError):
        FoundIds([b"short"])
