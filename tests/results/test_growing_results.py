"""Lists of results that are added one by one, of which many are in a file."""

from __future__ import annotations

import pickle

import pytest

from evalstore.comparison.pair_groups import CellMarks, GrowingResults
from evalstore.core import batches
from evalstore.core.values import Result


def make(number: int) -> Result:
    return Result(
        file=f"{number % 3}.md",
        row=f"row {number}",
        key=f"{number}",
        prompt_number=0,
        prompt=None,
        model="m",
        test="t",
        evaluation="e",
        verdict="fail",
        score=0.5,
        sessions=("s", f"{number}"),
        evaluations=(f"{number}",),
        conversations=("c", "d"),
    )


RESULTS = [make(number) for number in range(20)]


@pytest.mark.parametrize("at_once", [3, 1_000])
def test_results_in_a_file_are_those_that_were_added(
    monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    monkeypatch.setattr(batches, "SIZE", at_once)
    listed = GrowingResults()
    for number, result in enumerate(RESULTS):
        assert (len(listed), [*listed]) == (number, RESULTS[:number])
        listed.append(result)
    assert listed == RESULTS
    assert listed != RESULTS[1:]
    assert [listed[0], listed[-1], *listed[2:9:3]] == [RESULTS[0], RESULTS[-1], *RESULTS[2:9:3]]
    assert pickle.loads(pickle.dumps(listed)) == RESULTS


def test_the_last_list_with_a_cell_decides_its_mark() -> None:
    first, second = GrowingResults(), GrowingResults()
    for result in RESULTS[:4]:
        first.append(result)
    for result in RESULTS[3:6]:
        second.append(result)
    marks = CellMarks([("x", first), ("y", second)])
    assert [marks.of(result.cell) for result in RESULTS[:7]] == [*"xxxyyy", ""]
