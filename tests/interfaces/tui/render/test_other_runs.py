"""Runs in progress of other programs in the room that a terminal has."""

from __future__ import annotations

from evalstore.interfaces.tui.render.run_details import other_run_lines
from evalstore.runs.status.status_text import in_progress_text
from evalstore.store.shared_runs import RunInProgress

ANNA = RunInProgress("7f3c" * 8, "Anna", 130, 2, 1_040, 12, joinable=True)
LEFT = RunInProgress("1234" * 8, None, 7200, 0, 1, 0, joinable=True)


def test_a_run_is_told_in_many_words_or_in_few() -> None:
    assert in_progress_text(ANNA) == (
        "Run 7f3c7f3c is in progress, begun by Anna 2 minutes ago, in 2 programs: "
        "1,040 answers and 12 verdicts so far; 'evalstore run --join 7f3c7f3c' takes part."
    )
    assert in_progress_text(ANNA, brief=True) == "7f3c7f3c by Anna: 1,040 asked, 12 judged"
    assert in_progress_text(LEFT, brief=True) == "12341234, no live program: 1 asked, 0 judged"


def test_the_details_have_all_that_is_known() -> None:
    texts = [line.text for line in other_run_lines([ANNA, LEFT])]
    assert texts[1] == "in progress in other programs"
    assert "'evalstore run --join 7f3c7f3c' takes part." in texts[2]
    assert "'evalstore run --join 12341234' continues it." in texts[3]
    assert list(other_run_lines([])) == []
