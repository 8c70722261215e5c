"""Imports into a workspace and runs it with scripted models, in process."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pytest

from evalstore.checks.parser import find_kind
from evalstore.interfaces.cli.main import main
from tests.builders import tree

if TYPE_CHECKING:
    from pathlib import Path

needs_python = pytest.mark.skipif(find_kind("python") is None, reason="no check 'python'")
JUDGE = "scripted/judge"


class CommandRunner:
    """Runs commands in a workspace and reads what they print."""

    def __init__(self, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.root, self.capsys = root, capsys

    def run(self, *command: str) -> tuple[int, str]:
        """Return the exit code and the output."""
        code = main(["-C", str(self.root), *command])
        return code, self.capsys.readouterr().out

    def json(self, *command: str) -> Any:
        """Return the document that `--json` prints."""
        return json.loads(self.run(*command, "--json")[1])


def script(id: str, responses: Sequence[dict[str, Any]]) -> str:
    """The file of a scripted model; JSON is YAML, too."""
    return json.dumps({"id": id, "provider": "scripted", "responses": list(responses)})


def imported_and_run(
    path: Path,
    capsys: pytest.CaptureFixture[str],
    format: str,
    responses: Sequence[dict[str, Any]],
    *,
    model: str = "dummy/dummy",
    verdicts: Sequence[bool] = (),
) -> Any:
    """What a run of the files in `path / "source"` comes to; the judge gives these verdicts.

    Python files that come with them are trusted.
    """
    judged = [{"answer": {"pass": verdict, "feedback": ""}, "times": 1} for verdict in verdicts]
    settings = {"candidates": [{"id": model}], "evaluators": [JUDGE] if verdicts else []}
    workspace = tree(
        path / "workspace",
        {
            "evalstore.yaml": json.dumps(settings),
            "models/candidate.yaml": script(model, responses),
            "models/judge.yaml": script(JUDGE, judged or [{"answer": "nothing"}]),
        },
    )
    command = ["-C", str(workspace)]
    assert main([*command, "import", format, str(path / "source"), "--into", "in"]) in (0, 1)
    if code := [str(file.relative_to(workspace)) for file in workspace.rglob("*.py")]:
        assert main([*command, "trust", *code]) == 0
    capsys.readouterr()
    main([*command, "run", "--json"])
    return json.loads(capsys.readouterr().out)


def verdicts_of(document: Any) -> dict[str, str]:
    """The verdicts by file and row."""
    return {
        f"{case['file'].removeprefix('tests/in/')}::{case['row']}": case["verdict"]
        for case in document["cases"]
    }
