"""`evalstore.check` in the tests of a session: a readable error, and its cost in the summary."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalstore.interfaces.api import workspace
from tests.builders import tree
from tests.interfaces.pytest_plugin.conftest import Run

pytest_plugins = ["pytester"]
OWN = """\
import evalstore

def test_kind():
    evalstore.check("Dear you.", "Say so.")

def test_unkind():
    answer = "Hey\\x1b[1m you."
    evalstore.check(answer, "Be kind.")
"""


def test_the_error_is_that_of_the_assertion_and_the_cost_is_shown_once(
    run: Run, evals: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge = (evals / "models/judge.yaml").read_text(encoding="utf-8")
    tree(evals, {"models/judge.yaml": f"{judge}costs: [{{costPerCall: 0.25}}]\n"})
    tree(evals.parent, {"test_own.py": OWN})
    result = run()
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        [
            '>       evalstore.check(answer, "Be kind.")',
            "E       AssertionError: the verdict is 'undecided'",
            "E       answer: Hey\\x1b[[]1m you.",
            "E       instructions: Be kind.",
            "E       judge: *",
            "E       (evalstore -C evals show *)",
            "test_own.py:8: AssertionError",
            "evalstore.check: 2 calls, 2 new verdicts, $0.7500",
        ]
    )
    monkeypatch.setattr(workspace, "COUNTS", workspace.CheckCounts())
    again = run()
    again.assert_outcomes(passed=1, failed=1)
    assert "evalstore.check:" not in again.stdout.str()  # nothing new was judged
