"""An undecided verdict is neither a failure nor a pass, and nothing is broken or fixed by it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from evalstore.planning.options import Location
from evalstore.results.table.cases import candidate_rates, cases
from evalstore.runs.status.dashboard import read_dashboard
from tests.builders import tree
from tests.interfaces.cli.conftest import Evalstore
from tests.workspace.git.test_status import git

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


def test_in_a_tie_a_judge_without_a_reason_says_how_it_judged(
    place: Path, evalstore: Evalstore, documents: Any
) -> None:
    silent = "id: silent\nprovider: scripted\nresponses: [{answer: {pass: true, feedback: ''}}]\n"
    settings = "candidates: [one]\nevaluators: [judge, silent]\n"
    tree(place, {"evalstore.yaml": settings, "models/silent.yaml": silent})
    assert "           judge: Bad.\n           silent: pass\n" in judge(evalstore, "be bad")
    (result,) = documents("ls", "results")["results"]
    assert (result["verdict"], result["feedback"]) == ("undecided", "judge: Bad.\nsilent: pass")
    assert "silent: pass" not in judge(evalstore, "be right")


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
    assert "1 new and undecided" in shown


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


@pytest.fixture
def undecided(place: Path, evalstore: Evalstore) -> Path:
    """Two cases whose last run found one that broke and one that is undecided now."""
    tree(place, {"tests/u.md": TEST.format("be right")})
    judge(evalstore, "be right")
    tree(place, {"tests/u.md": TEST.format("be odd")})
    judge(evalstore, "be wrong")
    return place


def test_undecided_results_have_counts_of_their_own(
    undecided: Path, evalstore: Evalstore, documents: Any
) -> None:
    header, row = evalstore("stats").stdout.splitlines()[1:]
    assert row[: header.index("UNDECIDED") + len("UNDECIDED")].endswith(" 1")
    assert documents("stats")["total"]["undecided"] == 1
    junit = evalstore("export", "--format", "junit").stdout
    assert junit.count('<property name="undecided" value="1"/>') == 1
    told = "Edits of tests changed 2 results: 1 broke, 1 now undecided, none fixed."
    markdown = evalstore("report", "--markdown").stdout
    assert markdown.startswith(f"### evalstore: {told} ")
    assert "\n#### Now undecided\n\n- **`tests/u.md`** `one`: pass -> undecided " in markdown
    evalstore("report", "@", "-o", str(undecided / "report.html"))
    page = (undecided / "report.html").read_text(encoding="utf-8")
    assert told in page
    assert 'id="before"' not in page
    (listed,) = re.findall(r'<h2 id="undecided">(.*?)</section>', page, re.DOTALL)
    assert listed.startswith("Now undecided (1 case)")
    words = [part.rpartition(" ")[2] for part in re.findall(r"[a-z ]+(?=</span>)", listed)]
    assert ("pass" in words, "undecided" in words) == (True, True)
    assert "since run" not in listed
    assert "1 of 2 results undecided, 1 of them newly<" in page


def test_regressions_that_are_undecided_as_before_are_counted_once(
    undecided: Path, evalstore: Evalstore
) -> None:
    shown = evalstore("run", "--fail-on", "regression").stdout
    assert shown.endswith("passed in run <short>, do not pass in run <short>)\n")
    assert "undecided  tests/u.md  one  <short>  (regression: passed in run <short>)" in shown
    assert "as before" not in shown
    assert "before (" not in shown
    assert "before (--all" in evalstore("run").stdout


def test_reports_list_what_broke_earlier_as_the_list_of_broken_results_does(
    undecided: Path, evalstore: Evalstore
) -> None:
    evalstore("run", "-q")
    text = evalstore("report", "--markdown").stdout
    assert text.startswith("### evalstore: Nothing broke or was fixed; 1 result still broken. ")
    told = text.partition("#### Still broken from the last 10 runs\n\n")[2]
    assert told.startswith("- **`tests/t.md`** `one`: fail, broke in run ")
    (row,) = evalstore("ls", "results", "--broke").stdout.splitlines()[1:]
    assert row.startswith("fail     tests/t.md")
    told = "1 of 2 results fails (1 broke in the last 10 runs)"
    assert f"\n{told}.\n" in text
    assert evalstore("report", "@", "-o", "page.html").exit_code == 0
    assert f">{told}<" in Path("page.html").read_text(encoding="utf-8")
    compared = evalstore("report", "--markdown", "--compare", "@~2").stdout
    assert "\n1 of 2 results fails.\n" in compared, "earlier runs are not searched"
    evalstore("run", "-q", "tests/t.md")
    evalstore("report", "@", "-o", "part.html")
    for part in (evalstore("report", "--markdown").stdout, Path("part.html").read_text()):
        assert "results fails" not in part, "the sentence has counts"
    tree(undecided, {"tests/t.md": TEST.format("be right")})
    evalstore("run", "-q")
    assert "results fails" not in evalstore("report", "--markdown").stdout


def test_status_counts_what_is_undecided_without_a_call(
    undecided: Path, evalstore: Evalstore, documents: Any
) -> None:
    tree(undecided, {"tests/u.md": TEST.format("be right")})
    shown = evalstore("status").stdout
    assert "tests/u.md  reverted to a stored version\n" in shown  # undecided before: not fixed
    evalstore("run", "-q")
    tree(undecided, {"tests/u.md": TEST.format("be odd")})
    shown = evalstore("status").stdout
    assert "tests/u.md  reverted to a stored version\n" in shown
    assert "Since the last run, without new calls: 1 result now undecided" in shown
    found = documents("status")
    assert (found["broke"], found["fixed"], found["undecided"]) == (0, 0, 1)


def test_a_failure_that_was_undecided_does_not_still_fail(
    undecided: Path, evalstore: Evalstore
) -> None:
    judge(evalstore, "be odd")
    tree(undecided, {"tests/t.md": TEST.format("be wrong")})
    shown = evalstore("status").stdout
    assert "tests/t.md  reverted to a stored version\n" in shown
    assert "1 result no longer undecided" in shown


def test_the_history_of_a_result_does_not_say_that_it_failed_when_it_was_undecided(
    undecided: Path, evalstore: Evalstore
) -> None:
    tree(undecided, {"tests/u.md": TEST.format("be wrong")})
    evalstore("run", "-q")
    assert "    not passing since run <short>" in evalstore("show", "tests/u.md").stdout
    tree(undecided, {"tests/u.md": TEST.format("be odd")})
    evalstore("run", "-q")
    tree(undecided, {"tests/u.md": TEST.format("be right")})
    evalstore("run", "-q")
    assert "    last did not pass in run <short>" in evalstore("show", "tests/u.md").stdout
    assert "    broken since run <short>" in evalstore("show", "tests/t.md").stdout


def test_what_broke_and_is_undecided_now_says_so_in_the_browser(
    undecided: Path, evalstore: Evalstore
) -> None:
    judge(evalstore, "be odd")
    broken = read_dashboard(Location(undecided)).broken
    assert broken is not None
    assert [case.name for case in broken] == ["tests/t.md one (undecided now)"]


@pytest.mark.parametrize("option", ["--lf", "--retry-errors"])
def test_cases_that_were_chosen_by_their_verdict_have_no_interval(
    undecided: Path, evalstore: Evalstore, documents: Any, option: str
) -> None:
    for letter in "bcdefg":
        tree(undecided, {f"tests/{letter}.md": TEST.format("be right")})
    evalstore("run", "-q")
    assert "interval" in evalstore("stats", "@").stdout.lower()
    ran = evalstore("run", "-q", option).stdout
    assert "interval" not in ran.lower()
    assert "INTERVAL" not in evalstore("stats", "@").stdout
    compared = evalstore("diff", "@~1", "@").stdout
    assert "chosen by their verdicts" in compared
    assert "pass rate" not in compared
    statistics = documents("diff", "@~1", "@")["statistics"]
    for rate in (statistics["difference"], statistics["was"], statistics["now"]):
        assert (rate["low"], rate["high"]) == (None, None)
    exported = undecided / "exported"
    evalstore("export", "--format", "every-eval-ever", "-o", str(exported))
    written = [path.read_text() for path in exported.rglob("*.json")]
    assert written
    assert not any("confidence_interval" in text for text in written)
    listed = cases(Location(undecided), "@")
    assert [rate.interval for rate in candidate_rates(listed)] == [None]


def test_the_bar_of_a_candidate_has_the_range_that_undecided_verdicts_leave(
    place: Path, evalstore: Evalstore
) -> None:
    tree(place, {"models/two.yaml": MODEL.replace("one", "two")})
    tree(place, {"evalstore.yaml": "candidates: [one, two]\nevaluators: [judge]\n"})
    tree(place, {"tests/u.md": TEST.format("be odd")})
    shown = judge(evalstore, "be right")
    bar = f"{'█' * 10}{'▒' * 10}"
    assert f"one  {bar}  1/2 pass, 1 undecided  50.0%\n" in shown
    coloured = evalstore("run", "--refresh", "--color", "always").stdout
    bar = f"\x1b[32m{bar[:10]}\x1b[0m\x1b[33m{bar[10:]}\x1b[0m"
    assert f"one  {bar}  1/2 pass, 1 undecided  50.0%\n" in coloured


def test_an_undecided_result_of_a_new_case_is_new(
    place: Path, evalstore: Evalstore, documents: Any
) -> None:
    judge(evalstore, "be right")
    tree(place, {"tests/t.md": TEST.format("be wrong"), "tests/new.md": TEST.format("be odd")})
    shown = evalstore("run", "-q").stdout
    assert shown.startswith("since the last run: 1 broke, 1 new and undecided\n")
    assert shown.count("now undecided") == 0
    assert "undecided  tests/new.md  one  <short>  (new)\n" in shown
