"""The columns of the list of runs at several widths."""

from __future__ import annotations

import pytest

from evalstore.interfaces.tui.grid import fit_columns
from evalstore.interfaces.tui.render.run_details import run_columns
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
