"""A list in a temporary file: read in its order, several times, and gone with the list."""

from __future__ import annotations

import gc
import random
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from evalstore.files import temporary_list
from evalstore.files.temporary_list import TemporaryList


@pytest.mark.parametrize("most", [0, 1 << 20])
def test_values_are_read_in_their_order_as_often_as_needed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, most: int
) -> None:
    monkeypatch.setattr(temporary_list, "_IN_MEMORY", most)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
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
    del values, one, other
    gc.collect()
    assert list(tmp_path.iterdir()) == []


def test_values_are_read_by_number_and_from_a_number_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(temporary_list, "_AT_ONCE", 7)
    values = TemporaryList()
    for start, end in ((0, 1), (1, 30), (30, 37)):
        values.extend(list(range(start, end)))
    numbers = [*range(37)]
    random.Random(1).shuffle(numbers)
    assert [values[number] for number in numbers] == numbers
    for start in range(38):
        assert [*values.iterate(start)] == [*range(start, 37)]
    for number in (-1, 37):
        with pytest.raises(IndexError):
            values[number]


def test_several_threads_read_one_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(temporary_list, "_AT_ONCE", 5)
    monkeypatch.setattr(temporary_list, "_IN_MEMORY", 0)
    values = TemporaryList()
    values.extend([f"text {number}" for number in range(400)])

    def read(first: int) -> bool:
        every = all(values[number] == f"text {number}" for number in range(first, 400, 3))
        return every and len([*values]) == 400

    with ThreadPoolExecutor(4) as threads:
        assert all(threads.map(read, range(12)))
