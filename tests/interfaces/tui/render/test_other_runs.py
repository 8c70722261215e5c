"""Runs in progress of other programs in the room that a terminal has."""

from __future__ import annotations

import pytest

from evalstore.core.display import columns_of
from evalstore.interfaces.tui.render.run_details import other_run_lines, other_run_texts
from evalstore.store.shared_runs import RunInProgress

ANNA = RunInProgress("7f3c" * 8, "Anna", 130, 2, 1_040, 12, joinable=True)
LEFT = RunInProgress("1234" * 8, None, 7200, 0, 1, 0, joinable=True)


@pytest.mark.parametrize(
    ("width", "text"),
    [
        (
            198,
            "▶ Run 7f3c7f3c is in progress, begun by Anna 2 minutes ago, in 2 programs: "
            "1,040 answers and 12 verdicts so far; 'evalstore run --join 7f3c7f3c' takes part.",
        ),
        (
            118,
            "▶ Run 7f3c7f3c is in progress, begun by Anna 2 minutes ago, in 2 programs: "
            "1,040 answers and 12 verdicts so far.",
        ),
        (78, "▶ run 7f3c7f3c by Anna, 2 minutes ago: 1,040 answers and 12 verdicts so far"),
        (58, "▶ 7f3c7f3c by Anna, 2 minutes ago: 1,040 asked, 12 judged"),
        (55, "▶ 7f3c7f3c by Anna, 2 min ago: 1,040 asked, 12 judged"),
        (50, "▶ 7f3c7f3c by Anna: 1,040 asked, 12 judged"),
        (38, "▶ 7f3c7f3c: 1,040 asked, 12 judged"),
        (20, "▶ 7f3c7f3c: 1,040 a…"),
    ],
)
def test_a_run_is_told_in_the_words_that_fit(width: int, text: str) -> None:
    assert other_run_texts([ANNA], width, 1) == [text]
    assert columns_of(text) <= width


def test_a_run_whose_programs_have_died_says_so() -> None:
    assert other_run_texts([LEFT], 70, 1) == [
        "▶ 12341234, 2 hours ago, no live program: 1 asked, 0 judged"
    ]
    assert other_run_texts([LEFT], 50, 1) == ["▶ 12341234, no live program: 1 asked, 0 judged"]


def test_runs_without_room_are_counted() -> None:
    assert other_run_texts([ANNA, LEFT, ANNA], 50, 3)[1:] == [
        "▶ 12341234, no live program: 1 asked, 0 judged",
        "▶ 7f3c7f3c by Anna: 1,040 asked, 12 judged",
    ]
    assert other_run_texts([ANNA, LEFT, ANNA], 50, 2)[1:] == ["▶ 2 more runs in progress"]
    assert other_run_texts([ANNA, LEFT], 50, 1) == ["▶ 2 runs in progress"]
    assert other_run_texts([], 50, 1) == []


def test_the_details_have_all_that_is_known() -> None:
    texts = [line.text for line in other_run_lines([ANNA, LEFT])]
    assert texts[1] == "in progress in other programs"
    assert "'evalstore run --join 7f3c7f3c' takes part." in texts[2]
    assert "'evalstore run --join 12341234' continues it." in texts[3]
    assert list(other_run_lines([])) == []
