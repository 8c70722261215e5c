"""Which columns there is room for."""

from __future__ import annotations

import pytest

from evalstore.interfaces.tui.grid import GAP, MARGIN, Column, fit_columns

COLUMNS = [
    Column("file", 10, grows=True),
    Column("cost", 5, rank=1),
    *(Column(f"model {number}", 14, picks=True, least=8) for number in range(6)),
]


@pytest.mark.parametrize("width", range(1, 160, 23))
@pytest.mark.parametrize("picked", range(6))
def test_the_picked_column_is_seen_and_all_fit(width: int, picked: int) -> None:
    laid = fit_columns(COLUMNS, width, picked, 0)
    assert 2 + picked in laid.shown
    if len(laid.shown) > 2:
        assert MARGIN + sum(column.width + GAP for column in laid.columns) - GAP <= width


TEXTS = [
    Column("run", 9),
    Column("when", 14),
    Column("passed", 6, right=True),
    Column("why", 40, least=10, rank=1),
]


@pytest.mark.parametrize("width", range(3, 90))
def test_nothing_is_drawn_beyond_the_table_and_no_number_is_cut(width: int) -> None:
    laid = fit_columns(TEXTS, width, 0, 0)
    assert laid.columns
    assert MARGIN + sum(column.width + GAP for column in laid.columns) - GAP <= width
    assert 2 not in laid.shown or laid.columns[2].width == 6
    assert len(laid.columns) == 1 or min(column.width for column in laid.columns) >= 6


def test_columns_become_narrow_before_they_are_left_out() -> None:
    assert [column.width for column in fit_columns(COLUMNS, 140, 0, 0).columns] == [35, 5] + [
        14
    ] * 6
    narrow = fit_columns(COLUMNS, 90, 0, 0)
    assert len(narrow.shown) == 8
    assert {column.width for column in narrow.columns[2:]} == {9}


def test_what_is_left_out_is_reported_at_its_side() -> None:
    laid = fit_columns(COLUMNS, 50, 3, 0)
    titles = [column.title for column in laid.columns if column.picks]
    assert titles == ["‹ model 1", "model 2", "model 3 ›"]


def test_the_window_moves_only_when_it_must() -> None:
    assert fit_columns(COLUMNS, 50, 2, 1).first == 1
    assert fit_columns(COLUMNS, 50, 0, 1).first == 0
    assert fit_columns(COLUMNS, 50, 5, 1).first == 3


def test_a_column_grows_no_wider_than_what_is_in_it() -> None:
    columns = [
        Column("file", 22, least=8),
        Column("row", 5, least=8),
        Column("model", 18, picks=True, least=11),
    ]
    assert [column.width for column in fit_columns(columns, 200, 0, 0).columns] == [22, 5, 18]
    assert [column.width for column in fit_columns(columns, 48, 0, 0).columns] == [22, 5, 15]
    assert [column.width for column in fit_columns(columns, 36, 0, 0).columns] == [14, 5, 11]


def test_names_of_rows_are_whole_before_titles_are() -> None:
    columns = [
        Column("file", 21, least=9, is_name=True),
        Column("row", 15, least=8, is_name=True),
        Column("a long model", 18, picks=True, least=11),
        Column("another model", 18, picks=True, least=11),
    ]
    widths = [column.width for column in fit_columns(columns, 72, 0, 0).columns]
    assert widths == [21, 15, 14, 14]


def test_a_figure_is_not_cut_for_the_signs_of_columns_on_both_sides() -> None:
    columns = [
        Column("case", 8),
        *(
            Column(name, 9, picks=True, head=f"{name}\n50% 20-80")
            for name in ("first", "hasty", "second")
        ),
    ]
    for width in range(20, 32):
        (title, *_) = [it.title for it in fit_columns(columns, width, 1, 1).columns if it.picks]
        assert title == "‹ hasty ›\n50% 20-80"
