from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstore.files.yaml12 import hint_on_comma
from tests.files.datasets.files import dataset, json_lines, place_and_message, problem, rows

numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    st.none() | st.booleans() | numbers | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)


@given(st.lists(st.dictionaries(st.sampled_from("abcd"), values), min_size=1), st.booleans())
def test_rows_come_back_as_they_were_written(written: list[dict[str, Any]], ascii: bool) -> None:
    text = "".join(json.dumps(row, ensure_ascii=ascii) + "\n" for row in written)
    assert rows(text) == written


@given(st.lists(st.dictionaries(st.sampled_from("abcd"), values), min_size=1))
def test_a_list_has_the_same_rows_as_lines(written: list[dict[str, Any]]) -> None:
    assert rows(json.dumps(written, indent=1), "d.json") == written


# --- lines


@pytest.mark.parametrize(
    "text",
    [
        '{"a":1}\n{"a":2}',
        '{"a":1}\r\n{"a":2}\r\n',
        '\n{"a":1}\n\n \t\n{"a":2}\n\n',
        '\ufeff{"a":1}\n{"a":2}\n',
        ' {"a":1} \n\t{"a":2}',
    ],
)
def test_ends_of_lines_blank_lines_and_marks_change_no_row(text: str) -> None:
    assert rows(text) == [{"a": 1}, {"a": 2}]


@pytest.mark.parametrize("character", ["\u2028", "\u2029", "\x85"])
def test_a_line_ends_at_no_other_character(character: str) -> None:
    assert rows('{"a":"x%sy"}\n' % character) == [{"a": f"x{character}y"}]  # noqa: UP031


def test_a_row_knows_its_number_and_its_line() -> None:
    actual = [(row.number, row.line) for row in dataset('{"a":1}\n\n{"a":2}')]
    assert actual == [(1, 1), (2, 3)]


def test_a_missing_key_stays_missing() -> None:
    assert rows(json_lines({"a": 1}, {"b": None})) == [{"a": 1}, {"b": None}]


def test_equal_rows_are_as_many_rows() -> None:
    assert len(rows(json_lines({"a": 1}, {"a": 1}, {"a": 1}))) == 3


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ('{"a":1}\n{"a":\n', (2, 6), "not JSON: expecting value"),
        ('{"a" 1}', (1, 6), "not JSON: expecting ':' delimiter"),
        ('  {"a":1} {"a":2}', (1, 11), "there is more behind the row"),
        ('{"a":"x', (1, 6), "not JSON: unterminated string"),
        ("\n[1]", (2, None), "a row must be an object, not a list"),
        ("null", (1, None), "a row must be an object, not null"),
        ('"x"', (1, None), "a row must be an object, not a text"),
        ("true", (1, None), "a row must be an object, not true or false"),
        ("7", (1, None), "a row must be an object, not a number"),
        ('{"a":NaN}', (1, None), "'NaN' is not a JSON value"),
        ('{"a":[-Infinity]}', (1, None), "'-Infinity' is not a JSON value"),
        ('{"a":1e999}', (1, None), "the number '1e999' is too large"),
        ('{"a":%s}' % ("9" * 5000), (1, 1), "not JSON: a number has too many digits"),
        ('{"a":{"b":1,"b":1}}', (1, None), "key 'b' appears twice"),
        ('{"a":%s}' % ("[" * 150 + "]" * 150), (1, None), "the value is nested too deeply"),
        (
            '{"a":%s}' % ("[" * 90000 + "]" * 90000),
            (1, 1),
            "not JSON: the value is nested too deeply",
        ),
    ],
    ids=lambda value: value[:20] if isinstance(value, str) else None,
)
def test_an_invalid_row_is_reported_with_its_place(
    text: str, place: tuple[int, int | None], message: str
) -> None:
    error = problem(text)
    assert (error.line, error.column, error.message) == (*place, message)


@pytest.mark.parametrize("text", ['{"a":"\\ud83d"}', '{"\\uD83D":1}', '{"a":["\\ude00x"]}'])
def test_half_of_a_surrogate_pair_is_reported(text: str) -> None:
    assert "half of a surrogate pair" in problem(text).message


def test_a_whole_surrogate_pair_is_a_character() -> None:
    assert rows('{"a":"\\ud83d\\ude00"}') == [{"a": "😀"}]


def test_a_document_over_several_lines_is_reported() -> None:
    error = problem('[\n  {"a": 1}\n]\n')
    assert error.hint == "if this is one document over several lines: 'format: json'"


def test_no_more_columns_than_anyone_can_want() -> None:
    text = "".join(f'{{"k{number}":1}}\n' for number in range(10_001))
    assert place_and_message(text) == (10_001, "the rows have more than 10,000 different keys")


# --- documents


def test_rows_of_a_document_know_their_numbers() -> None:
    actual = [(row.number, row.line) for row in dataset('[\n\n{"a":\n1}, {"a":2}]', "d.json")]
    assert actual == [(1, None), (2, None)]


@pytest.mark.parametrize(
    ("path", "document"),
    [
        ("data", {"data": [{"a": 1}]}),
        ("data.rows", {"data": {"rows": [{"a": 1}]}}),
        ("1.rows", [0, {"rows": [{"a": 1}]}]),
    ],
)
def test_rows_are_found_further_inside(path: str, document: Any) -> None:
    assert rows(json.dumps(document), "d.json", rows=path) == [{"a": 1}]


@pytest.mark.parametrize(
    ("text", "path", "message"),
    [
        ('{"data": {}}', "daten", "'rows': the document has no 'daten'"),
        ('{"data": {}}', "data.rows", "'rows': 'data' has no 'rows'"),
        ('{"data": {}}', "data", "'data' must be a list of rows"),
        ('{"data": [1]}', "data", "row 1: a row must be an object, not a number"),
        ('{"data": [{"a": NaN}]}', "data", "'NaN' is not a JSON value"),
        ('{"data": [], "data": []}', "data", "key 'data' appears twice"),
        ('{"data": [{"a": "\\ud800"}]}', "data", "row 1: a text holds half"),
        ('{"data": [{"a": %s}]}' % ("[" * 150 + "]" * 150), "data", "row 1: the value is nested"),
    ],
)
def test_what_is_wrong_further_inside_is_reported(text: str, path: str, message: str) -> None:
    assert problem(text, "d.json", rows=path).message.startswith(message)


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ('{"a":1}', (1, None), "the document must be a list of rows"),
        ('[{"a":1},\n {"a":}]', (2, 7), "not JSON: expecting value"),
        ('[{"a":1},\n]', (2, 1), "not JSON: expecting value"),
        ('[{"a":1}\n {"a":2}]', (2, 2), "not JSON: expecting ',' delimiter"),
        ('[{"a":1}', (1, 9), "not JSON: expecting ',' delimiter"),
        ("[", (1, 2), "not JSON: expecting value"),
        ('[{"a":1}]\n[', (2, 1), "not JSON: more than one document"),
        ('[{"a":1},\n3]', (None, None), "row 2: a row must be an object, not a number"),
        ('[{"a":1},\n{"a":NaN}]', (None, None), "'NaN' is not a JSON value"),
    ],
)
def test_what_is_wrong_in_a_document_is_reported(
    text: str, place: tuple[int | None, int | None], message: str
) -> None:
    error = problem(text, "d.json")
    assert (error.line, error.column, error.message) == (*place, message)


@pytest.mark.parametrize(
    ("text", "name", "hint"),
    [
        ('{"a":1,}\n', "d.jsonl", "remove the comma before '}'"),
        ('[{"a":1},\n ]', "d.json", "remove the comma before ']'"),
        ('[{"a":}]', "d.json", None),
    ],
)
def test_the_hint_on_a_comma_too_many_names_it(text: str, name: str, hint: str | None) -> None:
    assert problem(text, name).hint == hint


@pytest.mark.parametrize("at", [8, 12], ids=["3.13", "older"])
def test_the_hint_on_a_comma_is_the_same_in_all_versions_of_python(at: int) -> None:
    assert hint_on_comma('[{"a":1}, \n ], [2, ]', at) == "remove the comma before ']'"


def test_lines_in_a_file_named_json_are_reported() -> None:
    error = problem('{"a":1}\n{"a":2}\n', "d.json")
    assert error.hint == "if every line is a row: 'format: jsonl'"


def test_a_document_that_is_not_a_list_says_where_one_is() -> None:
    assert problem('{"v": 1, "data": []}', "d.json").hint == (
        "give the place of the rows, as in 'rows: data'"
    )


def test_bad_rows_of_a_document_can_be_skipped() -> None:
    text = '[{"a":1}, 3, {"a":2}]'
    assert rows(text, "d.json", onError="skip") == [{"a": 1}, {"a": 2}]
