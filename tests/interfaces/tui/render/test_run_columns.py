"""The columns of the list of runs at several widths."""

from __future__ import annotations

from dataclasses import replace

import pytest

from evalstore.interfaces.tui.grid_columns import fit_columns
from evalstore.interfaces.tui.render.run_details import is_all_simulated, run_columns, run_cost
from evalstore.results.table.cases import RunLine

ALL = "run when state passed change of cost verdicts"


def line(status: str = "complete", message: str = "") -> RunLine:
    verdicts = {"pass": 7, "fail": 1}
    return RunLine("a" * 32, 0, 1, status, "", "", 8, 8, 0, verdicts, message=message, cost=0.0012)


@pytest.mark.parametrize(
    ("width", "runs", "titles"),
    [
        (70, [line()], "run when passed change of verdicts"),
        (80, [line()], "run when passed change of cost verdicts"),
        (80, [line("incomplete")], "run when state passed change of verdicts"),
        (110, [line("incomplete")], f"{ALL} asked judged reused"),
        (134, [line("incomplete")], f"{ALL} asked judged reused message"),
        (74, [line(message="short")], "run when passed change verdicts message"),
        (80, [line(message="short")], "run when passed change of verdicts message"),
        (
            84,
            [line(message="a long message of a run")],
            "run when passed change of verdicts message",
        ),
        (61, [line("interrupted", "text")], "run when state passed change"),
    ],
)
def test_columns(width: int, runs: list[RunLine], titles: str) -> None:
    columns = fit_columns(run_columns(runs), width, 0, 0).columns
    assert sum(column.width + 2 for column in columns) <= width
    assert " ".join(column.title for column in columns if column.title) == titles


def test_only_the_costs_of_scripted_models_are_marked_among_others() -> None:
    scripted, free, paid = (
        replace(line(), cost=cost, spending=[{"cost": cost, "simulated": is_simulated}])
        for cost, is_simulated in ((1.5, True), (0, False), (2.5, False))
    )
    for runs, expected in (
        ([scripted, free], ["$1.50", "$0"]),
        ([scripted, paid], ["$1.50 simulated", "$2.50"]),
        ([free, paid], ["$0", "$2.50"]),
        ([free], ["$0"]),
    ):
        is_titled = is_all_simulated(runs)
        assert [run_cost(run, is_titled=is_titled) for run in runs] == expected
        titles = [column.title for column in run_columns(runs)]
        assert ("simulated" in titles, "cost" in titles) == (is_titled, not is_titled)
