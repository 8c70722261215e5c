"""Which rows a name filter selects, where their labels are cut."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstore.core import batches
from evalstore.core.values import Case
from evalstore.planning.selection import NamedRows, Selection, complete_label

FILE = "tests/a.md"


class Tests:
    """Reads tests, and counts how often."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = texts
        self.loads: list[list[str]] = []

    def load(self, _kind: str, ids: Iterable[str]) -> dict[str, object]:
        self.loads.append([*ids])
        return {
            id: {"messages": [{"role": "user", "content": self.texts[int(id)]}]}
            for id in self.loads[-1]
        }


def rows_of(expression: str, tests: Tests) -> NamedRows:
    return NamedRows(expression, tests.load)


def case(number: int, label: str, *tags: str) -> Case:
    return Case(label, str(number), (str(number),), None, tags, (None,))


TEXTS = [f"the question with the number {number} of all that there are" for number in range(30)]
CASES = [case(number, "q=the questio… that there are", "ab"[number % 2]) for number in range(30)]


@pytest.mark.parametrize("at_once", [1, 7, 1_000])
@pytest.mark.parametrize(
    "expression", ["7", "not 7", "number and not (1 or 2)", "QUESTIO", "tests/a", "…", "nothing"]
)
def test_names_that_are_read_ahead_decide_as_each_alone(
    expression: str, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "SIZE", at_once)
    cases = [*CASES, case(0, "short")]
    alone, together = (rows_of(expression, Tests(TEXTS)) for _ in range(2))
    expected = [each for each in enumerate(cases) if alone(FILE, each[1])]
    for _ in range(2):
        ahead = together.read_ahead(FILE, enumerate(cases), lambda _file, _case: True)
        assert [each for each in ahead if together(FILE, each[1])] == expected
        assert together(FILE, CASES[7]) == (7 in [number for number, _ in expected])
    assert [number for number, _ in expected] == [
        number
        for number, text in enumerate([*TEXTS, "short"])
        if Selection(name=expression).matcher()(FILE, case(0, f"q={text}" if number < 30 else text))
    ]


def test_messages_are_read_once_and_together() -> None:
    tests = Tests(TEXTS)
    rows = rows_of("7", tests)
    selection = Selection(tags=("b",), name="7", by_name=rows)
    matches = selection.matcher()
    for _ in range(3):
        ahead = selection.read_ahead(FILE, enumerate(CASES))
        assert [number for number, each in ahead if matches(FILE, each)] == [7, 17, 27]
    assert [load for load in tests.loads if load] == [[str(number) for number in range(1, 30, 2)]]


def test_no_message_is_read_where_a_label_says_enough() -> None:
    tests = Tests(TEXTS)
    rows = rows_of("there and questio", tests)
    assert [*rows.read_ahead(FILE, enumerate(CASES), lambda _file, _case: True)] == [
        *enumerate(CASES)
    ]
    assert not any(tests.loads)


PARTS = st.text("ab= c", max_size=20)


@given(st.lists(PARTS, min_size=1, max_size=4), st.text("ab= c\n", max_size=60))
def test_a_label_is_completed_with_the_first_text_that_fits(parts: list[str], text: str) -> None:
    full, *others = parts
    line = " ".join(text.split())
    for part in others:
        start, end = full[-14:].rpartition("=")[2], part[:14]
        found = re.search(f"{re.escape(start)}(.+?){re.escape(end)}", line) if start else None
        full += (found[1] if found else "…") + part
    assert complete_label("…".join(parts), text) == full
