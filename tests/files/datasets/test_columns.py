from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstore.core.errors import FileProblem
from evalstore.files.datasets import stable_names
from evalstore.files.jinja_sandbox import run
from evalstore.files.processes.limited_calls import DataItem
from tests.files.datasets.files import json_lines, problem, rows

texts = st.lists(st.text(max_size=8), max_size=12)


def item(*values: dict[str, object]) -> DataItem:
    """The first of some rows."""
    return rows(json_lines(*values))[0]


def filled(template: str, *values: dict[str, object]) -> str:
    return run(template, 1, {"item": item(*values)})


# --- the rule


@pytest.mark.parametrize(
    ("written", "names"),
    [
        (["Question", "Answer"], ["question", "answer"]),
        (["a b", "a-b", "a.b"], ["a_b", "a_b_1", "a_b_2"]),
        (["A", "a", "a_1"], ["a", "a_1", "a_1_1"]),
        (["a_1", "a", "A"], ["a_1", "a", "a_2"]),
        (["Größe", "質問", "वर्ण"], ["größe", "質問", "वर्ण"]),
        (["x²", "№", "🙂"], ["x_", "_", "__1"]),
        (["", ""], ["", "_1"]),
        (["if", "item", "for"], ["if", "item", "for"]),
        (["İ"], ["i̇"]),
    ],
)
def test_names_are_made_from_left_to_right(written: list[str], names: list[str]) -> None:
    assert stable_names(written) == names


@given(texts)
def test_every_column_has_a_name_of_its_own(written: list[str]) -> None:
    names = stable_names(written)
    assert len(set(names)) == len(names) == len(written)


@given(texts)
def test_a_name_holds_only_what_an_identifier_can_hold(written: list[str]) -> None:
    assert all(f"a{name}".isidentifier() for name in stable_names(written))


@given(texts)
def test_names_of_names_are_the_same_names(written: list[str]) -> None:
    names = stable_names(written)
    assert stable_names(names) == names


@given(texts, texts)
def test_later_columns_do_not_change_earlier_names(first: list[str], later: list[str]) -> None:
    assert stable_names([*first, *later])[: len(first)] == stable_names(first)


# --- columns of a file


def test_a_column_has_one_name_in_all_rows() -> None:
    values = rows(json_lines({"Text": "x"}, {"text": "y", "Text": "z"}))
    assert values == [{"text": "x"}, {"text_1": "y", "text": "z"}]


def test_a_key_that_comes_later_does_not_take_the_place_of_an_earlier_one() -> None:
    values = rows(json_lines({"Text": "x"}, {"text": "y"}))
    assert "text" not in values[1]


def test_columns_are_renamed_by_the_name_as_written_or_the_stable_name() -> None:
    values = rows(json_lines({"A b": 1, "C d": 2}), rename={"A b": "x", "c_d": "y"})
    assert values == [{"x": 1, "y": 2}]


def test_a_renamed_column_is_still_found_as_written() -> None:
    assert rows(json_lines({"A b": 1}), rename={"A b": "x"})[0]["A b"] == 1


def test_two_columns_can_change_their_names() -> None:
    assert rows(json_lines({"a": 1, "b": 2}), rename={"a": "b", "b": "a"}) == [{"b": 1, "a": 2}]


@pytest.mark.parametrize(
    ("renamed", "message"),
    [
        ({"answr": "x"}, "'rename': unknown column 'answr'"),
        ({"answer": "question"}, "'rename' gives two columns the name 'question'"),
        ({"Answer": "x", "answer": "y"}, "'rename' gives the column 'answer' two names"),
    ],
)
def test_a_rename_that_cannot_be_is_a_problem(renamed: dict[str, str], message: str) -> None:
    assert problem('{"Answer": 1, "question": 2}', rename=renamed).message == message


def test_a_wrong_old_name_is_answered_with_the_nearest() -> None:
    error = problem(json_lines({"answer": 1}), rename={"answr": "x"})
    assert error.hint == "did you mean 'answer'?"


# --- rows in templates


@pytest.mark.parametrize("name", ["items", "keys", "values", "get", "pop", "update", "copy"])
def test_a_column_named_like_a_method_is_a_column(name: str) -> None:
    assert filled("{{ item.%s }}" % name, {name: "x"}) == "x"  # noqa: UP031 - braces are Jinja's


@pytest.mark.parametrize("name", ["items", "keys", "values", "get", "pop", "update", "copy"])
@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("row {{ item }}", 'row {"%s": "x"}'),
        ("{{ item | tojson }}", '{"%s": "x"}'),
        ("{{ [item] }}", '[{"%s": "x"}]'),
        ("{{ item | dictsort }}", '[["%s", "x"]]'),
        ("{{ dict(item) }}", '{"%s": "x"}'),
    ],
)
def test_a_whole_row_is_shown_whatever_its_columns_are_called(
    name: str, template: str, text: str
) -> None:
    assert filled(template, {name: "x"}) == text.replace("%s", name)


def test_rows_are_sampled_whatever_their_columns_are_called() -> None:
    (row,) = rows(json_lines({"items": 1}, {"items": 2}), sample={"n": 1, "seed": 3})
    assert row["items"] in (1, 2)


def test_a_column_named_like_a_method_stays_missing_in_a_row_without_it() -> None:
    assert filled("{{ item.values is defined }}", {"a": 1}, {"values": 2}) == "false"


def test_methods_are_there_when_no_column_has_their_name() -> None:
    assert filled("{% for k, v in item.items() %}{{ k }}{{ v }}{% endfor %}", {"A": 1}) == "a1"


@pytest.mark.parametrize(
    "template", ["{{ item.raw_name }}", "{{ item['raw_name'] }}", "{{ item['Raw Name'] }}"]
)
def test_a_column_is_found_by_both_names(template: str) -> None:
    assert filled(template, {"Raw Name": "x"}) == "x"


@pytest.mark.parametrize(
    ("name", "there"), [("Raw Name", True), ("raw_name", True), ("raw name", False)]
)
def test_a_row_knows_which_names_it_has(name: str, there: bool) -> None:
    assert (name in item({"Raw Name": "x"})) is there


@pytest.mark.parametrize(("name", "value"), [("Raw Name", 1), ("raw_name", 1), ("other", "none")])
def test_get_finds_both_names_or_the_default(name: str, value: object) -> None:
    assert item({"Raw Name": 1}).get(name, "none") == value


def test_a_missing_column_is_not_an_empty_text() -> None:
    with pytest.raises(FileProblem, match="has no attribute 'b'"):
        filled("{{ item.b }}", {"a": 1})


def test_names_with_underscores_in_front_are_columns() -> None:
    assert filled("{{ item._id }}", {"_id": "x"}) == "x"


def test_a_row_prints_as_json_by_its_stable_names() -> None:
    assert json.loads(filled("{{ item }}", {"A b": [1, None]})) == {"a_b": [1, None]}
