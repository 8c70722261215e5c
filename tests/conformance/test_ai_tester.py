"""Files in ai-tester's format, adopted and read: the same facts, apart from noted deviations."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evalstore.exchange.importers.ai_tester import adopt
from evalstore.workspace.folder import WorkspaceFolder
from evalstore.workspace.reader import Reading, read_workspace
from tests.builders import tree

FACTS = json.loads(Path(__file__).with_name("ai_tester.json").read_text("utf-8"))


def written(files: dict[str, Any]) -> dict[str, str | bytes]:
    return {
        name: base64.b64decode(content["base64"]) if isinstance(content, dict) else content
        for name, content in files.items()
        if content is not None
    }


def parts(content: Any) -> list[Any]:
    """A text, or a list of texts and the paths of files."""
    if isinstance(content, str):
        return [content] if content else []
    return [part.get("text") or {"file": part["path"]} for part in content]


def messages(reading: Reading) -> Iterator[list[tuple[str, Any]]]:
    """What is sent for each case with each system prompt."""
    for file in reading.files.values():
        for case in file.cases:
            for prompt in case.prompts:
                shown = json.loads(reading.contents[case.tests[0]][1])["messages"]
                sent = [(item["role"], parts(item.get("content", ""))) for item in shown]
                if prompt:
                    (system,) = json.loads(reading.contents[prompt][1])["messages"]
                    first = parts(system["content"])
                    if sent[0][0] == "system":
                        own = sent.pop(0)[1]
                        first = [f"{first[0]}\n\n{own[0]}"]
                    sent.insert(0, ("system", first))
                yield sent


def instructions(reading: Reading) -> Iterator[list[Any] | None]:
    """What the evaluator is told about each case."""
    for file in reading.files.values():
        for case in file.cases:
            if case.evaluation is None:
                yield None
            else:
                content = json.loads(reading.contents[case.evaluation][1])
                yield parts(content.get("instructions", ""))


def expected(content: Any) -> list[Any] | None:
    if content is None:
        return None
    return content if isinstance(content, list) else parts(content)


@pytest.mark.parametrize("case", FACTS["cases"], ids=lambda case: case["id"])
def test_a_project_comes_to_what_ai_tester_sends(case: dict[str, Any], tmp_path: Path) -> None:
    tree(tmp_path, written({**FACTS["shared"], **case["files"]}))
    tree(tmp_path, {"evalstore.yaml": adopt(tmp_path)[0]})
    reading = read_workspace(WorkspaceFolder(tmp_path))
    if case["expect"].get("problem"):
        assert reading.errors
        assert all(problem.line for problem in reading.errors)
        return
    assert reading.errors == []
    assert list(messages(reading)) == [
        [(role, expected(content)) for role, content in sent] for sent in case["expect"]["messages"]
    ]
    output = [expected(content) for content in case["expect"]["instructions"]]
    assert list(instructions(reading)) == output
