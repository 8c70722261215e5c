"""Runs of some candidates or system prompts: what is said of the others."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.builders import tree
from tests.cli.conftest import WEATHER, WEATHER_WORKSPACE, Evalstore

SETTINGS = "candidates: [scripted/one, scripted/two]\nevaluators: [scripted/judge]\n"


@pytest.fixture
def edited(workspace: Path, evalstore: Evalstore) -> Path:
    """A workspace whose edit only one of two candidates was asked about."""
    two = WEATHER_WORKSPACE["models/one.yaml"].replace("scripted/one", "scripted/two")
    tree(workspace, {"evalstore.yaml": SETTINGS, "models/two.yaml": two})
    evalstore("run", "-q", "--fail-on", "none")
    tree(workspace, {"tests/weather.md": WEATHER.replace("How is", "How warm is")})
    evalstore("run", "-q", "--fail-on", "none", "-m", "scripted/one")
    return workspace


def test_the_reason_is_the_edit_and_not_a_new_candidate(edited: Path, evalstore: Evalstore) -> None:
    explained = evalstore("status", "--explain").stdout
    assert "new candidate" not in explained
    assert explained.count("test changed: message 1 line 1: How is Oslo? -> How warm is Oslo?") == 1


def test_a_candidate_that_never_took_part_is_new(edited: Path, evalstore: Evalstore) -> None:
    three = WEATHER_WORKSPACE["models/one.yaml"].replace("scripted/one", "scripted/three")
    settings = SETTINGS.replace("scripted/two", "scripted/two, scripted/three")
    tree(edited, {"evalstore.yaml": settings, "models/three.yaml": three})
    assert "new candidate scripted/three" in evalstore("status", "--explain").stdout


def test_the_log_of_a_file_names_the_candidate_that_was_late(
    edited: Path, evalstore: Evalstore
) -> None:
    evalstore("run", "-q", "--fail-on", "none")
    log = evalstore("log", "tests/weather.md").stdout
    assert "no edit: only verdicts changed" not in log
    assert "    edit: first results of scripted/two since the edit in run <short>\n" in log
    edit = "message 1 line 1 in [city=Oslo] and 1 other row: How is Oslo? -> How warm is Oslo?"
    assert (
        f"Edited:\n    tests/weather.md\n        {edit}\n" in evalstore("diff", "@~1", "@").stdout
    )


PROMPTS = {"prompts/brief.md": "Be brief.", "prompts/kind.md": "Be kind."}


@pytest.mark.parametrize(
    ("before", "after", "counts"),
    [
        ("[brief]", "[brief, kind]", "2 new (1 failed"),
        ("[brief]", "[kind, brief]", "2 new (1 failed"),
        ("[brief, kind]", "[brief]", "2 gone"),
        ("[brief, kind]", "[kind]", "2 gone"),
    ],
)
def test_results_of_a_system_prompt_that_is_new_or_gone_are_in_the_comparison(
    workspace: Path, evalstore: Evalstore, before: str, after: str, counts: str
) -> None:
    for prompts in (before, after):
        test = WEATHER.replace("tags: [weather]", f"systemPrompts: {prompts}")
        tree(workspace, {**PROMPTS, "tests/weather.md": test})
        evalstore("run", "-q", "--fail-on", "none")
    diff = evalstore("diff", "@~1", "@", "--stat").stdout
    assert counts in diff
    assert "2 unchanged" in diff
