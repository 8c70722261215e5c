"""Checks from the test file to the verdict, through the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.builders import tree
from tests.interfaces.cli.conftest import WEATHER, Evalstore

BLOCK = """\

~~~checks
{}
~~~
"""


def with_checks(lines: str, *, prose: bool = True) -> str:
    text = WEATHER if prose else WEATHER.replace("The answer must be warm.\n", "")
    return text + BLOCK.format(lines)


def verdicts(document: Any) -> dict[str, str]:
    return {case["row"]: case["verdict"] for case in document["cases"]}


def test_checks_judge_without_a_model(workspace: Path, documents: Any) -> None:
    tree(workspace, {"tests/weather.md": with_checks("- contains: Warm", prose=False)})
    document = documents("run")
    assert verdicts(document) == {"city=Oslo": "fail", "city=Rome": "pass"}
    assert (document["asked"], document["judged"], document["judgeCost"]) == (2, 2, 0.0)
    assert documents("run")["judged"] == 0


def test_a_check_that_fails_says_what_was_expected_and_found(
    workspace: Path, evalstore: Evalstore
) -> None:
    tree(workspace, {"tests/weather.md": with_checks("- contains: Warm", prose=False)})
    shown = evalstore("run").stdout
    assert "'Warm' is not in 'Cold.'" in shown


@pytest.mark.parametrize("block", ["- {0}", "{{pass: any, checks: [{0}]}}"], ids=["all", "any"])
def test_fsck_follows_no_schema_that_stands_in_the_check_itself(
    workspace: Path, evalstore: Evalstore, block: str
) -> None:
    lines = block.format("{jsonSchema: {type: object}}")
    tree(workspace, {"tests/weather.md": with_checks(lines, prose=False)})
    evalstore("run")
    assert evalstore("fsck").exit_code == 0


def test_an_edit_of_a_check_asks_nothing_and_judges_again(workspace: Path, documents: Any) -> None:
    tree(workspace, {"tests/weather.md": with_checks("- contains: Warm", prose=False)})
    documents("run")
    tree(workspace, {"tests/weather.md": with_checks("- contains: Cold", prose=False)})
    document = documents("run")
    assert (document["asked"], document["judged"]) == (0, 2)
    assert verdicts(document) == {"city=Oslo": "pass", "city=Rome": "fail"}


@pytest.mark.parametrize(
    ("when", "judged", "oslo", "rome"),
    [("on_pass", 3, "fail", "pass"), ("on_fail", 3, "pass", "pass"), ("always", 4, "fail", "pass")],
)
def test_the_block_says_which_answers_models_judge(
    workspace: Path, documents: Any, when: str, judged: int, oslo: str, rome: str
) -> None:
    # The model lets everything pass; the check only what is warm.
    lines = f"evaluator: {when}\nchecks: [{{contains: Warm}}]"
    text = with_checks(lines).replace("must be warm", "may be anything")
    tree(workspace, {"tests/weather.md": text})
    document = documents("run")
    assert (document["judged"], verdicts(document)) == (
        judged,
        {"city=Oslo": oslo, "city=Rome": rome},
    )
    assert documents("run")["judged"] == 0


def test_the_page_of_an_answer_says_why_no_model_was_asked(
    workspace: Path, evalstore: Evalstore
) -> None:
    def said(row: str) -> list[str]:
        lines = evalstore("show", f"tests/weather.md::{row}").stdout.splitlines()
        return [line for line in lines if "No model was called" in line]

    lines = "evaluator: {}\nchecks: [{{contains: Warm}}]"
    tree(workspace, {"tests/weather.md": with_checks(lines.format("on_pass"))})
    evalstore("run", "-q")
    assert said("Oslo") == ["No model was called, because the checks failed."]
    assert said("Rome") == []
    other = with_checks(lines.format("on_fail")).replace("must be warm", "may be anything")
    tree(workspace, {"tests/weather.md": other})
    evalstore("run", "-q")
    assert said("Oslo") == []
    assert said("Rome") == ["No model was called, because the checks passed."]
    tree(workspace, {"tests/weather.md": with_checks("- contains: Warm", prose=False)})
    evalstore("run", "-q")
    assert said("Oslo") == [], "there is nothing to ask a model by"


def test_models_that_are_always_asked_cost_no_second_answer(
    workspace: Path, documents: Any
) -> None:
    lines = "evaluator: {}\nchecks: [{{contains: Warm}}]"
    tree(workspace, {"tests/weather.md": with_checks(lines.format("on_pass"))})
    assert documents("run")["judged"] == 3
    tree(workspace, {"tests/weather.md": with_checks(lines.format("always"))})
    document = documents("run")
    assert (document["asked"], document["judged"]) == (0, 1)


@pytest.mark.parametrize(
    ("rule", "oslo", "rome"), [("any", "pass", "pass"), (">= 0.6", "fail", "fail")]
)
def test_not_all_checks_must_pass(
    workspace: Path, documents: Any, rule: str, oslo: str, rome: str
) -> None:
    lines = f'pass: "{rule}"\nchecks: [{{contains: Warm}}, {{contains: Cold}}]'
    tree(workspace, {"tests/weather.md": with_checks(lines, prose=False)})
    document = documents("run")
    assert verdicts(document) == {"city=Oslo": oslo, "city=Rome": rome}
    assert [case["score"] for case in document["cases"]] == [0.5, 0.5]


def test_a_check_that_cannot_be_computed_is_an_error(workspace: Path, documents: Any) -> None:
    lines = "- {contains: a, actual: '{{ sample.output_json.x }}'}"
    tree(workspace, {"tests/weather.md": with_checks(lines, prose=False)})
    assert set(verdicts(documents("run")).values()) == {"error"}


def test_a_wrong_check_is_an_error_at_its_line(workspace: Path, evalstore: Evalstore) -> None:
    tree(workspace, {"tests/weather.md": with_checks("- contians: a", prose=False)})
    ran = evalstore("check")
    assert ran.exit_code != 0
    assert "did you mean 'contains'?" in ran.stdout + ran.stderr
