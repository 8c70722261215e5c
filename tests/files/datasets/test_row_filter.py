from __future__ import annotations

import random
from typing import Any

import pytest

from tests.files.datasets.files import dataset, json_lines, place_and_message, problem, rows

MANY = [{"Id": number, "level": number % 3} for number in range(300)]


def ids(data: list[dict[str, Any]], **fields: Any) -> list[int]:
    return [row["id"] for row in rows(json_lines(*data), **fields)]


# --- where


@pytest.mark.parametrize(
    ("where", "kept"),
    [
        ("item.level == 2", [2, 5]),
        ("level == 2", [2, 5]),
        ("item['Id'] in [1, 4]", [1, 4]),
        ("id > 3 and not level", []),
        ("level", [1, 2, 4, 5]),
        ("id in range(2)", [0, 1]),
        ('{"a": {"b": id == 3}}.a.b', [3]),
    ],
)
def test_rows_are_kept_for_which_the_condition_holds(where: str, kept: list[int]) -> None:
    actual = ids([*MANY[:6], {"Id": -1, "level": 1}], where=f"({where}) or id == -1")
    assert actual == [*kept, -1]


def test_a_condition_that_keeps_nothing_is_a_problem() -> None:
    actual = place_and_message(json_lines(*MANY), where="id < 0")
    assert actual == (2, "'where' does not keep any of the 300 rows")


def test_a_column_that_is_not_there_is_a_problem() -> None:
    error = problem(json_lines(*MANY), where="levle > 1")
    assert (error.message, error.hint) == (
        "'where': unknown column 'levle'",
        "did you mean 'level'?",
    )


@pytest.mark.parametrize("where", ["b == 1", "item.b == 1"])
def test_a_row_without_the_column_is_a_problem(where: str) -> None:
    error = problem(json_lines({"b": 1}, {"a": 2}), where=where)
    assert error.message.startswith("'where' fails for line 2 of 'd.jsonl': ")
    assert error.hint == "for rows without that column write 'item.NAME is defined and …'"


def test_a_row_without_the_column_can_be_left_out() -> None:
    assert rows(json_lines({"b": 1}, {"a": 2}), where="item.b is defined") == [{"b": 1}]


def test_a_condition_that_fails_is_a_problem_of_the_test_file() -> None:
    actual = problem(json_lines({"a": "x"}), where="a > 1").at("tests/t.md")
    assert (actual.file, actual.line) == ("tests/t.md", 2)


def test_rows_keep_their_numbers() -> None:
    table = dataset(json_lines(*MANY[:6]), where="level == 2")
    assert [(row.number, row.line) for row in table] == [(3, 3), (6, 6)]


# --- limit


@pytest.mark.parametrize(("limit", "count"), [(1, 1), (5, 5), (1000, 300)])
def test_the_first_rows_are_taken(limit: int, count: int) -> None:
    assert ids(MANY, limit=limit) == list(range(count))


def test_the_limit_counts_rows_that_are_kept() -> None:
    assert ids(MANY, where="level == 2", limit=2) == [2, 5]


def test_a_limit_changes_no_name() -> None:
    assert dataset(json_lines({"A": 1}, {"a": 2, "b": 3}), limit=1).columns == ("a", "a_1", "b")


# --- sample


def test_a_sample_has_the_size_asked_for_and_the_order_of_the_file() -> None:
    actual = ids(MANY, sample={"n": 20})
    assert (len(actual), actual) == (20, sorted(set(actual)))


def test_a_sample_is_the_same_each_time() -> None:
    assert ids(MANY, sample={"n": 20, "seed": 3}) == ids(MANY, sample={"n": 20, "seed": 3})


def test_another_seed_draws_others() -> None:
    assert ids(MANY, sample={"n": 20, "seed": 3}) != ids(MANY, sample={"n": 20, "seed": 4})


def test_the_order_of_the_rows_does_not_decide_the_sample() -> None:
    shuffled = random.Random(0).sample(MANY, len(MANY))
    assert sorted(ids(shuffled, sample={"n": 20})) == ids(MANY, sample={"n": 20})


def test_a_larger_sample_holds_the_smaller() -> None:
    assert set(ids(MANY, sample={"n": 20})) < set(ids(MANY, sample={"n": 40}))


def test_other_names_do_not_decide_the_sample() -> None:
    values = rows(json_lines(*MANY), sample={"n": 20}, rename={"Id": "x"})
    assert [row["x"] for row in values] == ids(MANY, sample={"n": 20})


def test_a_sample_is_drawn_from_the_rows_that_are_left() -> None:
    actual = ids(MANY, where="level == 2", limit=50, sample={"n": 10})
    assert set(actual) < set(range(2, 150, 3))


def test_a_sample_of_more_rows_than_there_are_is_all_of_them() -> None:
    assert ids(MANY[:5], sample={"n": 10}) == [0, 1, 2, 3, 4]


def test_every_row_is_about_as_likely() -> None:
    times = [0] * 20
    for seed in range(400):
        for number in ids(MANY[:20], sample={"n": 5, "seed": seed}):
            times[number] += 1
    assert max(abs(count - 100) for count in times) < 45  # five standard deviations
