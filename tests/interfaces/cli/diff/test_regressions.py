"""`run --fail-on regression`: a case that has passed before and does not pass now."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evalstore.core import batches
from evalstore.planning import earlier_results
from evalstore.results.flips import verdict_changes
from evalstore.store import events
from evalstore.store.results import RowResults
from tests.builders import tree
from tests.interfaces.cli.conftest import Echo, Evalstore
from tests.interfaces.cli.status.test_explained_cases import write

GATE = ("run", "-q", "--fail-on", "regression")


@pytest.fixture
def broken(echo: Echo, evalstore: Evalstore) -> Evalstore:
    """A case that passed in the first run and failed in the second."""
    write()
    evalstore("run", "-q")
    write("20 euros")
    ran = evalstore(*GATE)
    assert ran.exit_code == 1
    assert "  (broke, regression: passed in run <short>)\n" in ran.stdout
    return evalstore


def test_the_gate_fails_again_until_the_case_passes(broken: Evalstore) -> None:
    ran = broken(*GATE)
    assert ran.exit_code == 1
    assert ran.stdout == (
        "fail       tests/t.md  scripted/one  <short>  (regression: passed in run <short>)\n"
        "           '10 euros' is not in '20 euros'\n"
        "\n"
        "0 pass, 1 fail (0.0%, 95% interval 0.0% to 79.3%)\n"
        "run <short> complete: 0 new answers, 1 reused, 0 new verdicts, $0\n"
        "gate failed: 1 regression (passed in run <short>, fails in run <short>)\n"
    )
    write("30 euros")
    ran = broken(*GATE)
    assert ran.exit_code == 1
    assert "  (changed, regression: passed in run <short>)\n" in ran.stdout
    write("it is 10 euros")
    assert broken(*GATE).stdout.endswith("gate passed\n")


def test_the_reports_name_what_broke_in_an_earlier_run(
    broken: Evalstore, tmp_path_factory: pytest.TempPathFactory
) -> None:
    page = tmp_path_factory.mktemp("report") / "report.html"
    assert "; 1 result broke, none fixed.\n" in broken("report", "--markdown").stdout
    broken(*GATE)
    broken("tag", "good", "@~2")
    broken("tag", "worse", "@~1")
    text = broken("report", "--markdown").stdout
    assert text.startswith("### evalstore: Nothing broke or was fixed; 1 result still broken. ")
    assert ", compared with `<short>` (`worse`).\n" in text
    told = text.partition("#### Still broken from the last 10 runs\n\n")[2]
    since = "fail, broke in run `<short>` (`worse`), "
    assert told.startswith(f"- **`tests/t.md`** `scripted/one`: {since}")
    assert " UTC: test changed\n\n" in told
    assert told.partition("\n\n")[2].startswith(
        "  ```text\n  '10 euros' is not in '20 euros'\n  ```\n"
    )
    broken("report", "@", "-o", str(page))
    assert "1 result still broken" in page.read_text(encoding="utf-8")
    assert ">Still broken from the last 10 runs (1 case)</h2>" in page.read_text(encoding="utf-8")
    assert broken("report", "--markdown", "--compare", "@~1").stdout == text
    text = broken("report", "--markdown", "--compare", "@").stdout
    assert text.startswith("### evalstore: Nothing broke or was fixed. ")


def test_what_changed_since_it_broke_is_told_too(
    echo: Echo, evalstore: Evalstore, documents: Any
) -> None:
    write()
    evalstore("run", "-q")
    evalstore("label", "tests/t.md", "fail", "--as", "Ada")
    evalstore("run", "-q")
    evalstore("run", "-q")
    causes = "labelled by Ada"
    assert f" UTC: {causes}\n" in evalstore("report", "--markdown").stdout
    write("10 euros", "20 euros")
    evalstore("run", "-q")
    later = ["checks changed", "label of Ada no longer counts"]
    text = evalstore("report", "--markdown").stdout
    assert f" UTC: {causes}; since then: {', '.join(later)}\n" in text
    evalstore("report", "@", "-o", "r.html")
    assert f": {causes}; since then: {', '.join(later)})<" in Path("r.html").read_text("utf-8")
    listed = evalstore("ls", "results", "--broke").stdout
    assert f"  {causes}; since then: {', '.join(later)}  " in listed
    (row,) = documents("ls", "results", "--broke")["results"]
    assert row["changes"] == [causes]


def test_what_broke_earlier_and_is_not_judged_now_has_a_word_in_markdown(
    broken: Evalstore, echo: Echo
) -> None:
    echo.failing = "30 euros"
    write("30 euros")
    broken("run", "-q")
    told = broken("report", "--markdown").stdout
    assert "- **`tests/t.md`** `scripted/one`: pending, broke in run `<short>`, " in told


def test_the_report_of_a_run_follows_only_what_broke_and_reads_no_labels_for_it(
    broken: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    for answer in ("30 euros", "40 euros"):
        write(answer)
        broken("run", "-q")
    followed: list[str] = []
    find = verdict_changes._Places.find

    def note(places: Any, run: Any, cells: Any) -> Any:
        followed.extend(file for file, *_ in cells)
        return find(places, run, cells)

    monkeypatch.setattr(verdict_changes._Places, "find", note)
    monkeypatch.setattr(verdict_changes, "read_labels", None)
    told = broken("report", "--markdown").stdout
    assert "`scripted/one`: fail, broke in run `<short>`, " in told
    assert followed == ["tests/t.md"]


def test_a_report_lists_what_is_broken_also_in_a_file_that_reaches_its_threshold(
    broken: Evalstore,
) -> None:
    path = Path("tests/t.md")
    path.write_text(f"---\nthreshold: 0\n---\n{path.read_text()}")
    broken(*GATE)
    assert broken(*GATE).stdout.endswith("gate passed\n")
    assert broken("report", "--markdown").stdout.startswith(
        "### evalstore: Nothing broke or was fixed; 1 result still broken. "
    )
    assert broken("ls", "results", "--broke").stdout.count("tests/t.md") == 1


def test_no_number_of_runs_makes_a_regression_pass(
    broken: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "RUNS_SEARCHED", 2)
    for _ in range(4):
        ran = broken(*GATE)
    assert ran.exit_code == 1


def test_equal_earlier_runs_are_looked_up_once(
    broken: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[object] = []
    find = earlier_results.EarlierRuns._find

    def counting(self: Any, root: str, paths: Any) -> Any:
        looked.append(root)
        return find(self, root, paths)

    monkeypatch.setattr(earlier_results.EarlierRuns, "_find", counting)
    broken(*GATE)
    first = len(looked)
    for _ in range(3):
        broken(*GATE)
    looked.clear()
    broken(*GATE)
    assert len(looked) <= first


def test_what_failed_in_the_baseline_is_accepted(broken: Evalstore, documents: Any) -> None:
    assert broken(*GATE, "--baseline", "@").stdout.endswith("gate passed\n")
    document = documents(*GATE, "--baseline", "@~2")
    assert document["gate"] == "failed"
    (regression,) = document["regressions"]
    assert (regression["file"], regression["model"]) == ("tests/t.md", "scripted/one")
    assert regression["passedIn"] == documents("log")["runs"][-1]["run"]


def test_a_case_that_the_baseline_did_not_judge_has_its_verdict_before_it(
    broken: Evalstore,
) -> None:
    write("10 euros", file="tests/u.md")
    broken("run", "-q", "tests/u.md")
    assert broken(*GATE, "--baseline", "@").stdout.endswith("gate passed\n")


def test_a_case_that_has_never_passed_is_not_a_regression(
    echo: Echo, evalstore: Evalstore, documents: Any
) -> None:
    write("20 euros")
    evalstore("run", "-q")
    assert documents(*GATE)["regressions"] == []
    assert "regressions" not in documents("run", "--fail-on", "none")


def test_a_label_accepts_a_regression(broken: Evalstore) -> None:
    broken("label", "tests/t.md", "pass")
    assert broken(*GATE).exit_code == 0


@pytest.mark.parametrize(
    ("gate", "error"),
    [
        (
            (),
            "error: '--baseline' needs '--fail-on regression'\n"
            "hint: the other gates do not depend on earlier runs\n",
        ),
        (
            ("--fail-on", "regression", "--threshold", "0.5"),
            "error: '--baseline' has no effect with '--threshold'\n"
            "hint: leave one of them out; with '--threshold' only the pass rate counts\n",
        ),
    ],
)
def test_a_baseline_of_another_gate_is_refused(
    broken: Evalstore, echo: Echo, gate: tuple[str, ...], error: str
) -> None:
    write("40 euros")
    asked = len(echo.asked)
    ran = broken("run", *gate, "--baseline", "@")
    assert (ran.exit_code, len(echo.asked)) == (2, asked)
    assert ran.stderr == error


def test_an_unknown_baseline_asks_nothing(broken: Evalstore, echo: Echo) -> None:
    write("40 euros")
    asked = len(echo.asked)
    for argv in (GATE, (*GATE, "-n")):
        ran = broken(*argv, "--baseline", "@~7")
        assert (ran.exit_code, len(echo.asked)) == (2, asked)
        assert "unknown run '@~7'" in ran.stderr


def rename(old: str, new: str) -> None:
    Path("tests", old).rename(Path("tests", new))


@pytest.mark.parametrize("between", [False, True], ids=["one step", "a run between"])
def test_a_renamed_test_remains_a_regression(broken: Evalstore, between: bool) -> None:
    rename("t.md", "u.md")
    if between:
        assert broken(*GATE).exit_code == 1
    write("20 euros", "11 euros", file="tests/u.md")
    ran = broken(*GATE)
    assert (ran.exit_code, ran.stdout.splitlines()[-1]) == (
        1,
        "gate failed: 1 regression (passed in run <short>, fails in run <short>)",
    )
    assert broken("run", "-q", "--fail-on", "regression", "--baseline", "@").exit_code == 0


def test_a_chain_of_renames_is_followed_to_the_baseline(
    echo: Echo, evalstore: Evalstore, documents: Any
) -> None:
    write()
    evalstore("run", "-q")
    for old, new in (("t.md", "u.md"), ("u.md", "v.md")):
        rename(old, new)
        evalstore("run", "-q")
    write(expected="11 euros", file="tests/v.md")
    gate = documents(*GATE, "--baseline", "@~2")
    assert [each["file"] for each in gate["regressions"]] == ["tests/v.md"]
    (result,) = documents("diff", "@~3", "@")["broke"]
    assert result["file"] == "tests/v.md"
    assert "last passed in run" in evalstore("show", "tests/v.md").stdout


def test_a_file_that_was_away_for_a_run_is_followed(broken: Evalstore) -> None:
    write("always here", "always", file="tests/other.md")
    aside = Path("t.md")
    Path("tests/t.md").rename(aside)
    broken("run", "-q")
    aside.rename("tests/u.md")
    assert broken(*GATE).exit_code == 1


def test_a_file_at_the_former_path_of_another_has_not_passed(broken: Evalstore) -> None:
    rename("t.md", "u.md")
    broken("run", "-q")
    write("another", "missing")
    ran = broken(*GATE)
    assert (
        ran.stdout.splitlines()[-1]
        == "gate failed: 1 regression (passed in run <short>, fails in run <short>)"
    )
    assert "tests/u.md  scripted/one  <short>  (regression: passed in run <short>)" in ran.stdout


ROWS = """\
---
dataset: rows.csv{id}
---

# 👤

{{{{question}}}}

---

~~~checks
- contains: "yes"
~~~
"""


def write_rows(*questions: str, id: bool) -> None:
    rows = "".join(f"{number},{question}\n" for number, question in enumerate(questions))
    page = ROWS.format(id="\nrowId: nr" if id else "")
    tree(Path(), {"tests/t.md": page, "tests/rows.csv": f"nr,question\n{rows}"})


def test_a_row_is_followed_from_its_values_to_its_id_and_back(
    echo: Echo, evalstore: Evalstore
) -> None:
    write_rows("yes", "yes too", id=False)
    evalstore("run", "-q")
    write_rows("yes", "yes too", id=True)
    evalstore("run", "-q")
    write_rows("no", "yes too", id=True)
    assert evalstore(*GATE).exit_code == 1
    write_rows("no", "yes too", id=False)
    assert evalstore(*GATE).exit_code == 1


def test_the_gate_and_diff_agree_on_what_broke_since_a_baseline(
    echo: Echo, evalstore: Evalstore, documents: Any
) -> None:
    write_rows("yes", "yes too", id=False)
    evalstore("run", "-q")
    write_rows("yes", id=False)
    evalstore("run", "-q")
    write_rows("no", id=False)  # the only row, as "yes" was in the run between, but a new one
    assert documents(*GATE, "--baseline", "@~1")["regressions"] == []
    assert documents("diff", "@~2", "@")["broke"] == []
    assert len(documents(*GATE, "--baseline", "@~1")["regressions"]) == 1
    assert len(documents("diff", "@~2", "@")["broke"]) == 1


def test_a_row_is_found_by_its_values_however_far_away_they_were(
    echo: Echo, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "SMALL_SIZE", 1)
    between = [f"yes {number}" for number in range(150)]
    write_rows("yes", *between, "never", id=True)
    evalstore("run", "-q")
    write_rows("never", *between, "yes", id=True)
    assert evalstore(*GATE).stdout.splitlines()[-1] == "gate passed"


def test_the_gate_names_failures_that_have_no_earlier_verdict(
    echo: Echo, evalstore: Evalstore
) -> None:
    write("20 euros")
    ran = evalstore(*GATE)
    assert ran.stdout.splitlines()[-1] == (
        "gate passed: 1 failing result is new (no earlier verdict)"
    )
    write("20 euros", file="tests/u.md")
    write("30 euros", file="tests/v.md")
    assert evalstore(*GATE).stdout.splitlines()[-1] == (
        "gate passed: 2 failing results are new (no earlier verdict)"
    )
    assert evalstore(*GATE).stdout.splitlines()[-1] == "gate passed"


@pytest.mark.parametrize(("threshold", "exit_code"), [("0", 0), ("0.5", 1)])
def test_a_file_that_reaches_its_own_threshold_has_no_regressions(
    broken: Evalstore, documents: Any, threshold: str, exit_code: int
) -> None:
    page = Path("tests/t.md")
    page.write_text(f"---\nthreshold: {threshold}\n---\n{page.read_text()}")
    assert broken(*GATE).exit_code == exit_code
    assert len(documents(*GATE)["regressions"]) == exit_code


def test_last_failed_follows_a_file_through_runs_of_other_files(broken: Evalstore) -> None:
    write("always here", "always", file="tests/other.md")
    rename("t.md", "u.md")
    broken("run", "-q", "tests/other.md")
    write("30 euros", "11 euros", file="tests/u.md")
    ran = broken("run", "-q", "--last-failed", "--fail-on", "none")
    assert "0 pass, 1 fail" in ran.stdout


def test_results_of_other_files_are_not_read_again_for_a_regression(
    echo: Echo, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [f"tests/{letter}.md" for letter in "abcdefgh"]
    for file in files:
        write(file=file)
    evalstore("run", "-q")
    for file in files:
        write("20 euros", file=file)
        evalstore("run", "-q")
    read: list[str] = []
    find = RowResults.find

    def counting(self: RowResults, entries: Any, names: Any) -> Any:
        read.extend(entries)
        return find(self, entries, names)

    monkeypatch.setattr(RowResults, "find", counting)
    assert evalstore(*GATE).exit_code == 1
    assert len(read) < 3 * len(files)
