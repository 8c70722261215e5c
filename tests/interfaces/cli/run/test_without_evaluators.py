"""Without an evaluator the checks judge what they can, and what a model must judge is pending."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.builders import tree
from tests.interfaces.cli.conftest import WEATHER, Evalstore

CHECKED = "# 👤\n\nHow is it?\n\n---\n\n~~~checks\n- contains: Warm\n~~~\n"
BOTH = WEATHER + "\n~~~checks\n- contains: Warm\n~~~\n"


@pytest.fixture
def unjudged(workspace: Path) -> Path:
    """A workspace without evaluators: one test is judged by checks, one by both."""
    return tree(
        workspace,
        {
            "evalstore.yaml": "candidates: [scripted/one]\n",
            "tests/weather.md": BOTH,
            "tests/checked.md": CHECKED,
        },
    )


def words(run: Any) -> dict[tuple[str, str], str | None]:
    return {(case["file"], case["row"]): case["verdict"] for case in run["cases"]}


def test_checks_judge_and_what_needs_a_model_is_pending(
    unjudged: Path, evalstore: Evalstore, documents: Any
) -> None:
    assert words(documents("run")) == {
        ("tests/checked.md", ""): "pass",
        ("tests/weather.md", "city=Oslo"): "fail",
        ("tests/weather.md", "city=Rome"): "pending",
    }
    again = evalstore("run", "tests/checked.md", "tests/weather.md::city=Rome")
    assert again.exit_code == 3
    assert "tests/weather.md is judged by models, but no judge is set up" in again.stderr


def test_judge_alone_does_the_same(unjudged: Path, documents: Any) -> None:
    documents("run")
    run = documents("run", "--judge-only")
    assert (run["judged"], sorted(map(str, words(run).values()))) == (
        0,
        ["fail", "pass", "pending"],
    )


def test_status_counts_what_waits_for_an_evaluator(
    unjudged: Path, evalstore: Evalstore, documents: Any
) -> None:
    documents("run")
    assert documents("status")["left"] == {"ask": 0, "judge": 1}
    assert "Left: 1 verdict (no model may be called)." in evalstore("status").stdout


def test_an_evaluator_that_comes_later_judges_what_was_pending(
    unjudged: Path, documents: Any
) -> None:
    documents("run")
    run = documents("run", "--judge-only", "-J", "scripted/judge")
    assert (run["asked"], run["judged"]) == (0, 1)
    assert words(run)["tests/weather.md", "city=Rome"] == "pass"


def test_several_tests_without_an_evaluator_are_counted(
    unjudged: Path, evalstore: Evalstore
) -> None:
    tree(unjudged, {"tests/more.md": WEATHER})
    output = evalstore("status").stderr
    assert "tests/more.md and 1 more are judged by models, but no judge is set up" in output


def test_evaluators_for_other_tests_leave_this_one_pending(
    unjudged: Path, evalstore: Evalstore
) -> None:
    settings = "candidates: [scripted/one]\nevaluators: [{id: scripted/judge, requiredTags: [x]}]\n"
    tree(unjudged, {"evalstore.yaml": settings})
    run = evalstore("run", "tests/checked.md", "tests/weather.md::city=Rome")
    assert run.exit_code == 3
    assert "none of the judges applies to it" in run.stderr


def test_a_workspace_that_only_models_can_judge_is_reported_before_anything_is_asked(
    workspace: Path, evalstore: Evalstore
) -> None:
    tree(workspace, {"evalstore.yaml": "candidates: [scripted/one]\n"})
    run = evalstore("run")
    assert run.exit_code == 2
    assert "no judge is set up" in run.stderr


def test_a_label_of_a_person_settles_what_no_evaluator_judges(
    unjudged: Path, documents: Any, evalstore: Evalstore
) -> None:
    documents("run")
    assert evalstore("label", "tests/weather.md::city=Rome", "pass").exit_code == 0
    assert documents("status")["left"] == {"ask": 0, "judge": 0}
