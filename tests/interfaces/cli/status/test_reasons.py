"""The reason that `status`, `diff` and `log FILE` give is what was edited."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evalstore.core.values import Reply, Request
from tests.builders import tree
from tests.interfaces.cli.conftest import ONE as ONE_MODEL
from tests.interfaces.cli.conftest import WEATHER, Echo, Evalstore
from tests.interfaces.cli.run.test_run import edit

CHECK = "\n---\n\n~~~checks\n- {allEqual: , scope: case}\n~~~\n"
ONE = f"---\nrepetitions: 3\n---\n\n# 👤\n\nHi\n{CHECK}"
TWO = f"# ▶ first ×2\n\n# 👤\n\nHi\n\n# ▶ second\n\n# 👤\n\nHo\n{CHECK}"


@pytest.mark.parametrize(
    ("text", "old", "new", "change", "reason", "edits", "pair"),
    [
        pytest.param(
            *(ONE, "repetitions: 3", "repetitions: 2"),
            (".M", 0, 1, "repetitions 3 -> 2"),
            "repetitions 3 -> 2",
            ["repetitions: 3 -> 2"],
            "repetitions 3 -> 2",
            id="fewer repetitions",
        ),
        pytest.param(
            *(ONE, "repetitions: 3", "repetitions: 4"),
            ("M.", 1, 0, "answers 3 -> 4"),
            "new answer",
            ["repetitions: 3 -> 4"],
            "repetitions 3 -> 4",
            id="more repetitions",
        ),
        pytest.param(
            *(TWO, "first ×2", "first"),
            (".M", 0, 1, "conversation 1, repetitions 2 -> 1"),
            "conversation 1, repetitions 2 -> 1",
            ["conversation 1, repetitions: 2 -> 1"],
            "repetitions changed",
            id="fewer repetitions of a run",
        ),
        pytest.param(
            *(TWO, "Ho", "Hey"),
            ("M.", 1, 0, "test changed: message 1, line 1: Ho -> Hey"),
            "new answer",
            ["conversation 2, message 1, line 1: Ho -> Hey"],
            "test changed",
            id="an edit of the second conversation",
        ),
    ],
)
def test_the_number_of_conversations_is_reported(
    echo: Echo,
    documents: Any,
    text: str,
    old: str,
    new: str,
    change: tuple[str, int, int, str],
    reason: str,
    edits: list[str],
    pair: str,
) -> None:
    file = tree(Path(), {"tests/t.md": text}) / "tests/t.md"
    documents("run")
    edit(file, old, new)
    document = documents("status")
    assert [tuple(item.values()) for item in document["changes"]] == [
        (change[0], "tests/t.md", *change[1:])
    ]
    assert {item["reason"] for item in document["items"] if item["kind"] == "judge"} == {reason}
    documents("run")
    assert printed_edits(documents("log", "tests/t.md")["runs"][0]["edits"]) == edits
    compared = documents("diff", "@~1", "@")
    assert [printed_edits(item["edits"]) for item in compared["edits"]] == [edits]
    assert [item["reason"] for item in compared["changed"]] == [pair]


def test_what_was_added_or_removed_is_named_so_in_both_directions(
    workspace: Path, evalstore: Evalstore, documents: Any
) -> None:
    test = "# 👤\n\nHi\n\n---\n\n"
    check = "~~~checks\n- regex: '.'\n~~~\n"
    file = tree(workspace, {"tests/t.md": f"{test}{check}"}) / "tests/t.md"
    evalstore("run", "-q", "--fail-on", "none")
    file.write_text(f"{test}Be kind.\n\n{check.replace('.', 'Zz')}")
    added = "instructions added: line 1: nothing -> Be kind."
    (change,) = documents("status")["changes"]
    assert (change["reason"], change["also"]) == (added, ["checks"])
    assert f"\n        {added}\n" in evalstore("diff").stdout
    evalstore("run", "-q", "--fail-on", "none")
    for sides, words, what in (
        (("@~1", "@"), "instructions added, checks changed", "instructions added: line 1"),
        (("@", "@~1"), "instructions removed, checks changed", "instructions removed: line 1"),
    ):
        found = documents("diff", *sides)
        pairs = [*found["broke"], *found["fixed"], *found["changed"]]
        assert {pair["reason"] for pair in pairs} == {words}
        assert what in [it["what"] for it in found["edits"][0]["edits"]]


def printed_edits(edits: list[dict[str, str | None]]) -> list[str]:
    """Edits as they are printed."""
    return [
        f"{change['what']}: {change['was']} -> {change['now']}"
        if change["was"]
        else str(change["what"])
        for change in edits
    ]


@pytest.mark.parametrize(
    ("file", "old", "new", "reason"),
    [
        ("evalstore.yaml", "candidates", "attempts: 2\ncandidates", "attempts 1 -> 2"),
        (
            *("evalstore.yaml", "candidates:"),
            *(
                "candidatesTemperature: 0.5\ncandidates:",
                "temperature none -> 0.5",
            ),
        ),
        (
            "models/one.yaml",
            "costs:",
            "providerModelCode: other\ncosts:",
            "model changed",
        ),
    ],
    ids=["attempts", "temperature", "model"],
)
def test_another_answer_has_a_reason(
    workspace: Path, documents: Any, file: str, old: str, new: str, reason: str
) -> None:
    documents("run")
    edit(workspace / file, old, new)
    documents("run", "--yes")
    assert {item["reason"] for item in documents("diff", "@~1", "@")["changed"]} == {reason}


def test_a_refresh_that_another_model_answers_says_so(
    echo: Echo, documents: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tree(tmp_path / "echo", {"tests/a.md": "# User\n\nHi\n\n---\n\n~~~checks\n- notEmpty\n~~~\n"})
    answers = iter([Reply("one", resolved_model="m-1"), Reply("two", resolved_model="m-2")])

    async def ask(request: Request, *, timeout: float) -> Reply:
        return next(answers)

    monkeypatch.setattr(echo, "ask", ask)
    documents("run")
    documents("run", "--refresh", "--yes")
    [change] = documents("diff", "@~1", "@")["changed"]
    assert change["reason"] == "asked again: resolved model m-1 -> m-2"


def test_an_answer_that_was_drawn_again_has_no_other_reason(
    workspace: Path, documents: Any
) -> None:
    documents("run")
    edit(workspace / "models/one.yaml", "Warm.", "It is warm.")
    documents("run", "--refresh", "--yes")
    document = documents("diff", "@~1", "@")
    assert [item["reason"] for item in document["changed"]] == ["asked again"]
    assert document["unchanged"] == 1


def test_a_judgement_that_is_made_in_another_way_says_so(workspace: Path, documents: Any) -> None:
    checks = "The answer must be warm.\n\n~~~checks\n- equals: Snow.\n~~~\n"
    edit(workspace / "tests/weather.md", "The answer must be warm.\n", checks)
    documents("run")
    edit(workspace / "tests/weather.md", "- equals", "evaluator: always\nchecks:\n- equals")
    actual = documents("status")["items"]
    assert {item["reason"] for item in actual} == {
        "judged by: checks, models -> checks, models, always"
    }


def test_counts_of_judgements_that_failed_checks_may_save_are_upper_bounds(
    workspace: Path, evalstore: Evalstore
) -> None:
    checked = WEATHER + "\n~~~checks\n- contains: Warm\n~~~\n"
    tree(workspace, {"tests/weather.md": checked})
    evalstore("run", "-q")
    second = ONE_MODEL.replace("provider: scripted", "provider: scripted\nextraIdentifier: v2")
    tree(workspace, {"models/one.yaml": second})
    status = evalstore("status").stdout
    assert "new answer" not in status  # the verdicts on it go without saying
    assert "give 2 verdicts by checks and up to 2 by models" in status
    explained = evalstore("status", "--explain").stdout
    assert "Would judge (2 by checks and up to 2 by models):\n" in explained
