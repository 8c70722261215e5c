"""Texts by the ids that stand for them, also of many."""

from __future__ import annotations

import tracemalloc

from evalstore.core import hashing
from evalstore.results.search.text_places import TextKeys

IDS = [hashing.hash_content(str(number)) for number in range(60)]


def test_all_texts_that_an_id_stands_for_are_found() -> None:
    keys = TextKeys()
    for number in range(40):
        keys.add(number, {IDS[number], IDS[number // 2], IDS[0]})
    for number in range(1, 20):
        expected = {number, 2 * number, 2 * number + 1}
        assert sorted(keys.find(IDS[number])) == sorted(expected)
    assert sorted(keys.find(IDS[0])) == [*range(40)]
    assert [*keys.find(IDS[39])] == [39]
    assert not keys.find(IDS[40])
    keys.add(40, [IDS[40]])
    assert [*keys.find(IDS[40])] == [40]


def test_very_many_keys_take_little_memory() -> None:
    count = 40_000
    tracemalloc.start()
    keys = TextKeys()
    for number in range(count):
        keys.add(number, [f"{number * 0x9E3779B97F4A7C15 % 2**64:016x}{number:016x}"])
    assert not keys.find("f" * 32)
    taken, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert taken < 20 * count
    assert peak < 30 * count
