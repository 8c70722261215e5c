from __future__ import annotations

import pytest

from evalstore.core.errors import FileProblem
from evalstore.files.datasets import DatasetSpec, resolve_path
from tests.files.datasets.files import spec


def refused(written: str) -> FileProblem:
    with pytest.raises(FileProblem) as caught:
        spec(written)
    return caught.value


def test_a_text_is_a_path() -> None:
    assert spec("data/q.jsonl") == DatasetSpec("data/q.jsonl", line=2)


def test_every_field_is_read() -> None:
    actual = spec(
        "{path: q, format: csv, rows: a.b, where: item.x, limit: 3, sample: {n: 2, seed: 7},"
        ' rename: {A: b}, encoding: Latin-1, delimiter: "\\t", onError: skip}'
    )
    expected = DatasetSpec(
        path="q",
        format="csv",
        rows="a.b",
        where="item.x",
        limit=3,
        sample=2,
        seed=7,
        rename={"A": "b"},
        encoding="iso8859-1",
        delimiter="\t",
        skip=True,
        line=2,
        lines=actual.lines,
    )
    assert actual == expected


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("3", "'dataset' must be the path of a file or a mapping of fields"),
        ("[a.csv]", "'dataset' must be the path of a file or a mapping of fields"),
        ("''", "the path of the dataset is empty"),
        ("{limit: 3}", "the dataset has no 'path'"),
        ("{path: a, fromat: csv}", "unknown field 'fromat'"),
        ("{path: a, limit: 0}", "'limit' must be a whole number of at least 1"),
        ("{path: a, sample: {seed: 1}}", "'sample' needs 'n', how many rows to draw"),
        ("{path: a, sample: {n: 1, sed: 1}}", "unknown field 'sed'"),
        ("{path: a, onError: ignore}", "'onError' must be 'fail' or 'skip'"),
        ("{path: a, encoding: utf-9}", "unknown encoding 'utf-9'"),
        ("{path: a, encoding: base64}", "unknown encoding 'base64'"),
        ("{path: a, delimiter: ', '}", "'delimiter' must be one character"),
        ("{path: a, delimiter: '\"'}", "'delimiter' must be one character"),
        ("{path: a, rename: {x: 3}}", "'rename': the new name of 'x' must be a text"),
        ("{path: a, rename: {x: A b}}", "'rename': 'A b' cannot be the name of a column"),
        ("{path: a, where: '{{ item.x }}'}", "'where' must be an expression, not a template"),
        ("{path: a, where: 'item.x >'}", "'where' is not an expression: unexpected ')'"),
    ],
)
def test_what_cannot_be_is_a_problem(written: str, message: str) -> None:
    assert refused(written).message == message


def test_a_wrong_field_is_answered_with_the_nearest() -> None:
    assert refused("{path: a, onErorr: skip}").hint == "did you mean 'onError'?"


def test_a_problem_has_the_line_of_its_field() -> None:
    assert refused("\n  path: a\n  limit: 3\n  where: 'a b'").line == 5


# --- where a path leads

ROOTS = {"hf://": "/hf", "hf://squad/": "/squad"}


@pytest.mark.parametrize(
    ("path", "resolved"),
    [
        ("data/q.jsonl", "data/q.jsonl"),
        ("hf://org/q.jsonl", "/hf/org/q.jsonl"),
        ("hf://squad/dev.json", "/squad/dev.json"),
        ("hf://squad2/dev.json", "/hf/squad2/dev.json"),
    ],
)
def test_the_longest_prefix_leads_to_its_folder(path: str, resolved: str) -> None:
    assert resolve_path(spec(path), ROOTS) == resolved


def test_a_root_without_slash_ends_where_a_folder_ends() -> None:
    assert resolve_path(spec("data2/q.csv"), {"data": "/elsewhere"}) == "data2/q.csv"


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("s3://b/q.csv", "nothing is downloaded, and no folder is known for 's3://'"),
        ("https://x/q.csv", "nothing is downloaded, and no folder is known for 'https://'"),
        ("hf://a/../../q.csv", "the path 'hf://a/../../q.csv' names no file below 'hf://'"),
        ("hf://squad/", "the path 'hf://squad/' names no file below 'hf://squad/'"),
    ],
)
def test_a_path_that_no_root_leads_to_is_a_problem(path: str, message: str) -> None:
    with pytest.raises(FileProblem) as caught:
        resolve_path(spec(path), ROOTS)
    assert (caught.value.line, caught.value.message) == (2, message)
