"""The command line and the browser show answers, runs and comparisons in the same words."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from evalstore.core.display import SIGNS, StyledLine
from evalstore.core.runs import ProgressListener
from evalstore.interfaces.cli.render.history import print_diff
from evalstore.interfaces.cli.render.run import print_report
from evalstore.interfaces.cli.render.status import print_status
from evalstore.interfaces.tui.render.answer import (
    answer_lines,
    closing_lines,
    lack_lines,
    verdict_lines,
)
from evalstore.interfaces.tui.render.run import plan_lines, result_lines
from evalstore.interfaces.tui.render.verdicts import pair_lines
from evalstore.interfaces.tui.screens.compare import comparison_lines
from evalstore.planning.options import Location, RunOptions, SelectionOptions
from evalstore.results.answer.answer import session_of
from evalstore.results.compare.diff import diff, diff_models
from evalstore.results.table.cases import cases
from evalstore.runs.run import ALL, RunEnd, plan, run
from tests.builders import tree
from tests.interfaces.cli.conftest import ONE, Evalstore, normalise
from tests.interfaces.cli.run.test_run import edit

CUT = "[The token limit cut the answer off here]"


def _in_browser(row: int) -> list[str]:
    """The lines of the page of the first answer of a case, without indents and titles' marks."""
    result = cases(Location(Path.cwd()), None).rows[row].results[0]
    assert result
    view = session_of(Location(Path.cwd()), result.sessions[0], result)
    lines = [
        *lack_lines(view, result, ""),
        *verdict_lines(view),
        *answer_lines(view, {}),
        *closing_lines(view),
    ]
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
    messages = [line for line in page if " by scripted/judge" in line]
    assert [line[2:] for line in messages] == [
        line.strip()
        for line in evalstore("show", session).stdout.splitlines()
        if " by scripted" in line
    ]
    assert len(messages) == 2
    assert page[-2] in evalstore("show", session).stdout.splitlines()


def test_verdicts_have_one_order(workspace: Path, documents: Any, evalstore: Evalstore) -> None:
    tree(
        workspace, {"tests/odd.md": "# 👤\n\nHi\n\n---\n\n~~~checks\n- {expr: '1 / 0 == 1'}\n~~~\n"}
    )
    documents("run")
    listed = [line.split()[0] for line in evalstore("show").stdout.splitlines()[4:]]
    assert listed == ["error", "fail", "pass"]


# --- runs and comparisons


def _texts(lines: Iterable[StyledLine]) -> list[str]:
    """Lines of the browser without indents and the signs of verdicts."""
    texts = ["".join(span.text for span in line.spans) for line in lines]
    for word, sign in SIGNS.items():
        texts = [text.replace(f"{sign} {word}", word) for text in texts]
    return [text.strip() for text in texts if text.strip()]


def _printed(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return [line.strip() for line in capsys.readouterr().out.splitlines()]


@pytest.mark.parametrize("max_cost", [None, 0.0], ids=["complete", "stopped"])
def test_a_run_is_summed_up_in_the_same_lines(
    workspace: Path, capsys: pytest.CaptureFixture[str], max_cost: float | None
) -> None:
    options = RunOptions(max_cost=max_cost, fail_on="none")
    report = run(Location(workspace), SelectionOptions(), options, ProgressListener())
    print_report(report, None)
    printed = _printed(capsys)
    shown = _texts(result_lines(RunEnd(report, (), ())))
    assert [line for line in shown if line not in printed] == [f"{report.seconds:.1f} s"]
    assert len(shown) == (3 if max_cost is None else 4)


def test_a_plan_is_summed_up_in_the_same_lines(
    workspace: Path, capsys: pytest.CaptureFixture[str], documents: Any
) -> None:
    preview = plan(Location(workspace), ALL)
    print_status(preview.status, explain=True)
    assert _texts(plan_lines(ALL, preview))[0] == _printed(capsys)[-1]
    documents("run")
    preview = plan(Location(workspace), ALL)
    print_status(preview.status, explain=True)
    assert _texts(plan_lines(ALL, preview)) == _printed(capsys)[-1:]


@pytest.fixture
def two(workspace: Path) -> Path:
    """The workspace with a second candidate, which passes Oslo, too."""
    script = ONE.replace("scripted/one", "scripted/two").replace("Cold.", "Not warm.")
    tree(workspace, {"models/two.yaml": script})
    both = "[scripted/one, scripted/two]\nconfirmAbove: 1000"
    edit(workspace / "evalstore.yaml", "[scripted/one]", both)
    return workspace


@pytest.mark.parametrize("of_models", [False, True], ids=["runs", "candidates"])
def test_a_comparison_and_its_pairs_are_shown_in_the_same_lines(
    two: Path, capsys: pytest.CaptureFixture[str], documents: Any, of_models: bool
) -> None:
    documents("run")
    edit(two / "tests/weather.md", "must be warm.", "must be short.")
    edit(two / "models/one.yaml", "Cold.", "Warm.")
    documents("run", "--refresh")
    location = Location(two)
    compared = (
        diff_models(location, "@~1", ("scripted/one", "scripted/two"))
        if of_models
        else diff(location, "@~1", "@")
    )
    print_diff(compared, answers=False, stat=False)
    # The browser opens an answer by a key, so only the command line shows the ids.
    ids = re.compile(r"(?<=\S)  [0-9a-f]{8}( -> [0-9a-f]{8})?\Z")
    printed = [ids.sub("", line) for line in _printed(capsys)]
    comparison = compared.comparison
    pairs = [*comparison.broke, *comparison.fixed, *comparison.changed]
    assert pairs
    shown = _texts(comparison_lines(compared, ""))
    for pair in pairs:
        shown += _texts(pair_lines(compared, pair, compared.feedback))
    assert [line for line in shown if line not in printed] == []
