"""What Python checks see of data, of several conversations, and of groups."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.builders import tree
from tests.interfaces.cli.run.test_run_checks import verdicts

SHOWS = """\
import json

def show(given, **args):
    told = {name: given[name] for name in ("answer", "answers", "turns", "item", "runs")}
    return {"pass": False, "feedback": json.dumps({**told, "args": args})}
"""
SAME = """\
from lve.checkers.base import MultiRunBaseChecker

class Same(MultiRunBaseChecker):
    def is_safe(self, prompts_out, param_values):
        found = [self.extract_variables_from_prompt(one) for one in prompts_out]
        return found == [{"response": "Cold."}, {"response": "Warm."}] and param_values == {"n": 1}
"""
CITIES = '{"city": "Oslo", "fact": "fjord"}\n{"city": "Rome", "fact": "river"}\n'
DATA = """\
---
dataset: cities.jsonl
---

# 👤

How is {{ item.city }}?

---

~~~checks
- python: {file: shows.py, function: show%s}
~~~
"""
RUNS = """\
---
replacements: {n: 1}
---

# ▶ north

# 👤

How is Oslo, {{n}}?

# ▶ south

# 👤

How is Rome?

---

~~~checks
- python: {file: shows.py, %s}
~~~
"""


@pytest.fixture
def show(
    workspace: Path, documents: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Any]:
    """Run a test file; returns what the check was given, case by case."""
    monkeypatch.setenv("EVALSTORE_TRUST_FILE", str(tmp_path / "trusted"))

    def run(text: str, source: str = SHOWS) -> Any:
        files = {"tests/shows.py": source, "tests/cities.jsonl": CITIES, "tests/weather.md": text}
        tree(workspace, files)
        documents("trust", "tests/shows.py")
        cases = documents("run")["cases"]
        assert [case["verdict"] for case in cases] == ["fail"] * len(cases), cases
        return [json.loads(case["feedback"]) for case in cases]

    return run


def test_of_a_row_of_data_the_columns_that_are_used_are_there(show: Any) -> None:
    oslo, rome = show(DATA % "")
    assert (oslo["item"], rome["item"]) == ({"city": "Oslo"}, {"city": "Rome"})
    assert (oslo["answer"], rome["answers"], rome["turns"]) == (
        "Cold.",
        ["Warm."],
        {"response": "Warm."},
    )


def test_arguments_bring_other_columns(show: Any) -> None:
    oslo, _ = show(DATA % ", args: {fact: '{{ item.fact }}', of: '{{ sample.model }}'}")
    assert oslo["args"]["fact"] == "fjord"
    assert oslo["item"] == {"city": "Oslo", "fact": "fjord"}


def test_a_column_that_nothing_uses_judges_nothing_again(
    show: Any, workspace: Path, documents: Any
) -> None:
    show(DATA % "")
    tree(workspace, {"tests/cities.jsonl": CITIES.replace("river", "hill")})
    assert documents("status")["items"] == []


def test_runs_are_judged_together(show: Any) -> None:
    (actual,) = show(RUNS % "function: show, scope: case")
    assert actual["answers"] == ["Cold.", "Warm."]
    assert actual["turns"] == {
        "north": ["Cold."],
        "response": ["Cold.", "Warm."],
        "south": ["Warm."],
    }
    assert [[item["content"] for item in run] for run in actual["runs"]] == [
        ["How is Oslo, 1?", "Cold."],
        ["How is Rome?", "Warm."],
    ]


def test_a_checker_of_several_runs_gets_them_all(
    show: Any, workspace: Path, documents: Any
) -> None:
    show(RUNS % "function: show, scope: case")
    tree(workspace, {"tests/shows.py": SAME})
    tree(workspace, {"tests/weather.md": RUNS % "class: Same, scope: case"})
    documents("trust", "tests/shows.py")
    assert verdicts(documents("run")) == {"": "pass"}


def test_a_group_has_the_answers_of_its_rows(show: Any) -> None:
    (actual,) = show(DATA % ", scope: group")
    assert (actual["answers"], actual["item"]) == (["Cold.", "Warm."], {})
