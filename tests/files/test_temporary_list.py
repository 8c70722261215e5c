"""A list in a temporary file: read in its order, several times, and gone with the list."""

from __future__ import annotations

import random
import tracemalloc
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from evalstore.core import batches
from evalstore.files.temporary_list import SortedValues, TemporaryList, TemporaryMapping


def test_values_are_read_in_their_order_as_often_as_needed() -> None:
    values = TemporaryList()
    assert (len(values), [*values]) == (0, [])
    batches = [[["é\ud800", None, 1.5], {"a": [number]}] for number in range(3)]
    for batch in batches:
        values.extend(batch)
        values.extend([])
    expected = [value for batch in batches for value in batch]
    one, other = iter(values), iter(values)
    assert next(one) == next(other) == expected[0]
    values.extend(["more"])
    assert [*one] == [*other] == [*expected[1:], "more"]
    assert len(values) == len(expected) + 1


def test_a_large_list_leaves_no_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SQLITE_TMPDIR", str(tmp_path))
    values = TemporaryList(f"{number:01000}" for number in range(10_000))
    assert values[9_999] == f"{9_999:01000}"
    assert list(tmp_path.iterdir()) == []  # it has no name


def test_values_are_read_by_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "SIZE", 7)
    values = TemporaryList()
    for start, end in ((0, 1), (1, 30), (30, 37)):
        values.extend(list(range(start, end)))
    numbers = [*range(37)]
    random.Random(1).shuffle(numbers)
    assert [values[number] for number in numbers] == numbers
    assert [*values] == [*range(37)]
    for number in (-1, 37):
        with pytest.raises(IndexError):
            values[number]


def test_values_that_are_added_one_by_one_are_read_with_those_added_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(batches, "SIZE", 3)
    values = TemporaryList()
    for number in range(8):
        values.append(number)
    assert len(values) == 8
    reading = iter(values)
    assert [next(reading) for _ in range(7)] == [*range(7)]
    values.extend([8, 9])
    values.append(10)
    assert [*reading] == [7, 8, 9, 10]
    assert [*values] == [values[number] for number in range(11)] == [*range(11)]
    for number in (-1, 11):
        with pytest.raises(IndexError):
            values[number]
    assert 10 in values
    assert 11 not in values


def test_several_threads_read_one_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "SIZE", 5)
    values = TemporaryList()
    values.extend([f"text {number}" for number in range(400)])

    def read(first: int) -> bool:
        every = all(values[number] == f"text {number}" for number in range(first, 400, 3))
        return every and len([*values]) == 400

    with ThreadPoolExecutor(4) as threads:
        assert all(threads.map(read, range(12)))


def test_values_that_come_one_by_one_are_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "SIZE", 3)
    values = TemporaryList(iter("abcdefgh"))
    assert ([*values], "c" in values, "x" in values) == ([*"abcdefgh"], True, False)


@pytest.mark.parametrize("count", [0, 1, 20, 21, 95])
def test_values_are_sorted(count: int) -> None:
    values = [[bool(number % 3), "é\ud800"[: number % 2], number] for number in range(count)]
    mixed = random.Random(1).sample(values, count)
    sorter = SortedValues(keys=3)
    sorter.add(mixed[:50])
    sorter.add(mixed[50:])
    assert [*sorter] == [*sorter] == sorted(values)


def test_few_of_the_values_that_are_sorted_are_in_memory() -> None:
    def values() -> Iterator[list[str]]:
        for number in range(10_000):
            yield [f"{number * 7919 % 10_007:05}" + "x" * 995]

    tracemalloc.start()
    sorter = SortedValues(keys=1)
    sorter.add(values())
    last, count = [""], 0
    for value in sorter:
        assert last < value
        last, count = value, count + 1
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert count == 10_000
    assert peak < 3_000_000  # of ten megabytes


def test_a_mapping_has_the_first_value_of_each_key() -> None:
    values: TemporaryMapping[tuple[tuple[str, ...], str], tuple[str, ...]] = TemporaryMapping(
        unpack=tuple
    )
    assert (len(values), [*values]) == (0, [])
    first = (("a", "b'\\"), "c")
    values.update({first: ("one", "é"), (("a",), "b"): ()})
    values.update({first: ("two",), ((), ""): ("three",)})
    assert {**values} == {first: ("one", "é"), (("a",), "b"): (), ((), ""): ("three",)}
    assert (len(values), first in values, (("a",), "c") in values) == (3, True, False)
    keys = iter(values)
    with pytest.raises(KeyError):
        values[(("b",), "a")]
    del values
    assert len([*keys]) == 3  # the database is there as long as its keys are read
