"""Cells of result trees: one function writes them, and one reads them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import evalstore
from evalstore.core.values import Case, Verdict
from evalstore.store.results import describe_cell, restore_cell

CASE = Case("row", "k" * 16, ("t" * 32,), "e" * 32, ("tag",), ("p" * 32, None))
GROUP = Case("", "k" * 16, ("t" * 32, "u" * 32), None, (), (None,))


@pytest.mark.parametrize("verdict", ["pass", "fail", "undecided", "error", None])
@pytest.mark.parametrize("case", [CASE, GROUP], ids=["row", "group"])
def test_a_cell_is_read_as_it_was_written(case: Case, verdict: Verdict | None) -> None:
    number = len(case.prompts) - 1
    cell = describe_cell(3, number, "m", 2, verdict, 0.5, ["s" * 32], ["v" * 32])
    result = restore_cell("tests/a.md", case, cell)
    assert (result.file, result.row, result.model) == ("tests/a.md", case.row, "m")
    assert (result.prompt_number, result.prompt) == (number, case.prompts[number])
    assert (result.tests, result.evaluation) == (case.tests, case.evaluation)
    assert (result.verdict, result.score, result.required_answers) == (verdict, 0.5, 2)
    assert (result.sessions, result.evaluations) == (("s" * 32,), ("v" * 32,))
    written = describe_cell(
        3,
        result.prompt_number,
        result.model,
        result.required_answers,
        result.verdict,
        result.score,
        result.sessions,
        result.evaluations,
    )
    assert written == cell


def test_what_is_usual_is_not_written() -> None:
    assert describe_cell(0, 0, "m", 1, None, None, (), ()) == {"case": 0, "model": "m"}


def test_only_the_store_knows_how_a_cell_is_stored() -> None:
    by_key = re.compile(r"\bcell(?:\[\"|\.get\(\")|\"wanted\": ")
    root = Path(evalstore.__file__).parent
    listed = {
        path.relative_to(root).parts[0]
        for path in root.rglob("*.py")
        if by_key.search(path.read_text(encoding="utf-8"))
    }
    assert listed == {"store"}
