"""A sequence in a temporary file is read like the list of its values."""

from __future__ import annotations

import copy
import pickle
import tracemalloc
from collections.abc import Iterator, Sequence

import pytest

from evalstore.core import batches
from evalstore.files import temporary_list
from evalstore.files.temporary_list import PackedSequence, keep_values


def _keep(values: Sequence[complex]) -> Sequence[complex]:
    return keep_values(
        iter(values), lambda value: [value.real, value.imag], lambda pair: complex(*pair)
    )


@pytest.mark.parametrize("count", [0, 1, 9])
def test_few_values_are_a_list(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    monkeypatch.setattr(temporary_list, "_FEW", 9)
    values = [complex(number, 1.5) for number in range(count)]
    assert _keep(values) == values
    assert type(_keep(values)) is list


def test_many_values_are_read_like_a_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(temporary_list, "_FEW", 9)
    monkeypatch.setattr(batches, "SIZE", 3)
    values = [complex(number, 1.5) for number in range(20)]
    kept = _keep(values)
    assert type(kept) is PackedSequence
    assert (len(kept), [*kept], [*kept], [*reversed(kept)]) == (20, values, values, values[::-1])
    assert [kept[number] for number in range(-20, 20)] == [*values, *values]
    for part in (slice(3), slice(12, None, 3), slice(-4, None), slice(None, None, -1), slice(0)):
        assert kept[part] == values[part]
    for number in (20, -21):
        with pytest.raises(IndexError):
            kept[number]
    assert (values[7] in kept, 5j in kept, kept.index(values[7])) == (True, False, 7)
    assert kept == values == kept == _keep(values)
    assert kept != values[:-1]
    assert kept != [*values[:-1], 0]
    assert kept != tuple(values)
    for copied in (copy.deepcopy(kept), pickle.loads(pickle.dumps(kept))):
        assert (type(copied), copied) == (list, values)
    assert repr(_keep(values[:10])) == repr(values[:10])
    assert repr(kept) == f"{repr(values[:10])[:-1]}, ... 20 values]"
    with pytest.raises(TypeError, match="unhashable"):
        hash(kept)


def test_few_of_many_values_are_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(temporary_list, "_FEW", 50)

    def values() -> Iterator[str]:
        for number in range(10_000):
            yield f"{number:05}" + "x" * 995

    tracemalloc.start()
    kept = keep_values(values(), str, str)
    count = sum(value == f"{number:05}" + "x" * 995 for number, value in enumerate(kept))
    last = kept[-1]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (count, last[:5]) == (10_000, "09999")
    assert peak < 1_500_000  # of ten megabytes
