"""Checks that need a package which may not be installed: said before anything is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from evalstore.checks import parser
from evalstore.core.values import Json
from evalstore.workspace.reader import read_workspace
from tests.builders import expanded, test_file, workspace_of

if TYPE_CHECKING:
    from pathlib import Path

HINT = "pip install 'evalstore[similarity]'"


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The packages that count as installed; none at first."""
    names: set[str] = set()
    for module in ("evalstore.workspace.testfiles.expansion", "evalstore.workspace.reader"):
        monkeypatch.setattr(f"{module}.is_installed", names.__contains__)
    return names


def with_check(check: str) -> str:
    return test_file(evaluation=f"~~~checks\n- {check}\n~~~")


@pytest.mark.parametrize(
    ("check", "kind", "package"),
    [
        ("bleu: {expected: a, pass: 0.5}", "bleu", "sacrebleu"),
        ("{type: rouge, expected: a, pass: 0.5}", "rouge", "rouge_score"),
        ("jsonPath: {path: a, bleu: {expected: a, pass: 0.5}}", "bleu", "sacrebleu"),
        ("{jsonPath: a, check: {rouge: a, pass: 0.5}}", "rouge", "rouge_score"),
    ],
)
def test_a_missing_package_is_an_error_of_the_file(
    check: str, kind: str, package: str, installed: set[str]
) -> None:
    (problem,) = expanded(with_check(check)).problems
    assert (problem.severity, problem.line, problem.hint) == ("error", 8, HINT)
    words = f"the check '{kind}' needs the package '{package}', which is missing"
    assert problem.message == words
    installed.add(package)
    assert expanded(with_check(check)).problems == []


def test_a_file_is_read_again_when_its_package_comes_or_goes(
    installed: set[str], tmp_path: Path
) -> None:
    def problems() -> list[Any]:
        workspace = workspace_of(tmp_path, {})
        reading = read_workspace(workspace, lambda nodes: {node: stored[node] for node in nodes})
        stored.update({node: reading.files[path] for path, node in reading.nodes.items()})
        reading.save_index(workspace)
        return reading.problems

    stored: dict[str, Json] = {}
    workspace_of(tmp_path, {"tests/t.md": with_check("bleu: {expected: a, pass: 0.5}")})
    assert len(problems()) == 1
    installed.add("sacrebleu")
    assert problems() == []
    installed.clear()
    assert len(problems()) == 1


def test_only_named_packages_are_needed() -> None:
    named = {name for name, kind in parser.known_kinds().items() if kind.package}
    assert named == {"bleu", "rouge"}
