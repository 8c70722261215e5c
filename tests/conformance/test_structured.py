"""Answers that other systems have judged: JSON, tool calls, and conditions in Python."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evalstore.checks.base import CheckInput
from evalstore.checks.check_verdict import run_check
from evalstore.checks.parser import read_check
from evalstore.core.errors import FileProblem
from evalstore.core.values import Reply, ToolCall

FACTS = json.loads(Path(__file__).with_name("structured.json").read_text("utf-8"))


def verdict(check: Any, case: dict[str, Any]) -> str:
    """What one check says, `problem` when it cannot be read."""
    answer = case.get("answer")
    calls = tuple(ToolCall(name, arguments) for name, arguments in case.get("calls", ()))
    try:
        canonical = read_check(check)
    except FileProblem:
        return "problem"
    subject = CheckInput(Reply(answer, tool_calls=calls), answer or "", names=case.get("names", {}))
    return run_check(canonical, subject).verdict


@pytest.mark.parametrize("case", FACTS["cases"], ids=lambda case: case["id"])
def test_an_answer_gets_the_known_verdict(case: dict[str, Any]) -> None:
    actual = [verdict(check, case) for check in case["checks"]]
    assert ("pass" if "pass" in actual else actual[0]) == case["expected"]
