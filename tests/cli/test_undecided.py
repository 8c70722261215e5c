"""An undecided verdict is neither a failure nor a pass, and nothing is broken or fixed by it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.builders import tree
from tests.cli.conftest import Evalstore
from tests.git.test_status import git

MODEL = "id: one\nprovider: scripted\nresponses: [{answer: Yes.}]\n"
TEST = "# 👤\n\nIs it so?\n\n---\n\nIt must {}.\n"
JUDGE = """\
id: judge
provider: scripted
responses:
  - {when: be odd, answer: Perhaps.}
  - {when: be strange, answer: Perhaps.}
  - {when: be wrong|be bad, answer: {pass: false, feedback: Bad.}}
  - {answer: {pass: true, feedback: Fine.}}
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace whose judge cannot be read where an answer must be odd."""
    settings = "candidates: [one]\nevaluators: [judge]\n"
    files = {"evalstore.yaml": settings, "models/one.yaml": MODEL, "models/judge.yaml": JUDGE}
    monkeypatch.chdir(tree(tmp_path / "w", files))
    return Path.cwd()


def judge(evalstore: Evalstore, must: str, *options: str) -> str:
    """What a run prints after the test has these instructions."""
    tree(Path.cwd(), {"tests/t.md": TEST.format(must)})
    return evalstore("run", "-q", *options).stdout


def test_a_pass_that_is_undecided_now_has_not_broken(
    place: Path, evalstore: Evalstore, documents: Any
) -> None:
    judge(evalstore, "be right")
    shown = judge(evalstore, "be odd")
    assert shown.startswith("since the last run: 1 now undecided\n")
    assert "(now undecided)" in shown
    assert documents("run", "--fail-on", "none")["since"]["undecided"] == 0
    compared = evalstore("diff", "@~2", "@~1").stdout
    assert "1 result is now undecided\n" in compared
    assert "Broke" not in compared
    assert documents("diff", "@~2", "@~1")["undecided"] == 1


def test_what_is_undecided_again_has_not_failed_again(place: Path, evalstore: Evalstore) -> None:
    judge(evalstore, "be odd")
    shown = judge(evalstore, "be strange")
    assert "still fails" not in shown
    assert "failed before" not in evalstore("run", "-q").stdout
    assert "fixed" not in judge(evalstore, "be right")


def test_a_first_undecided_result_is_no_new_failure(place: Path, evalstore: Evalstore) -> None:
    judge(evalstore, "be right")
    tree(place, {"tests/u.md": TEST.format("be odd")})
    shown = evalstore("run", "-q").stdout
    assert "new failure" not in shown
    assert "1 now undecided" in shown


def test_an_undecided_result_that_has_passed_keeps_the_gate_closed(
    place: Path, evalstore: Evalstore
) -> None:
    judge(evalstore, "be right")
    judge(evalstore, "be odd", "--fail-on", "none")
    for options in ((), ("--baseline", "@~3")):
        assert evalstore("run", "-q", "--fail-on", "regression", *options).exit_code == 1
        evalstore("run", "-q")


def commit(name: str) -> None:
    git(Path(), "add", "-A", "--", "tests", "evalstore.yaml")
    git(Path(), "commit", "-q", "--allow-empty", "-m", name)


def test_an_undecided_result_between_a_pass_and_a_failure_accepts_nothing(
    place: Path, evalstore: Evalstore, documents: Any
) -> None:
    git(Path(), "init", "-q", "-b", "main")
    for must in ("be right", "be odd", "be strange", "be wrong"):
        tree(Path(), {"tests/t.md": TEST.format(must)})
        commit(must)
        gate = evalstore("run", "-q", "--fail-on", "regression")
        if must == "be strange":
            assert gate.exit_code == 0  # it was undecided in the run of the commit before
    assert gate.exit_code == 1
    assert evalstore("run", "-q", "--fail-on", "regression").exit_code == 1
    against = ("run", "--fail-on", "regression", "--baseline")
    assert evalstore(*against, "@~2").exit_code == 1
    assert documents(*against, "@~4")["regressions"][0]["passedIn"] == run_id(documents, -1)
    commit("accepted")
    assert evalstore("run", "-q", "--fail-on", "regression").exit_code == 0


def test_an_undecided_result_after_a_failure_makes_no_regression_of_the_next(
    place: Path, evalstore: Evalstore
) -> None:
    judge(evalstore, "be right")
    judge(evalstore, "be wrong")
    judge(evalstore, "be odd")
    judge(evalstore, "be bad")
    assert evalstore("run", "--fail-on", "regression", "--baseline", "@~1").exit_code == 0


def run_id(documents: Any, place: int) -> str:
    """The id of a run, newest first."""
    runs = documents("log")["runs"]
    return str(runs[place]["run"])
