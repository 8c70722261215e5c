"""Few labels of a long list are in memory while they are shortened."""

from __future__ import annotations

import tracemalloc

import pytest

from evalstore.files import temporary_list
from evalstore.results.edits.distinct_labels import shorten_labels


def test_few_labels_of_a_long_list_are_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, few in (("_SORTED_AT_ONCE", 200), ("_MERGED_AT_ONCE", 20), ("_AT_ONCE", 50)):
        monkeypatch.setattr(temporary_list, name, few)
    monkeypatch.setattr(temporary_list, "_IN_MEMORY", 0)
    middle = " and so on" * 30
    labels = (f"tests/a.md [question={number % 7}{middle} {number}]" for number in range(5_000))
    tracemalloc.start()
    short = shorten_labels(labels, 40)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(set(short)) == 5_000
    assert peak < 1_000_000  # of two megabytes of texts alone
