"""Packed results are the same when they are looked at again."""

from __future__ import annotations

from typing import Any

import pytest

from evalstore.core.results import Result
from evalstore.results.table.case_rows import CaseRow, ResultForm, ResultPacker, in_order, put

ONE, TWO, THREE, FOUR, FIVE = (digit * 32 for digit in "12345")
KEY = "0123456789abcdef"


def a_result(**others: Any) -> Result:
    values: dict[str, Any] = {
        "file": "tests/a.md",
        "row": "n=1",
        "key": KEY,
        "prompt_number": 0,
        "prompt": None,
        "model": "small",
        "test": ONE,
        "evaluation": TWO,
        "verdict": "pass",
        "score": 0.25,
        "sessions": (THREE,),
        "evaluations": (FOUR,),
    }
    return Result(**{**values, **others})


def row_of(*results: Result | None) -> CaseRow:
    return CaseRow("tests/a.md", "n=1", "", (), ResultPacker().pack_all(results))


@pytest.mark.parametrize(
    "others",
    [
        {},
        {"key": ""},
        {"evaluation": None, "verdict": None, "evaluations": ()},
        {"verdict": None, "score": None, "sessions": (), "evaluations": (), "has_failed": True},
        {"sessions": (THREE, FOUR), "evaluations": (), "required_answers": 2},
        {"conversations": (ONE, FIVE), "sessions": (), "prompt": FIVE, "prompt_number": 3},
    ],
)
def test_a_result_is_the_same_after_packing(others: dict[str, Any]) -> None:
    result = a_result(**others)
    row = row_of(result)
    assert isinstance(row.packed[0], ResultForm)
    assert row.results == (result,)
    assert row.sessions == [*result.sessions]
    assert row.words == (result.verdict or result.word or "answered",)
    assert (row.prompt_id, row.prompt_numbers) == (result.prompt, [result.prompt_number])


@pytest.mark.parametrize(
    "others",
    [
        {"test": "A" * 32},
        {"sessions": ("not an id",)},
        {"sessions": (ONE[1:], ONE + "1")},
        {"key": "abc"},
        {"evaluations": (" " + ONE[1:],)},
    ],
)
def test_a_result_whose_ids_are_not_ids_is_kept_as_it_is(others: dict[str, Any]) -> None:
    result = a_result(**others)
    row = row_of(result)
    assert row.packed[0] is result
    assert row.results == (result,)
    assert row.sessions == [*result.sessions]
    assert (row.words, row.prompt_id, row.prompt_numbers) == (("pass",), None, [0])


def test_equal_forms_are_there_once() -> None:
    packer = ResultPacker()
    one, other = packer.pack(a_result()), packer.pack(a_result(test=FIVE))
    assert one[0] is other[0]
    assert one[1] != other[1]


def test_candidates_without_a_result_keep_their_place() -> None:
    result = a_result(model="large")
    row = row_of(None, result)
    assert row.results == (None, result)
    assert row.words == (None, "pass")


def test_results_are_put_and_ordered_by_candidate() -> None:
    small, large = a_result(), a_result(model="large", verdict="fail")
    packer = ResultPacker()
    packed = put(packer.pack(small), 2, packer.pack(large))
    assert CaseRow("tests/a.md", "n=1", "", (), packed).results == (small, None, large)
    packed = in_order(put(packed, 1, packer.pack(large)), (3, 1, 0))
    assert CaseRow("tests/a.md", "n=1", "", (), packed).results == (None, large, small)
