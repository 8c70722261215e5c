"""Law 10: a reason in a plan names what differs from the last run, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from evalstore.interfaces.api.workspace import Workspace
from tests.builders import tree

TEST = """\
---
systemPrompts: [brief]
---

# 👤

Is it {test}?

---

The answer must be {instructions}.

~~~checks
- contains: {checks}
~~~
"""
MODEL = """\
id: scripted/{id}
provider: scripted
extraIdentifier: {value}
responses: [{{answer: {answer}}}]
"""
VALUES = {
    "test": ("warm", "cold"),
    "system prompt": ("brief", "kind"),
    "model": ("a", "b"),
    "instructions": ("true", "honest"),
    "checks": ("o", "k"),
    "evaluator": ("c", "d"),
}
"""The parts of the case, each with two values."""
WORDS = {
    "test": "test ",
    "system prompt": "system prompt ",
    "model": "model ",
    "instructions": "instructions ",
    "checks": "check",
    "evaluator": "judge",
}
"""How a reason begins when a part was edited."""
EDITS = (
    *("system prompt", "instructions", "system prompt"),
    *("test", "checks", "test"),
    *("model", "evaluator", "model"),
    *("instructions", "system prompt", "evaluator", "instructions"),
    *("model", "checks", "instructions", "model"),
    *("test", "evaluator", "test", "checks"),
)
"""What is edited before each run; every second edit of a part undoes the one before it."""
AGAIN = re.compile(r"(.*) again as in run (\w{8}), so its answers are judged by the current (.*)")
USED_AGAIN = "; if the checks pass, the verdict by scripted/judge is reused"
"""How the reason of checks ends when the judge is not asked."""


def write(state: dict[str, int]) -> None:
    now = {part: VALUES[part][number] for part, number in state.items()}
    judge = {"id": "judge", "value": now["evaluator"], "answer": "{pass: true}"}
    tree(
        Path(),
        {
            "evalstore.yaml": "candidates: [scripted/one]\nevaluators: [scripted/judge]\n",
            "prompts/brief.md": f"Be {now['system prompt']}.\n",
            "models/one.yaml": MODEL.format(id="one", value=now["model"], answer="ok"),
            "models/judge.yaml": MODEL.format(**judge),
            "tests/t.md": TEST.format(**now),
        },
    )


def test_a_reason_names_only_what_was_edited_or_undone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    state = dict.fromkeys(VALUES, 0)
    write(state)
    api = Workspace(tmp_path)
    states = {(api.run().run or "")[:8]: dict(state)}
    undone = used_again = 0
    for part in EDITS:
        state[part] = 1 - state[part]
        write(state)
        for item in api.status().items:
            if item.reason == "new answer":
                continue
            reason = item.reason.removesuffix(USED_AGAIN)
            if reason != item.reason:
                used_again += 1
                told = [name for name in VALUES if name != "checks"]
                assert item.evaluator == "checks"
                assert any(
                    all(earlier[name] == state[name] for name in told)
                    for earlier in states.values()
                )
            match = AGAIN.fullmatch(reason)
            if match:
                undone += 1
                earlier = states[match[2]]
                differ = {name for name in VALUES if earlier[name] != state[name]}
                assert f"{match[1]} ".startswith(WORDS[part])
                assert earlier[part] == state[part]
                assert {*match[3].replace("judge", "evaluator").split(" and ")} <= differ
            else:
                assert reason.startswith(WORDS[part]), (part, item)
            assert item.also == ()
        states[(api.run().run or "")[:8]] = dict(state)
    assert undone > 5
    assert used_again > 1
