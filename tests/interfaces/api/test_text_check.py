"""`evalstore.check`: a text must pass checks and judges; its verdict is asked for once."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import evalstore
from evalstore import EvalstoreError, Workspace, init
from evalstore.interfaces.api import workspace as text_check
from tests.builders import tree

JUDGE = """\
id: judge
provider: scripted
costs: [{costPerCall: 0.25}]
responses:
  - {when: 'Be kind\\..*\\[begin of the response[^\\n]*\\nDear', answer: {pass: true}}
  - {when: 'Say nothing', answer: maybe}
  - {when: '.', answer: {pass: false, feedback: "It is not kind."}}
"""
FILE = """\
---
answer: Dear sir.
---

# 👤

Write to me.

---

Be kind.

~~~checks
- contains: Dear
~~~
"""


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    folder = tmp_path_factory.mktemp("text")
    settings = "candidates: [judge]\nevaluators: [judge]\n"
    init(folder)
    tree(folder, {"evalstore.yaml": settings, "models/judge.yaml": JUDGE})
    return Workspace(folder)


@pytest.fixture(autouse=True)
def counts(monkeypatch: pytest.MonkeyPatch) -> text_check.CheckCounts:
    """The calls in one test."""
    counted = text_check.CheckCounts()
    monkeypatch.setattr(text_check, "COUNTS", counted)
    return counted


def error(workspace: Workspace, *arguments: Any, **options: Any) -> str:
    with pytest.raises(AssertionError) as raised:
        evalstore.check(*arguments, workspace=workspace, **options)
    shown = str(raised.value)
    before, _, id = shown.rpartition(f"\n(evalstore -C {workspace.root} show ")
    assert len(id.removesuffix(")")) == 8
    return before


def test_a_text_that_passes_is_judged_once(workspace: Workspace) -> None:
    first = evalstore.check("Dear you.", "Be kind.", workspace=workspace)
    again = evalstore.check("Dear you.", " Be kind.\n", workspace=workspace.root)
    anew = evalstore.check("Dear you.", "Be kind.", workspace=workspace, refresh=True)

    assert (first.verdict, first.judged, first.cost) == ("pass", 1, 0.25)
    assert (again.verdict, again.judged, again.cost) == ("pass", 0, 0.0)
    assert (anew.judged, anew.session) == (1, first.session)
    assert [judgement.by for judgement in first.judgements] == ["judge"]
    assert again.judgements == first.judgements


def test_what_is_judged_is_the_text_the_question_and_the_criteria(workspace: Workspace) -> None:
    def judged(*arguments: Any, **options: Any) -> int:
        return workspace.judge_text(*arguments, **options).judged

    assert judged("Dear me.", "Be kind.") == 1
    assert judged("Dear me.", "Be kind.", question="Who?") == 1
    assert judged("Dear me!", "Be kind.") == 1
    assert judged("Dear me.", "Be kind.", checks=["json"]) == 1  # it fails, and no model judges
    assert judged("Dear me.", "Be kind.") == 0


def test_a_verdict_counts_for_a_test_file_with_the_same_answer(workspace: Workspace) -> None:
    evalstore.check(
        "Dear sir.",
        "Be kind.",
        question="Write to me.",
        checks=[{"contains": "Dear"}],
        workspace=workspace,
    )
    tree(workspace.root, {"tests/mail.md": FILE})
    status = workspace.status(paths=["tests/mail.md"])
    assert (status.ask, status.record, status.judge) == (0, 0, 0)
    assert [
        row["verdict"] for row in workspace.to_rows(None) if row["file"] == "tests/mail.md"
    ] == ["pass"]


def test_no_run_is_recorded_and_the_store_stays_sound(workspace: Workspace) -> None:
    judged = evalstore.check("Dear all.", "Be kind.", workspace=workspace)
    assert workspace.runs() == []
    assert workspace.fsck().problems == []
    answer = workspace.answer(judged.session)
    assert (answer.text, answer.judgements[0].verdict) == ("Dear all.", "pass")


def test_the_error_shows_the_text_the_instructions_and_the_feedback(workspace: Workspace) -> None:
    assert error(workspace, "Hey\x1b[1m you.\nPay!", "Be kind.\nAlways.") == (
        "the verdict is 'fail'\n"
        "answer: Hey\\x1b[1m you.\n    Pay!\n"
        "instructions: Be kind.\n    Always.\n"
        "judge: It is not kind."
    )
    assert error(workspace, "Hey", "Be kind.", checks=[{"contains": "you"}, "json"]) == (
        "the verdict is 'fail'\n"
        "answer: Hey\n"
        "instructions: Be kind.\n"
        "checks: contains: 'you' is not in 'Hey'\n"
        "checks: json: the answer is not JSON, found 'Hey'"
    )


def test_an_undecided_judge_is_not_a_pass(workspace: Workspace) -> None:
    assert "the verdict is 'undecided'" in error(workspace, "Dear.", "Say nothing")


def test_a_long_text_is_cut_in_the_error(workspace: Workspace) -> None:
    assert len(error(workspace, "x" * 1_000_000, checks=[{"contains": "y"}])) < 5_000


def test_a_value_that_is_not_a_text_is_judged_as_json(workspace: Workspace) -> None:
    checks = [{"jsonSubset": {"price": 3}}]
    assert evalstore.check({"price": 3}, checks=checks, workspace=workspace).verdict == "pass"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "nothing says how to judge the text"),
        ({"checks": [{"contians": "a"}]}, "check 1: unknown check 'contians'"),
        (
            {"checks": ["json", {"python": "a.py", "function": "f"}]},
            "check 2: 'python' needs a test file",
        ),
        ({"checks": [{"jsonSchema": "invoice"}]}, "check 1: unknown schema 'invoice'"),
        ({"instructions": "Be kind.", "evaluators": ["gpt"]}, "unknown model 'gpt'"),
        ({"instructions": "Be kind.", "evaluators": "judge"}, "'evaluators' is one text"),
        ({"instructions": "Be kind.", "max_cost": -1}, "'max_cost' must be at least 0"),
    ],
    ids=["nothing", "unknown", "python", "schema", "evaluator", "text", "cost"],
)
def test_a_call_with_an_error_judges_nothing(
    workspace: Workspace, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(EvalstoreError, match=message):
        evalstore.check("Dear.", workspace=workspace, **options)


def test_a_limit_of_the_cost_is_kept(workspace: Workspace) -> None:
    with pytest.raises(EvalstoreError, match="the limit of cost or time was reached"):
        evalstore.check("Dear limit.", "Be kind.", workspace=workspace, max_cost=0.1)
    assert evalstore.check("Dear limit.", "Be kind.", workspace=workspace).judged == 1


def test_it_can_be_called_where_an_event_loop_runs(workspace: Workspace) -> None:
    async def call() -> str:
        return evalstore.check("Dear loop.", "Be kind.", workspace=workspace).verdict

    assert asyncio.run(call()) == "pass"


def test_calls_are_counted(workspace: Workspace, counts: text_check.CheckCounts) -> None:
    for _ in range(2):
        evalstore.check("Dear count.", "Be kind.", workspace=workspace)
    assert counts == text_check.CheckCounts(checks=2, judged=1, usd=0.25)


def test_without_a_workspace_it_is_that_of_the_current_folder(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(workspace.root / "tests")
    assert evalstore.check("Dear.", checks=[{"contains": "Dear"}]).verdict == "pass"
    monkeypatch.chdir(tmp_path)
    with pytest.raises(EvalstoreError, match=r"no evalstore\.yaml"):
        evalstore.check("Dear.", checks=[{"contains": "Dear"}])
