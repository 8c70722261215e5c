"""Checks of the last number in an answer."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstore.checks.parser import read_check
from evalstore.checks.types.number import as_number, last_number
from evalstore.core.errors import FileProblem
from evalstore.core.values import Json
from tests.checks.checking import judged, verdict


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("The total is 42.", "42"),
        ("3 of 10", "10"),
        ("3.14...", "3.14"),
        (".5", ".5"),
        ("wait...5", "5"),
        ("-5 degrees", "-5"),
        ("minus: −5", "-5"),
        ("x=-5", "-5"),
        ("**-5**", "-5"),
        ("+5", "5"),
        ("2020-2021", "2021"),
        ("covid-19", "19"),
        ("7 - 5", "5"),
        ("1.5e-3 m", "0.0015"),
        ("5eggs", "5"),
        ("42km", "42"),
        ("50%", "50"),
        ("$1,000", None),
        ("٤٢", "42"),
        ("v1.2.3", None),
        ("2 but 1.2.3", None),
        ("no digits", None),
        ("", None),
    ],
)
def test_the_last_number_is_found(text: str, number: str | None) -> None:
    assert last_number(text) == (None if number is None else Decimal(number))


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("$1,234,567.50", "1234567.5"),
        ("-1,000", "-1000"),
        ("1,000 and 2", "2"),
        ("1, 2", "2"),
        ("1,000.", "1000"),
        ("12", "12"),
    ],
)
def test_commas_between_thousands_are_read_when_asked_for(text: str, number: str) -> None:
    assert last_number(text, commas=True) == Decimal(number)


@given(st.integers(-(10**12), 10**12), st.sampled_from(["", "It is ", "3 or ", "= "]))
def test_a_number_is_read_as_it_was_written(number: int, before: str) -> None:
    assert last_number(f"{before}{number}.") == number
    assert last_number(f"{before}{number:,}!", commas=True) == number


@given(st.text(alphabet="0123456789.,-+eE xX−", max_size=30), st.booleans())
def test_any_text_has_a_number_or_none(text: str, commas: bool) -> None:
    actual = last_number(text, commas=commas)
    assert actual is None or actual.is_finite()


@pytest.mark.parametrize(
    ("check", "passing", "failing"),
    [
        ({"number": 42}, "42.0", "43"),
        ({"number": "42"}, "42", "24"),
        ({"number": " 1,000 ", "commas": True}, "1,000", "1"),
        ({"number": 42, "op": "!="}, "43", "42"),
        ({"number": 5, "op": "<"}, "4.9", "5"),
        ({"number": 5, "op": "<="}, "5", "5.01"),
        ({"number": 5, "op": ">"}, "1e3", "5"),
        ({"number": 5, "op": ">="}, "5", "-6"),
        ({"number": 3, "epsilon": 0.1}, "3.1", "3.11"),
        ({"number": 0.3, "epsilon": 0}, "0.30", "0.3000000000000001"),
        ({"number": 3, "op": "!=", "epsilon": 0.1}, "3.2", "2.9"),
        ({"number": 12345678901234567890}, "12345678901234567890", "12345678901234567891"),
        ({"number": 1, "op": ">"}, "9" * 5_000, "0." + "9" * 5_000),
        ({"number": 1, "op": "!="}, "2", "no number"),
        ({"number": 0, "epsilon": 1}, "1e-999999999999", "1e999999999999"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_number_passes_or_fails(check: Json, passing: str, failing: str) -> None:
    assert (verdict(check, passing), verdict(check, failing)) == ("pass", "fail")


@pytest.mark.parametrize(
    ("check", "answer", "words"),
    [
        ({"number": 42}, "It is 41.", "expected 42, found 41"),
        (
            {"number": 3, "epsilon": 0.5},
            "4",
            "expected 3 ± 0.5, found 4",
        ),
        (
            {"number": 1000},
            "It is 1,000.",
            "expected 1000, found no number that can be read in 'It is 1,000.'; "
            "with 'commas: true' it would be 1000",
        ),
        ({"number": 5, "op": "<"}, "many", "expected a number < 5, found no number in 'many'"),
    ],
    ids=str,
)
def test_a_failure_says_which_number_was_found(check: Json, answer: str, words: str) -> None:
    assert judged(check, answer) == ("fail", words)


def test_a_very_long_number_is_shown_shortened() -> None:
    assert len(judged({"number": 1}, "9" * 100_000)[1]) < 100


@pytest.mark.parametrize(
    ("check", "message"),
    [
        ({"number": "many"}, "'expected' must be a number, not 'many'"),
        ({"number": "1.2.3"}, "'expected' must be a number, not '1.2.3'"),
        ({"number": True}, "'expected' must be a number, not 'true'"),
        ({"number": None}, "'expected' must be a number, not ''"),
        ({"number": "1e999"}, "'expected' must be a number, not '1e999'"),
        ({"number": 1, "op": "="}, "'op' cannot be '='"),
        ({"number": 1, "epsilon": -1}, "'epsilon' must be a number of at least 0"),
        ({"number": 1, "op": "<", "epsilon": 1}, "'epsilon' has no meaning with '<'"),
    ],
    ids=str,
)
def test_a_check_of_no_number_is_a_problem(check: Json, message: str) -> None:
    with pytest.raises(FileProblem) as caught:
        read_check(check)
    assert caught.value.message == message


@pytest.mark.parametrize("written", [5, 5.0, "5", "5.00", "+5"])
def test_the_same_number_is_the_same_check(written: Json) -> None:
    assert read_check({"number": written, "epsilon": 0}) == {
        "type": "number",
        "revision": 2,
        "expected": 5,
    }


@pytest.mark.parametrize(
    ("text", "number"),
    [("-1,2,3", 3), ("10,20,30", 30), ("1,234,56", None), ("1,234,567,89", None)],
)
def test_of_a_list_the_last_number_is_read_unless_it_may_be_thousands(
    text: str, number: int | None
) -> None:
    assert last_number(text, commas=True) == number


def test_an_expected_number_is_no_list() -> None:
    assert as_number("1,2,3", commas=True) is None
