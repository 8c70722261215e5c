"""The way from one result that did not pass to the next."""

from __future__ import annotations

import pytest

from evalstore.interfaces.tui.case_listing import CellPlace, next_cell

FAILING = [[], [0, 1], [1], [], [0, 2]]
"""By line, the candidates that did not pass."""
ALL = [CellPlace(1, 0), CellPlace(1, 1), CellPlace(2, 1), CellPlace(4, 0), CellPlace(4, 2)]


@pytest.mark.parametrize("by", [1, -1])
def test_each_result_that_did_not_pass_is_visited_once_in_each_direction(by: int) -> None:
    place, visited = CellPlace(0, 0), []
    for _ in ALL:
        found = next_cell(len(FAILING), FAILING.__getitem__, place, by)
        assert found
        visited.append(place := found)
    assert visited == ALL[::by]
    assert next_cell(len(FAILING), FAILING.__getitem__, place, by) == ALL[::by][0]


def test_another_candidate_of_the_line_comes_before_the_next_line() -> None:
    assert next_cell(5, FAILING.__getitem__, CellPlace(1, 0), 1) == CellPlace(1, 1)
    assert next_cell(5, FAILING.__getitem__, CellPlace(4, 1), -1) == CellPlace(4, 0)


def test_the_only_one_is_found_from_itself_and_without_any_there_is_none() -> None:
    def only(line: int) -> list[int]:
        return [1] if line == 2 else []

    assert next_cell(4, only, CellPlace(2, 1), 1) == CellPlace(2, 1)
    assert next_cell(4, lambda _line: [], CellPlace(2, 1), 1) is None
    assert next_cell(0, only, CellPlace(0, 0), -1) is None
