"""Facts about templates: what texts and values come to, in files of a workspace."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from evalstore.workspace.reader import read_workspace
from tests.builders import workspace_of

if TYPE_CHECKING:
    from evalstore.workspace.reader import Reading

FACTS = json.loads(Path(__file__).with_name("templates.json").read_text(encoding="utf-8"))
CASES = FACTS["cases"]


def read(path: Path, case: dict[str, Any]) -> Reading:
    """A workspace with one test: the body of a case, or a check of its value."""
    front: dict[str, Any] = {}
    if "replacements" in case:
        front["replacements"] = case["replacements"]
    if "item" in case:
        front["dataset"] = "data.jsonl"
    body = case.get("body", "Hello")
    checks = [{"jsonEquals": case["value"]}] if "value" in case else [{"contains": "x"}]
    text = (
        f"---\n{json.dumps(front)}\n---\n# 👤\n\n{body}\n\n---\n\n"
        f"~~~checks\n{json.dumps(checks, ensure_ascii=False)}\n~~~\n"
    )
    files: dict[str, str | bytes] = {
        "tests/t.md": text,
        "tests/data.jsonl": json.dumps(case.get("item", {})) + "\n",
        "tests/pics/a.png": b"\x89PNG\r\n\x1a\n",
        "tests/pics/a b.png": b"\x89PNG\r\n\x1a\n",
        "tests/a.pdf": b"%PDF-1.4",
    }
    return read_workspace(workspace_of(path, files))


def shown(reading: Reading) -> Any:
    """The content of the only message; files by their path."""
    (case,) = reading.files["tests/t.md"].cases
    (message,) = json.loads(reading.contents[case.tests[0]][1])["messages"]
    content = message["content"]
    if isinstance(content, str):
        return content
    return [part.get("text") or {"file": part["path"]} for part in content]


def value(reading: Reading) -> Any:
    """What the check expects."""
    (case,) = reading.files["tests/t.md"].cases
    assert case.evaluation
    (check,) = json.loads(reading.contents[case.evaluation][1])["checks"]
    return check["expected"]


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_a_template_comes_to_what_is_known(case: dict[str, Any], tmp_path: Path) -> None:
    reading = read(tmp_path, case)
    if case.get("problem"):
        assert [problem.file for problem in reading.errors] == ["tests/t.md"]
        return
    assert reading.errors == []
    assert (value if "value" in case else shown)(reading) == case["expected"]


def test_what_is_left_out_has_a_reason() -> None:
    assert all(item["why"] for item in FACTS["left"])
