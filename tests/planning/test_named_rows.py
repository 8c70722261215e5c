"""Which rows a name filter selects, where their labels are cut."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstore.core import batches
from evalstore.core.values import Case
from evalstore.planning.selection import Selection, complete_label

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


def selected(selection: Selection, cases: Sequence[Case]) -> list[int]:
    """The numbers of the cases that are selected."""
    matches = selection.matcher()
    return [n for n, each in selection.by_name(FILE, enumerate(cases)) if matches(FILE, each)]


def case(number: int, label: str, *tags: str) -> Case:
    return Case(label, str(number), (str(number),), None, tags, (None,))


TEXTS = [f"the question with the number {number} of all that there are" for number in range(30)]
CASES = [case(number, "q=the questio… that there are", "ab"[number % 2]) for number in range(30)]
SHORT = case(0, "short")


@pytest.mark.parametrize("at_once", [1, 7, 1_000])
@pytest.mark.parametrize(
    "expression", ["7", "not 7", "number and not (1 or 2)", "QUESTIO", "tests/a", "…", "nothing"]
)
def test_a_name_selects_rows_by_the_values_that_their_labels_cut(
    expression: str, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "SIZE", at_once)
    full = [case(number, f"q={text}") for number, text in enumerate(TEXTS)]
    tests = Tests(TEXTS)
    rows = Selection(name=expression, load=tests.load)
    assert selected(rows, [*CASES, SHORT]) == selected(Selection(name=expression), [*full, SHORT])


def test_messages_are_read_together_and_only_where_labels_are_cut() -> None:
    tests = Tests(TEXTS)
    selection = Selection(tags=("b",), name="7", load=tests.load)
    assert selected(selection, [*CASES, SHORT]) == [7, 17, 27]
    assert [sorted(load, key=int) for load in tests.loads] == [[str(n) for n in range(1, 30, 2)]]
    assert selected(Selection(name="short", load=tests.load), [SHORT]) == [0]
    assert len(tests.loads) == 1


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
