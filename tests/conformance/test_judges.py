"""Judges of other evaluation tools: the same replies read, apart from noted deviations."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evalstore.checks import read_check
from evalstore.errors import FileProblem
from evalstore.judge import Unreadable
from evalstore.reply_forms import form_of
from evalstore.values import Reply
from tests.builders import tree

FACTS = json.loads(Path(__file__).with_name("judges.json").read_text("utf-8"))
PROMPT = "---\ntags: [_evaluator]\n---\nCompare.\n\n# 👤\n\n{{_actualResponse}}\n"
TEST = """\
---
replacements: {city: [Oslo, Rome]}
---

# 👤

How is {{city}}?

---

~~~checks
- judge: JUDGE
~~~
"""


@pytest.mark.parametrize("case", FACTS["replies"], ids=lambda case: case["id"])
def test_a_reply_is_read_or_the_settings_are_refused(case: dict[str, Any]) -> None:
    expect = case["expect"]
    try:
        form = form_of([read_check({"judge": case["judge"]})])
    except FileProblem as problem:
        assert problem.message == expect["problem"]
        return
    reply = Reply(case["reply"])
    try:
        opinion = form.read(reply)
    except Unreadable as unreadable:
        opinion = form.give_up(reply, unreadable.reason)
        assert expect.get("unreadable") or "verdict" in expect
    found = {"label": opinion.label, "score": opinion.score, "verdict": opinion.verdict}
    if expect.get("unreadable"):
        expect = {"verdict": "undecided", "label": None, "score": None}
    assert {name: found[name] for name in expect} == expect


@pytest.mark.parametrize("case", FACTS["runs"], ids=lambda case: case["id"])
def test_a_judge_is_asked_and_its_reply_becomes_a_vote(
    case: dict[str, Any], tmp_path: Path, run: Callable[[Path], list[dict[str, Any]]]
) -> None:
    judge = json.dumps({"prompt": "compare", **case["judge"]})
    text = TEST.replace("JUDGE", judge)
    if case.get("rows") != 2:
        text = text.replace("[Oslo, Rome]", "Oslo")
    answers = [{"answer": reply} for reply in case["replies"]]
    twice = {"when": "one of these choices.*one of these choices.*Oslo", "answer": "told twice"}
    files = {
        "evalstore.yaml": "candidates: [scripted/one]\nevaluators: [scripted/judge]\n",
        "models/one.yaml": "id: scripted/one\nprovider: scripted\nresponses: [{answer: Green.}]\n",
        "models/judge.yaml": json.dumps(
            {"id": "scripted/judge", "provider": "scripted", "responses": [twice, *answers]}
        ),
        "prompts/compare.md": PROMPT,
        "tests/grass.md": text,
    }
    expect = dict(case["expect"])
    votes = run(tree(tmp_path, files))
    calls = expect.pop("calls")
    assert {name: votes[0].get(name) for name in expect} == expect
    assert sum(vote["usage"]["calls"] for vote in votes) == calls


def test_every_id_is_used_once() -> None:
    ids = [one["id"] for part in ("replies", "runs", "left out") for one in FACTS[part]]
    assert len(ids) == len(set(ids))
