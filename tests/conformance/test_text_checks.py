"""Checks of texts and numbers judge as the programs do that they are taken from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evalstore.checks.base import normalized
from evalstore.checks.parser import read_check
from evalstore.core.errors import FileProblem
from tests.checks.checking import score, verdict

FACTS = json.loads(Path(__file__).with_name("text_checks.json").read_text("utf-8"))


def those_with(fact: str) -> list[Any]:
    actual = [case for case in FACTS["cases"] if fact in case]
    assert actual
    return [pytest.param(case, id=case["id"]) for case in actual]


@pytest.mark.parametrize("case", those_with("verdict"))
def test_the_verdict_is_that_of_the_original(case: dict[str, Any]) -> None:
    assert verdict(case["check"], case["answer"]) == case["verdict"]


@pytest.mark.parametrize("case", those_with("score"))
def test_the_score_is_that_of_the_original(case: dict[str, Any]) -> None:
    if "needs" in case:
        pytest.importorskip(case["needs"])
    assert score(case["check"], case["answer"]) == pytest.approx(case["score"], abs=1e-6)


@pytest.mark.parametrize("case", those_with("normalized"))
def test_a_text_is_normalized_as_in_the_original(case: dict[str, Any]) -> None:
    assert normalized(case["text"], case["steps"]) == case["normalized"]


@pytest.mark.parametrize("case", those_with("problem"))
def test_what_the_original_cannot_run_is_a_problem(case: dict[str, Any]) -> None:
    with pytest.raises(FileProblem):
        read_check(case["check"])
