"""Samples of EvalsOne."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalstore.core.errors import EvalstoreError
from tests.exchange.importers.importing import imported, lines

HI = [{"role": "user", "content": "Hi"}]


def test_a_recorded_answer_is_judged_without_a_call(tmp_path: Path) -> None:
    rows = lines({"input": HI, "completion": "Yo"}, {"input": HI, "completion": ""}, {"input": HI})
    made = imported(tmp_path, "evalsone", {"s.jsonl": rows})
    assert made.recorded("tests/s.md") == ["Yo", "", None]


def test_the_context_reaches_the_judge_only(tmp_path: Path) -> None:
    row = {"input": HI, "context": ["Shops close at six."], "ideal": ["a", "b"]}
    made = imported(tmp_path, "evalsone", {"s.jsonl": lines(row)})
    assert made.messages("tests/s.md") == [[("user", "Hi")]]
    assert made.instructions("tests/s.md") == [
        "The answer must agree with one of these:\n\n- a\n\n- b\n\n\n"
        "Facts to judge by, which the candidate has not seen:\n\n- Shops close at six."
    ]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"ideal": "a"}, "The answer must agree with one of these:\n\n- a"),
        ({}, "The answer must answer the last message correctly and completely."),
    ],
)
def test_rows_need_not_have_the_same_fields(
    tmp_path: Path, row: dict[str, str], reason: str
) -> None:
    rows = lines({"input": HI, **row}, {"input": HI, "ideal": ["b", "c"]})
    made = imported(tmp_path, "evalsone", {"s.jsonl": rows})
    assert made.instructions("tests/s.md")[0].strip() == reason


def test_one_ideal_answer_is_given_unchanged(tmp_path: Path) -> None:
    made = imported(tmp_path, "evalsone", {"s.jsonl": lines({"input": HI, "ideal": "*a*"})})
    assert made.instructions("tests/s.md") == ["The answer must agree with this:\n\n*a*"]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"input": [{"role": "tool", "content": "x"}]}, "message 1 has the role 'tool'"),
        ({"input": HI, "completion": 4}, "'completion' must be a text"),
        ({"input": HI, "ideal": [4]}, "'ideal' must be a text or a list of texts"),
        ({"input": HI, "context": {}}, "'context' must be a text or a list of texts"),
    ],
)
def test_a_bad_row_is_reported_with_its_line(tmp_path: Path, row: object, reason: str) -> None:
    made = imported(tmp_path, "evalsone", {"s.jsonl": lines({"input": HI}, row)})
    (item,) = made.left
    assert item[:2] == ("s.jsonl", 2)
    assert item[2].startswith(reason)


def test_a_folder_without_samples_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(EvalstoreError, match="no EvalsOne samples"):
        imported(tmp_path, "evalsone", {"a.txt": "x"})
