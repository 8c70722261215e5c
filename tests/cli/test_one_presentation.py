"""`show` and the browser say the same of an answer, in the same words and order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evalstore.operations.views.answer import session_of
from evalstore.operations.views.cases import cases
from evalstore.planning.options import Location
from evalstore.tui.render.answer import answer_lines, verdict_lines
from tests.builders import tree
from tests.cli.conftest import ONE, Evalstore, normalise
from tests.cli.test_run import edit

CUT = "[The token limit cut the answer off here]"


def _in_browser(row: int) -> list[str]:
    """The lines of the page of the first answer of a case, without indents and titles' marks."""
    result = cases(Location(Path.cwd()), None).rows[row].results[0]
    assert result
    view = session_of(Location(Path.cwd()), result.sessions[0], result)
    lines = [*verdict_lines(view, result, ""), *answer_lines(view)]
    return normalise("\n".join("".join(span.text for span in line.spans) for line in lines)).split(
        "\n"
    )


@pytest.fixture
def cut(workspace: Path) -> Path:
    """The workspace, whose candidate is cut off."""
    tree(workspace, {"models/one.yaml": ONE.replace("Warm.,", "Warm., finishReason: length,")})
    return workspace


def test_an_answer_that_was_cut_off_says_so(
    cut: Path, documents: Any, evalstore: Evalstore
) -> None:
    sessions = [case["session"] for case in documents("run")["cases"]]
    shown = [evalstore("show", session).stdout for session in sessions]
    assert f"answer:\n    Warm.\n\n    {CUT}\n" in shown[1]
    assert CUT not in shown[0]
    assert [line for line in _in_browser(1) if line in ("Warm.", CUT)] == ["Warm.", CUT]


def test_both_say_the_same_of_a_judgement_and_of_what_an_answer_took(
    workspace: Path, documents: Any, evalstore: Evalstore
) -> None:
    session = documents("run")["cases"][0]["session"]
    edit(workspace / "tests/weather.md", "must be warm.", "must be short.")
    documents("run")
    page = _in_browser(0)
    told = [line for line in page if " by scripted/judge" in line]
    assert [line[2:] for line in told] == [
        line for line in evalstore("show", session).stdout.splitlines() if " by scripted" in line
    ]
    assert len(told) == 2
    assert page[-2] in evalstore("show", session).stdout.splitlines()


def test_verdicts_have_one_order(workspace: Path, documents: Any, evalstore: Evalstore) -> None:
    tree(
        workspace, {"tests/odd.md": "# 👤\n\nHi\n\n---\n\n~~~checks\n- {expr: '1 / 0 == 1'}\n~~~\n"}
    )
    documents("run")
    listed = [line.split()[0] for line in evalstore("show").stdout.splitlines()[4:]]
    assert listed == ["error", "fail", "pass"]
