"""Judges of other evaluation tools: the same replies read, apart from noted deviations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evalstore.checks.judge_replies import Unreadable, form_of
from evalstore.checks.parser import read_check
from evalstore.core.errors import FileProblem
from evalstore.core.values import Reply
from tests import endpoint, judge_workspaces

FACTS = json.loads(Path(__file__).with_name("judges.json").read_text("utf-8"))


def found_in(case: dict[str, Any]) -> dict[str, Any]:
    """What is read from a reply, or the problem with the settings."""
    try:
        form = form_of([read_check({"judge": case["judge"]})])
    except FileProblem as problem:
        return {"problem": problem.message}
    reply = Reply(case["reply"])
    try:
        opinion = form.read(reply)
    except Unreadable as unreadable:
        opinion = form.give_up(reply, unreadable.reason)
    return {"label": opinion.label, "score": opinion.score, "verdict": opinion.verdict}


@pytest.mark.parametrize("case", FACTS["replies"], ids=lambda case: case["id"])
def test_a_reply_is_read_or_the_settings_are_refused(case: dict[str, Any]) -> None:
    actual = found_in(case)
    assert {name: actual.get(name) for name in case["expect"]} == case["expect"]


@pytest.mark.parametrize("case", FACTS["runs"], ids=lambda case: case["id"])
def test_a_judge_is_asked_and_its_reply_becomes_a_vote(
    case: dict[str, Any], tmp_path: Path
) -> None:
    with endpoint.running() as server:
        server.reply = lambda _body: case["reply"]
        judge = {"prompt": "compare", **case["judge"]}
        votes = judge_workspaces.run(
            judge_workspaces.judged_by(server, tmp_path, judge, rows=case["rows"])
        )
        asked = [received.body["messages"] for received in server.received]
    first = [messages for messages in asked if len(messages) == len(asked[0])]
    assert len(asked) == case["calls"]
    assert [json.dumps(item).count("one of these choices") for item in first] == [1] * len(first)
    assert [{name: vote.get(name) for name in case["expect"]} for vote in votes] == [
        case["expect"]
    ] * len(case["rows"])
