"""What a run lists: what is new since the last verdict on each case first, the rest as a count."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from evalstore.core.errors import StoreError
from tests.builders import tree
from tests.interfaces.cli.conftest import Echo, Evalstore, Ran
from tests.interfaces.cli.run.test_run import HINT

DIFF = '  (use "evalstore diff <short> <short>" to see how)\n'


def write_case(name: str, answer: str = "yes") -> None:
    """A test file whose case passes when the echo answers `yes`; `answer` asks for the answer."""
    text = f"# 👤\n\n{answer} {name}\n\n---\n\n```checks\n- contains: 'yes'\n```\n"
    tree(Path.cwd(), {f"tests/{name}.md": text})


def check_for(name: str, word: str) -> None:
    """Edit the check of a case: its stored answer is judged again."""
    file = Path.cwd() / f"tests/{name}.md"
    head = file.read_text(encoding="utf-8").partition("- contains")[0]
    file.write_text(f"{head}- contains: '{word}'\n```\n", encoding="utf-8")


@pytest.fixture
def history(echo: Echo, evalstore: Evalstore) -> Evalstore:
    """A run of four cases, of which `c` and `d` fail."""
    for name, answer in {"a": "yes", "b": "yes", "c": "no", "d": "no"}.items():
        write_case(name, answer)
    assert evalstore("run", "-q").exit_code == 1
    return evalstore


def test_what_broke_or_was_fixed_is_listed_first_and_old_failures_are_counted(
    history: Evalstore,
) -> None:
    check_for("b", "never")
    check_for("d", "no")
    write_case("e", "no")
    assert history("run") == Ran(
        1,
        "since the last run: 1 broke, 1 fixed, 1 new failure\n"
        "fail       tests/b.md  scripted/one  <short>  (broke)\n"
        "           'never' is not in 'yes b'\n"
        "fail       tests/e.md  scripted/one  <short>  (new)\n"
        "           'yes' is not in 'no e'\n"
        "pass       tests/d.md  scripted/one  <short>  (fixed)\n"
        "not listed: 1 failure as before (--all lists it)\n"
        "\n"
        "2 pass, 3 fail (40.0%, 95% interval 11.8% to 76.9%)\n"
        "scripted/one  1 call  1 tokens in  1 out  $0\n"
        "run <short> complete: 1 new answer, 4 reused, 3 new verdicts, $0\n"
        "gate failed\n",
        DIFF + HINT.format("tests/b.md"),
    )


def test_all_lists_the_failures_that_are_as_before_behind_the_new_ones(history: Evalstore) -> None:
    check_for("d", "never")
    write_case("e", "no")
    assert [line for line in history("run", "--all").stdout.splitlines() if "tests/" in line] == [
        "fail       tests/e.md  scripted/one  <short>  (new)",
        "fail       tests/d.md  scripted/one  <short>  (still fails)",
        "fail       tests/c.md  scripted/one  <short>",
    ]
    listed = history("run", "--all").stdout
    assert [line[11:21] for line in listed.splitlines() if "tests/" in line] == [
        "tests/c.md",
        "tests/d.md",
        "tests/e.md",
    ]
    assert "(new)" not in listed


def test_a_run_that_changes_nothing_counts_the_failures(history: Evalstore) -> None:
    assert history("run").stdout.startswith(
        "2 failures as before (--all shows why)\n"
        "    tests/c.md  scripted/one\n    tests/d.md  scripted/one\n\n2 pass"
    )
    write_case("c", "yes")
    history("run")
    ran = history("run")
    assert ran.stdout.startswith(
        "1 failure as before (--all shows why)\n    tests/d.md  scripted/one\n\n3 pass"
    )
    assert '(use "evalstore show tests/d.md' in ran.stderr


def test_a_failure_that_was_judged_again_is_shown_with_its_new_feedback(history: Evalstore) -> None:
    check_for("c", "never")
    printed = history("run").stdout
    assert printed.startswith(
        "since the last run: nothing broke or was fixed\n"
        "fail       tests/c.md  scripted/one  <short>  (still fails)\n"
        "           'never' is not in 'no c'\n"
        "not listed: 1 failure as before (--all lists it)\n"
    )


def test_what_was_fixed_is_listed_before_what_still_fails(history: Evalstore) -> None:
    check_for("c", "never")
    write_case("d", "yes")
    listed = [line.split("  (")[-1] for line in history("run").stdout.splitlines() if "  (" in line]
    assert listed == ["fixed)", "still fails)"]


def test_a_run_of_some_cases_does_not_hide_what_broke_in_the_others(
    history: Evalstore, documents: Any
) -> None:
    check_for("b", "never")
    history("run", "tests/a.md")
    history("run", "tests/a.md", "tests/c.md")
    ran = history("run")
    printed = ran.stdout
    assert printed.startswith("since the last verdict on each case: 1 broke\nfail       tests/b.md")
    assert '(use "evalstore show <short>" to list them)' in ran.stderr
    assert "not listed: 2 failures as before" in printed
    assert "broke" not in history("run").stdout
    check_for("b", "yes")
    history("run", "tests/a.md")
    printed = history("run", "tests/b.md").stdout
    assert printed.startswith("since run <short>: 1 fixed\n")


def test_a_case_that_an_earlier_run_left_pending_is_compared_with_the_run_before_it(
    history: Evalstore, echo: Echo
) -> None:
    write_case("a", "no, not")
    echo.failing = "no, not a"
    assert "1 pending" in history("run").stdout
    echo.failing = None
    assert history("run").stdout.startswith("since the last verdict on each case: 1 broke\n")


def test_a_renamed_file_is_the_same_case(history: Evalstore) -> None:
    named = Path("tests/b.md")
    named.write_text("---\nid: greeting\n---\n\n" + named.read_text(), encoding="utf-8")
    history("run")
    named.rename("tests/x.md")
    Path("tests/c.md").rename("tests/y.md")
    check_for("x", "never")
    printed = history("run").stdout
    assert "fail       tests/x.md  scripted/one  <short>  (broke)\n" in printed
    assert "tests/y.md" not in printed
    assert "not listed: 2 failures as before" in printed


def test_the_document_has_the_changes_and_the_change_of_each_case(
    history: Evalstore, documents: Any
) -> None:
    first = documents("show")["id"]
    check_for("b", "never")
    check_for("d", "no")
    write_case("e", "no")
    document = documents("run")
    assert document["since"] == {
        "run": first,
        "broke": 1,
        "fixed": 1,
        "new": 1,
        "changed": 0,
        "sameAnswer": 0,
        "pending": 0,
        "undecided": 0,
        "olderAnswers": 0,
    }
    changes = {case["file"]: case.get("change") for case in document["cases"]}
    assert changes == {
        "tests/a.md": None,
        "tests/b.md": "broke",
        "tests/c.md": None,
        "tests/d.md": "fixed",
        "tests/e.md": "new",
    }


def test_a_first_run_has_nothing_to_compare_with(echo: Echo, documents: Any) -> None:
    write_case("a", "no")
    document = documents("run")
    assert "since" not in document
    assert [case.keys() & {"change"} for case in document["cases"]] == [set()]


def test_an_earlier_run_that_cannot_be_read_is_a_warning(history: Evalstore) -> None:
    check_for("b", "never")
    damaged = mock.patch(
        "evalstore.runs.run.find_verdict_changes", side_effect=StoreError("it is damaged")
    )
    with damaged:
        ran = history("run")
        assert history("run", "--fail-on", "regression").exit_code == StoreError("").exit_code
    assert ran.exit_code == 1
    assert "warning: the verdicts are not compared with earlier runs: it is damaged" in ran.stderr
    assert "fail       tests/b.md" in ran.stdout


def test_more_changes_than_a_screen_are_cut_and_counted(echo: Echo, evalstore: Evalstore) -> None:
    for number in range(30):
        write_case(f"a{number:02}")
    evalstore("run", "-q")
    for number in range(23):
        check_for(f"a{number:02}", "never")
    printed = evalstore("run").stdout
    assert printed.startswith("since the last run: 23 broke\n")
    assert printed.count("(broke)") == 20
    assert "\nnot listed: 3 more results of the kinds above (--all lists them)\n" in printed
    assert evalstore("run", "--all").stdout.count("fail       tests/a") == 23


def test_a_plain_run_after_a_refresh_says_that_older_answers_count_again(
    history: Evalstore, echo: Echo
) -> None:
    echo.reply = lambda text: "never"
    refreshed = history("run", "--refresh")
    assert refreshed.stdout.startswith("since the last run: 2 broke, 2 changed (asked again)\n")
    told = "the next plain run counts the older answers again; --max-age leaves them out\n"
    assert refreshed.stdout.endswith(told)
    ran = history("run")
    assert ran.stdout.startswith("since the last run: 2 fixed, 2 changed (older answers count)\n")
    assert ran.stderr == (
        DIFF
        + '  (the oldest answers count; "evalstore run --max-age AGE" leaves out older ones)\n'
        + HINT.format("tests/c.md")
    )
    compared = history("diff", "@~1", "@").stdout
    listed = "tests/a.md  scripted/one  fail -> pass  (older answers count)  <short> -> <short>\n"
    assert listed in compared
    assert "(asked again)" in history("diff", "@~2", "@~1").stdout
    log, of_file = history("log").stdout, history("log", "tests/a.md").stdout
    for text, cause in ((log, ""), (of_file, "    no edit: {}\n")):
        newest, refreshed_run, *_ = text.split("\n\n")
        for run, change, why in (
            (newest, "fixed", "older answers count"),
            (refreshed_run, "broke", "asked again"),
        ):
            assert f" {change}: {why})\n{cause.format(why)}" in f"{run}\n"
    assert history("run", "-q", "--refresh").stdout.endswith(told)


def test_a_label_on_an_older_answer_that_counts_again_is_named_by_run_diff_and_log(
    history: Evalstore, echo: Echo
) -> None:
    echo.reply = lambda text: text.replace("yes", "yes, yes")
    history("run", "-q", "--refresh", "tests/a.md")
    history("label", "tests/a.md", "pass", "--as", "Ada")
    history("run", "-q", "tests/b.md")
    why = "older answers count, labelled by Ada"
    printed = history("run").stdout
    assert printed.startswith(f"since the last verdict on each case: 1 changed ({why})\n")
    assert f"({why})" in history("diff", "@~1", "@").stdout
    assert f" fail (1 changed: {why})\n" in history("log").stdout
    newest, *_ = history("log", "tests/a.md").stdout.split("\n\n")
    assert newest.endswith(f"\n    1 pass (1 changed: {why})\n    labelled by Ada")


def test_the_failure_to_be_shown_is_not_a_pending_result(echo: Echo, evalstore: Evalstore) -> None:
    judge = "id: scripted/judge\nprovider: scripted\nresponses: [{answer: it is not asked}]\n"
    tree(
        Path.cwd(),
        {
            "evalstore.yaml": "candidates: [scripted/one]\nevaluators: [scripted/judge]\n",
            "models/judge.yaml": judge,
            "tests/a.md": "# 👤\n\nHi\n\n---\n\nIt must be polite.\n",
        },
    )
    write_case("b", "no")
    echo.failing = "The response of the candidate"
    ran = evalstore("run")
    assert "pending    tests/a.md  scripted/one  <short>\n" in ran.stdout
    assert HINT.format("tests/b.md") in ran.stderr


def test_an_answer_with_the_same_text_is_not_a_change(history: Evalstore) -> None:
    refreshed = history("run", "--refresh")
    assert refreshed.stdout.startswith("since the last run: nothing broke or was fixed\n")
    assert "to see how" not in refreshed.stderr
    assert "since the last run" not in history("run").stdout
    assert history("diff", "@~1", "@").stdout == (
        "run <short> (<when>) -> run <short> (<when>)\n"
        "4 unchanged\npass rate 50.0% -> 50.0% (4 results in 4 files, judged on both sides)\n"
    )


def test_a_case_that_was_judged_and_is_pending_is_announced_once(
    history: Evalstore, echo: Echo, documents: Any
) -> None:
    write_case("a", "yes, not")
    echo.failing = "yes, not a"
    ran = history("run").stdout
    assert ran.startswith(
        "since the last run: 1 now pending\npending    tests/a.md  scripted/one\n"
    )
    compared = history("diff", "@~1", "@").stdout
    assert "tests/a.md  scripted/one  pass -> pending  (test changed)  <short>\n" in compared
    assert "\n1 changed (all now pending), 3 unchanged\n" in compared
    assert "since the last run" not in history("run").stdout
    assert documents("run")["since"]["pending"] == 0


def test_no_edit_is_named_as_the_cause_of_failed_calls(history: Evalstore, echo: Echo) -> None:
    echo.failing = "yes a"
    echo.reply = lambda text: text.replace("no", "yes")
    assert history("run", "--refresh").stdout.startswith(
        "since the last run: 2 fixed (asked again), 1 now pending\n"
    )


def test_few_changed_results_are_listed_and_many_are_counted(
    history: Evalstore, echo: Echo
) -> None:
    for name in "ab":
        write_case(name, "yes, it is")
    ran = history("run").stdout
    assert ran.startswith("since the last run: 2 changed\n")
    listed = [line for line in ran.splitlines() if "tests/" in line]
    assert listed == [
        "pass       tests/a.md  scripted/one  <short>  (changed)",
        "pass       tests/b.md  scripted/one  <short>  (changed)",
    ]
    for name in "efghij":
        write_case(name, "yes")
    history("run")
    for name in "efghij":
        write_case(name, "yes, it is")
    ran = history("run").stdout
    assert ran.startswith("since the last run: 6 changed\n2 failures as before")


def test_results_of_removed_and_restored_cases_are_counted(history: Evalstore) -> None:
    removed = Path.cwd() / "tests/a.md"
    text = removed.read_text(encoding="utf-8")
    removed.unlink()
    told = "since the last run: nothing broke or was fixed, 1 {} result than in the last run\n"
    assert history("run", "-q").stdout.startswith(told.format("fewer"))
    removed.write_text(text, encoding="utf-8")
    assert history("run", "-q").stdout.startswith(
        told.format("more").replace("the last run:", "the last verdict on each case:")
    )
    assert "than in" not in history("run", "-q").stdout
