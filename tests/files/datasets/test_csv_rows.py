from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstore.core.errors import FileProblem
from tests.files.datasets.files import dataset, problem, rows

cells = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=6)


def table(text: str, **fields: object) -> list[dict[str, object]]:
    return [dict(row) for row in rows(text, "d.csv", **fields)]


@given(st.lists(st.tuples(cells, cells), min_size=1))
def test_cells_come_back_as_they_were_written(pairs: list[tuple[str, str]]) -> None:
    text = io.StringIO(newline="")
    csv.writer(text, quoting=csv.QUOTE_ALL).writerows([("a", "b"), *pairs])
    assert table(text.getvalue()) == [{"a": a, "b": b} for a, b in pairs]


@pytest.mark.parametrize("cell", ["007", "1.10", "true", "null", "", " x ", "\u2028", "\x0b"])
def test_a_cell_is_its_text(cell: str) -> None:
    assert table(f"a,b\n{cell},x\n") == [{"a": cell, "b": "x"}]


@pytest.mark.parametrize(
    "text", ["a,b\n1,2", "a,b\r\n1,2\r\n", "\ufeff \na,b\n\n1,2\n \n\n", '"a","b"\n"1","2"\n']
)
def test_ends_of_lines_blank_lines_and_marks_change_no_row(text: str) -> None:
    assert table(text) == [{"a": "1", "b": "2"}]


@pytest.mark.parametrize(("text", "delimiter"), [("sep=;\na;b\n1;2\n", ","), ("sep=;\na;b\n", ";")])
def test_a_line_of_excel_that_names_the_delimiter_is_a_problem(text: str, delimiter: str) -> None:
    with pytest.raises(FileProblem) as caught:
        rows(text, "d.csv", delimiter=delimiter)
    assert caught.value.line == 1
    assert "of Excel is not a header" in caught.value.message
    assert 'delimiter: ";"' in (caught.value.hint or "")


def test_a_mark_before_a_quoted_name_is_not_part_of_it() -> None:
    assert table('\ufeff"a","b"\n1,2\n') == [{"a": "1", "b": "2"}]


def test_columns_of_one_name_are_distinguished() -> None:
    assert table("a,A,a\n1,2,3\n") == [{"a": "1", "a_1": "2", "a_2": "3"}]


def test_a_column_is_found_as_it_is_written_in_the_header() -> None:
    assert rows("Raw Name,b\n1,2\n", "d.csv")[0]["Raw Name"] == "1"


def test_a_column_without_a_name_is_a_warning() -> None:
    actual = dataset(",b\n1,2\n", "d.csv")
    assert [dict(row.item) for row in actual] == [{"": "1", "b": "2"}]
    assert [item.message for item in actual.problems] == ["a column has no name"]


def test_quoted_cells_keep_their_line_breaks_and_the_count_of_lines() -> None:
    actual = [(row.line, row.item["a"]) for row in dataset('a\n"x\r\ny"\n\n"z"\n', "d.csv")]
    assert actual == [(2, "x\r\ny"), (5, "z")]


def test_tabs_divide_cells_in_a_file_named_tsv() -> None:
    assert rows("a\tb\n1,5\t2\n", "d.tsv") == [{"a": "1,5", "b": "2"}]


def test_a_delimiter_can_be_given() -> None:
    assert table("a;b\n1,5;2\n", delimiter=";") == [{"a": "1,5", "b": "2"}]


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("a;b\n1,5;2\n", "the only column is 'a;b': write 'delimiter: \";\"'"),
        ("a\tb\n1,5\t2\n", "the only column is 'a\tb': write 'delimiter: \"\\t\"'"),
        ('"a, b"\n1,5\n', "put quotes round a cell that holds ','"),
    ],
)
def test_a_row_that_is_too_long_may_have_another_delimiter(text: str, hint: str) -> None:
    assert problem(text, "d.csv").hint == hint


@pytest.mark.parametrize("where", ["b == 'x'", "item.b == 'x'"])
def test_a_column_that_is_not_there_may_be_behind_another_delimiter(where: str) -> None:
    error = problem("a;b\n1;2\n", "d.csv", where=where)
    assert error.hint == "the only column is 'a;b': write 'delimiter: \";\"'"


@pytest.mark.parametrize(
    ("where", "words"), [("n < 3", "the value is a text; "), ("n == 1", "a cell of a table is a ")]
)
def test_a_cell_that_is_compared_with_a_number_is_a_text(where: str, words: str) -> None:
    hint = problem("n\n1\n", "d.csv", where=where).hint or ""
    assert hint.startswith(words)
    assert hint.endswith("'item.NAME | int' is its number, as in 'item.level | int < 3'")


def test_the_hint_for_numbers_is_right() -> None:
    assert table("level\n1\n3\n", where="item.level | int < 3") == [{"level": "1"}]


def test_a_cell_of_blanks_is_a_value_where_there_is_one_column() -> None:
    assert table("a\n \nx\n") == [{"a": " "}, {"a": "x"}]


def test_long_cells_can_be_read() -> None:
    assert len(rows(f"a\n{'x' * 1_000_000}\n", "d.csv")[0]["a"]) == 1_000_000


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("a,b\n1,2\n3\n", 3, "the row has 1 cell for 2 columns: 'b' is missing"),
        ("a,b\n1,2,3\n", 2, "the row has 3 cells for 2 columns: '3' is extra"),
        ('a,b\n"x\ny",2\n3\n', 4, "the row has 1 cell for 2 columns: 'b' is missing"),
        ('a\n"x\ny\n', 2, "a quoted cell is never closed, up to line 3"),
        ('a,b\n"x"y,2\n', 2, "text behind the closing quote of a cell"),
        ("a,b\n1\r2,3\n", 2, "a carriage return inside the line"),
        ('a,"b\n', 1, "the header: a quoted cell is never closed"),
        ("a,b\n", None, "the file has a header but no rows: the test would have no cases"),
        ("\n\n", None, "the file has no rows: the test would have no cases"),
    ],
)
def test_what_is_wrong_is_reported_with_its_line(text: str, line: int | None, message: str) -> None:
    error = problem(text, "d.csv")
    assert (error.line, error.message) == (line, message)


def test_bad_rows_can_be_skipped() -> None:
    assert table('a,b\n1,2\n3\n"x"y,4\n5,6\n', onError="skip") == [
        {"a": "1", "b": "2"},
        {"a": "5", "b": "6"},
    ]
