"""What `--json` prints is what `docs/documents.schema.json` says."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.builders import tree
from tests.interfaces.cli.label.test_label_named import FILES
from tests.interfaces.cli.run.test_run import edit

SCHEMA = json.loads(
    (Path(__file__).parents[3] / "docs/documents.schema.json").read_text(encoding="utf-8")
)
COMMANDS = [
    ["check"],
    ["status"],
    ["run"],
    ["run", "-n"],
    ["status", "--offline", "--changed"],
    ["run", "--judge-only"],
    ["diff"],
    ["diff", "@~1", "@", "--answers"],
    ["stats"],
    ["stats", "@~1", "--by", "model,prompt,tag,file"],
    ["stats", "@", "--by", "judge"],
    ["tag", "v1"],
    ["tag"],
    ["log"],
    ["log", "tests/weather.md"],
    ["log", "--failures"],
    ["log", "--failures", "tests/weather.md"],
    ["show"],
    ["show", "@:tests/weather.md"],
    ["report"],
    ["fsck"],
    ["doctor"],
    ["doctor", "--no-ping", "-m", "openai/gpt-4o-mini"],
    ["ls", "cases"],
    ["ls", "cases", "--full"],
    *(["ls", kind] for kind in ("tests", "models", "evaluators", "prompts", "tools")),
    *(["ls", kind] for kind in ("schemas", "tags", "labels", "results", "runs", "checks")),
]


def name_of(command: Sequence[str]) -> str:
    """What the schema of a command's document is called."""
    name = " ".join(command[:2]) if command[0] == "ls" else command[0]
    name = "status" if "-n" in command and command[0] == "run" else name
    if command[0] == "stats" and command[-1] == "judge":
        name = "stats --by judge"
    if name == "ls checks" and len(command) > 2:
        name = "ls checks NAME"
    if command[0] == "init" and command[-1].endswith(".md"):
        name = "init FILE.md"
    if tuple(command[:2]) in (("remote", "add"), ("remote", "show"), ("remote", "gc")):
        name = " ".join(command[:2])
    for option in ("--failures", "--full"):
        name = f"{name} {option}" if option in command else name
    return name


def schema_of(command: Sequence[str]) -> Any:
    """The schema of a command's document, in which a field that it does not know is an error."""
    name = name_of(command)
    return {**_strict(SCHEMA["$defs"][name]), "$defs": _strict(SCHEMA["$defs"])}


def _strict(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_strict(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {name: _strict(inner) for name, inner in schema.items()}
    if "properties" in schema and "type" in schema:
        closed.setdefault("additionalProperties", False)
    return closed


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_document_has_its_shape(workspace: Path, documents: Any, command: list[str]) -> None:
    documents("run")
    edit(workspace / "tests/weather.md", "How is", "And how is")
    documents("run")
    edit(workspace / "tests/weather.md", "must be warm", "must be short")
    jsonschema.Draft202012Validator(schema_of(command)).validate(documents(*command))


def test_labels_have_their_shape(workspace: Path, documents: Any) -> None:
    documents("run")
    document = documents(
        "label", "tests/weather.md::city=Oslo", "pass", "-m", "fine", "--as", "Ada"
    )
    jsonschema.Draft202012Validator(schema_of(["label"])).validate(document)
    document = documents("label", "tests/weather.md::city=Oslo", "none", "--as", "Ada")
    jsonschema.Draft202012Validator(schema_of(["label"])).validate(document)


def test_problems_have_their_shape(workspace: Path, documents: Any) -> None:
    (workspace / "tests/bad.md").write_text("---\na: [\n---\n# 👤\n\nx\n\n---\n\ny\n")
    document = documents("check")
    assert document["problems"]
    jsonschema.Draft202012Validator(schema_of(["check"])).validate(document)


def test_failures_have_their_shape(workspace: Path, documents: Any) -> None:
    edit(workspace / "models/one.yaml", "{when: Oslo, answer: Cold.", "{when: Oslo, error: {}")
    judge = "responses:\n  - {when: Warm, error: {status: 404}}\n"
    edit(workspace / "models/judge.yaml", "responses:\n", judge)
    documents("run")
    document = documents("log", "--failures")
    assert len(document["failures"]) == 2
    jsonschema.Draft202012Validator(schema_of(["log", "--failures"])).validate(document)
    for failure in document["failures"]:
        for id in (failure["failure"], failure["question"]):
            shown = documents("show", id)
            jsonschema.Draft202012Validator(schema_of(["show"])).validate(shown)


def test_init_has_its_shape(
    tmp_path: Path, documents: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    jsonschema.Draft202012Validator(schema_of(["init"])).validate(documents("init"))


def test_references_are_valid_addresses() -> None:
    """A validator that checks formats refuses a reference with a space."""
    text = json.dumps(SCHEMA)
    references = re.findall(r'"\$ref": "([^"]*)"', text)
    assert references
    assert [name for name in references if not re.fullmatch(r"#/\$defs/[A-Za-z]+", name)] == []


def test_results_name_one_of_several_system_prompts(workspace: Path, documents: Any) -> None:
    tree(workspace, FILES)
    document = documents("run", "--yes")
    jsonschema.Draft202012Validator(schema_of(["run"])).validate(document)
    late = [case for case in document["cases"] if case["file"] == "tests/late.md"]
    assert [case["promptName"] for case in late] == ["brief", "friendly", "no prompt"]
    assert not [case for case in document["cases"] if case not in late and "promptName" in case]
    edit(workspace / "tests/late.md", "Hi", "Hello")
    compared = documents("diff")
    jsonschema.Draft202012Validator(schema_of(["diff"])).validate(compared)
    assert {pair["promptName"] for pair in compared["changed"]} == {
        "no prompt",
        "brief",
        "friendly",
    }
