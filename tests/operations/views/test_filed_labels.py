"""Labels of long lists are shortened as those of short ones, and few of them are in memory."""

from __future__ import annotations

import random
import tracemalloc

import pytest

from evalstore.files import temporary_list
from evalstore.operations.views import filed_labels
from evalstore.operations.views.distinct_labels import shorten_labels
from evalstore.operations.views.filed_labels import shorten_all

FILES = ("tests/a.md", "tests/a", "tests/b/c.md", "tests/", "")
WORDS = ("very", "long", "name", "質問", "a", "b", "question=What is", "x" * 40, "y\n", "\x1b[31m")


def _labels(choice: random.Random) -> list[str]:
    """Labels that begin and end alike; some are equal, and some are no names of cases."""
    labels = []
    for _ in range(choice.randint(4, 40)):
        words = " ".join(choice.choices(WORDS, k=choice.randint(0, 6)))
        end = choice.choice(("", "]", f" {choice.randint(0, 9)}]"))
        odd = "".join(choice.choices("ab ([", k=choice.randint(0, 30)))
        labels.append(choice.choice((f"{choice.choice(FILES)} [{words}{end}",) * 4 + (odd,)))
    return labels


@pytest.mark.parametrize("columns", [1, 10, 20, 24, 40, 120])
def test_labels_of_a_long_list_are_those_of_a_short_one(
    monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setattr(temporary_list, "_SORTED_AT_ONCE", 13)
    choice = random.Random(columns)
    for _ in range(100):
        labels = _labels(choice)
        expected = shorten_labels(labels, columns)
        monkeypatch.setattr(filed_labels, "_FEW", len(labels) - 1)
        assert [*shorten_all(iter(labels), columns)] == expected
        monkeypatch.setattr(filed_labels, "_FEW", len(labels))
        assert shorten_all(iter(labels), columns) == expected


def test_few_labels_of_a_long_list_are_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filed_labels, "_FEW", 50)
    for name, few in (("_SORTED_AT_ONCE", 200), ("_MERGED_AT_ONCE", 20), ("_AT_ONCE", 50)):
        monkeypatch.setattr(temporary_list, name, few)
    monkeypatch.setattr(temporary_list, "_IN_MEMORY", 0)
    middle = " and so on" * 30
    labels = (f"tests/a.md [question={number % 7}{middle} {number}]" for number in range(5_000))
    tracemalloc.start()
    short = shorten_all(labels, 40)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(set(short)) == 5_000
    assert peak < 1_000_000  # of two megabytes of texts alone
