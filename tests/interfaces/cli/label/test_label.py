"""`label`: a person's word beside those of checks and models."""

from __future__ import annotations

import re
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from shutil import copyfile
from typing import Any

import pytest

from evalstore.core.hashing import canonical_json, describe_evaluation_result, identify
from evalstore.core.values import Word
from evalstore.exchange.sync.fsck import check_store
from evalstore.planning.open_project import open_store
from evalstore.planning.options import Location
from evalstore.results.answer.judgements import AFTER, REPLACED, TAKEN_BACK
from evalstore.results.labels import label, read_labels
from evalstore.results.table.cases import cases
from evalstore.runs.status.dashboard import read_dashboard
from evalstore.store import Store
from evalstore.store.results import read_results
from tests.builders import tree
from tests.interfaces.cli.conftest import Echo, Evalstore, Ran
from tests.interfaces.cli.run.test_run import edit

OSLO = "tests/weather.md::city=Oslo"


def verdicts(document: Any) -> dict[str, str]:
    return {case["row"]: case["verdict"] for case in document["cases"]}


@pytest.fixture
def ran(workspace: Path, documents: Any) -> dict[str, str]:
    """The workspace after a run: Oslo fails, Rome passes; the sessions by row."""
    document = documents("run")
    assert verdicts(document) == {"city=Oslo": "fail", "city=Rome": "pass"}
    return {case["row"]: case["session"] for case in document["cases"]}


def test_the_word_of_a_person_decides(ran: Any, documents: Any, evalstore: Evalstore) -> None:
    shown = evalstore("label", OSLO, "pass", "-m", "cold is right", "--as", "Ada")
    line = "pass  tests/weather.md [city=Oslo]  scripted/one  by Ada (was fail)\n"
    assert (shown.exit_code, shown.stdout) == (0, line)
    document = documents("run")
    assert verdicts(document) == {"city=Oslo": "pass", "city=Rome": "pass"}
    assert (document["asked"], document["judged"]) == (0, 0)
    assert document["cases"][0]["feedback"] == "by Ada (a person): cold is right"


def test_later_labels_say_what_the_majority_of_people_says(
    workspace: Path, ran: Any, documents: Any, evalstore: Evalstore
) -> None:
    def word() -> str | None:
        run = documents("show", "@")["id"]
        with open_store(Location(workspace)) as store:
            oslo = next(
                each for each in read_results(store, store.load_run(run)) if "Oslo" in each.row
            )
            return read_labels(store).word(oslo)

    assert word() is None
    evalstore("label", OSLO, "pass", "--as", "Ada")
    assert word() == "pass"
    evalstore("run", "-q")
    assert word() is None, "no label is later than the run"
    evalstore("label", OSLO, "fail", "--as", "Bob")
    assert (word(), documents("status")["undecided"]) == ("undecided", 1)
    evalstore("label", OSLO, "pass", "--as", "Eve")
    assert word() == "pass"


@pytest.mark.parametrize("note", ["scripted/one", "one"])
def test_a_note_that_is_a_candidate_is_refused(ran: Any, evalstore: Evalstore, note: str) -> None:
    assert evalstore("label", OSLO, "pass", "-m", note) == Ran(
        2,
        "",
        f"error: the note '{note}' is the name of a candidate\n"
        "hint: '-m' takes the note; write '--model scripted/one' for the candidate\n",
    )


def test_labels_are_listed_with_what_the_judges_say(
    ran: Any, documents: Any, evalstore: Evalstore
) -> None:
    assert evalstore("ls", "labels") == Ran(0, "", "No labels.\n")
    evalstore("label", OSLO, "pass", "-m", "cold is right", "--as", "Ada")
    evalstore("label", "tests/weather.md::city=Rome", "pass", "--as", "Bob")
    assert "0 new verdicts, $0" in evalstore("run", "-q").stdout
    listed = evalstore("ls", "labels")
    header, oslo, rome = [line.split() for line in listed.stdout.splitlines()]
    assert header == ["FILE", "ROW", "MODEL", "LABEL", "BY", "JUDGED", "NOTE"]
    assert oslo[1:] == ["city=Oslo", "scripted/one", "pass", "Ada", "fail", "cold", "is", "right"]
    assert rome[1:] == ["city=Rome", "scripted/one", "pass", "Bob", "pass"]
    assert listed.stderr == "1 of 2 labels agree with checks and judges (50.0%).\n"
    assert [row["agrees"] for row in documents("ls", "labels")["labels"]] == [False, True]
    evalstore("label", OSLO, "--remove", "--as", "Ada")
    assert [row["by"] for row in documents("ls", "labels")["labels"]] == ["Bob"]


def test_a_session_can_be_labelled_by_its_id(ran: Any, documents: Any) -> None:
    (item,) = documents("label", ran["city=Rome"][:8], "fail", "--as", "Ada")["labels"]
    assert (item["row"], item["was"], item["verdict"], item["by"]) == (
        *("city=Rome", "pass", "fail"),
        "Ada",
    )
    assert verdicts(documents("run"))["city=Rome"] == "fail"


def test_what_is_shown_of_a_session_says_who_has_labelled_it(
    ran: Any, evalstore: Evalstore
) -> None:
    evalstore("label", OSLO, "pass", "-m", "It is meant.", "--as", "Ada")
    shown = evalstore("show", ran["city=Oslo"]).stdout
    heading = "\npass  tests/weather.md [city=Oslo]  scripted/one\npass  by Ada (a person)  <when>"
    assert f"{heading}  <short>\n  It is meant.\nfail  by scripted/judge" in shown


def test_the_newest_label_decides_what_is_shown_and_a_run_says_that_it_came_later(
    ran: Any, evalstore: Evalstore
) -> None:
    rome = "tests/weather.md::city=Rome"
    evalstore("label", OSLO, "pass", "--as", "Ada")
    evalstore("label", rome, "fail", "-m", "too short", "--as", "Ada")
    broke = evalstore("ls", "results", "--broke").stdout.splitlines()
    assert [" ".join(line.split()) for line in broke[1:]] == [
        "fail tests/weather.md [city=Rome] now <short> labelled by Ada by Ada (a person): too short"
    ]
    assert evalstore("ls", "results", "--broke", "--run", "@").stdout == ""
    marks = {
        "city=Oslo": "<short>  (labelled pass by Ada after the run)",
        "city=Rome": "<short>  (labelled fail by Ada after the run)",
    }
    for place, words in (
        (("tests/weather.md",), {"city=Oslo": "pass", "city=Rome": "fail"}),
        (("@:tests/weather.md",), {"city=Oslo": "fail", "city=Rome": "pass"}),
        (("@",), {"city=Oslo": "fail", "city=Rome": "pass"}),
    ):
        shown = evalstore("show", *place)
        for row, word in words.items():
            line = f"\n{word}  tests/weather.md [{row}]  scripted/one  {marks[row]}\n"
            assert line in shown.stdout, place
    hint = evalstore("show", "tests/weather.md").stderr
    assert hint == f'(use "evalstore show {rome} -m scripted/one" to see why)\n'
    now, then = (evalstore("show", f"{run}{rome}").stdout for run in ("", "@:"))
    assert "\nfail  tests/weather.md [city=Rome]  scripted/one\nfail  by Ada (a person)" in now
    assert "\npass  tests/weather.md [city=Rome]  scripted/one\npass  by scripted/judge" in then
    assert f"\nfail  by Ada (a person)  ({AFTER})  <when>" in then
    evalstore("label", OSLO, "--remove", "--as", "Ada")
    assert "\nfail  tests/weather.md [city=Oslo]" in evalstore("show", OSLO).stdout


def test_a_label_on_an_edited_case_is_shown_before_a_run(
    workspace: Path, ran: Any, evalstore: Evalstore
) -> None:
    rome = "tests/weather.md::city=Rome"
    evalstore("label", rome, "fail", "-m", "of the old text", "--as", "Ada")
    edit(workspace / "tests/weather.md", "must be warm.", "must be hot.")
    assert "\npass  tests/weather.md [city=Rome]" in evalstore("show", rome).stdout
    evalstore("label", rome, "fail", "-m", "cold", "--as", "Bob")
    evalstore("label", rome, "fail", "-m", "very cold", "--as", "Bob")
    shown = evalstore("show", rome).stdout
    assert "\nfail  tests/weather.md [city=Rome]  scripted/one\nfail  by Bob (a person)" in shown
    assert f"fail  by Bob (a person)  ({REPLACED})" in shown
    assert shown == evalstore("show", f"@work:{rome}").stdout


def test_a_label_is_no_flip_of_a_verdict(ran: Any, evalstore: Evalstore) -> None:
    evalstore("run", "-q", "--refresh", OSLO)
    evalstore("label", OSLO, "pass", "--as", "Ada")
    counts = "(newest first: fail, pass by a label (fail without it; counts here))\n"
    assert (
        f"this version: 1 of the last 2 verdicts passed {counts}"
        in evalstore("show", f"@work:{OSLO}").stdout
    )


def test_a_refreshed_answer_is_shown_with_the_verdict_that_counts_in_the_workspace(
    ran: Any, evalstore: Evalstore
) -> None:
    evalstore("run", "-q", "--refresh", OSLO)
    line = "\nas in run <short>, the workspace counts another answer now: {}\n"
    assert line.format("fail") in evalstore("show", OSLO).stdout
    evalstore("label", OSLO, "pass", "--as", "Ada")
    assert line.format("pass") in evalstore("show", OSLO).stdout
    evalstore("run", "-q")
    assert "the workspace counts" not in evalstore("show", OSLO).stdout


def test_the_last_word_of_a_person_counts(ran: Any, documents: Any) -> None:
    for word in ("pass", "fail", "pass"):
        documents("label", OSLO, word, "--as", "Ada")
    assert verdicts(documents("run"))["city=Oslo"] == "pass"


def test_people_who_disagree_leave_it_undecided(
    ran: Any, documents: Any, evalstore: Evalstore
) -> None:
    documents("label", OSLO, "pass", "--as", "Ada")
    documents("label", OSLO, "fail", "-m", "too cold", "--as", "Bob")
    assert verdicts(documents("run"))["city=Oslo"] == "undecided"
    both = "by Ada (a person): pass · by Bob (a person): fail: too cold"
    assert both in evalstore("ls", "results", OSLO).stdout
    assert (
        ": judged once, undecided by labels (fail without them)\n" in evalstore("show", OSLO).stdout
    )


def test_a_label_that_is_taken_back_counts_no_more(
    ran: Any, documents: Any, evalstore: Evalstore
) -> None:
    documents("label", OSLO, "pass", "-m", "fine", "--as", "Ada")
    (item,) = documents("run")["cases"][:1]
    assert (item["verdict"], item["feedback"]) == ("pass", "by Ada (a person): fine")
    output = evalstore("label", OSLO, "none", "--as", "Ada")
    line = (
        "label removed  tests/weather.md [city=Oslo]  scripted/one  by Ada (was pass, now fail)\n"
    )
    assert (output.exit_code, output.stdout) == (0, line)
    document = documents("run")
    assert verdicts(document) == {"city=Oslo": "fail", "city=Rome": "pass"}
    assert (document["asked"], document["judged"]) == (0, 0)
    assert document["cases"][0]["feedback"] == "It is cold there."
    shown = evalstore("show", ran["city=Oslo"]).stdout
    assert "label removed  by Ada  <when>  <short>\n" in shown
    assert f"pass  by Ada (a person)  ({TAKEN_BACK})  <when>  <short>\n  fine\n" in shown
    assert evalstore("fsck").exit_code == 0
    documents("label", OSLO, "pass", "--as", "Ada")
    assert verdicts(documents("run"))["city=Oslo"] == "pass"


def test_remove_withdraws_a_label(ran: Any, documents: Any) -> None:
    documents("label", OSLO, "pass", "--as", "Ada")
    (removed,) = documents("label", OSLO, "--remove", "--as", "Ada")["labels"]
    assert (removed["verdict"], removed["was"], removed["now"]) == ("none", "pass", "fail")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "error: the verdict is missing\nhint: write 'pass' or 'fail', or '--remove'"),
        (("pass", "--remove"), "error: '--remove' cannot be combined with 'pass'\n"),
    ],
)
def test_a_label_is_either_a_verdict_or_removed(
    ran: Any, evalstore: Evalstore, arguments: tuple[str, ...], message: str
) -> None:
    labelled = evalstore("label", OSLO, *arguments, "--as", "Ada")
    assert (labelled.exit_code, labelled.stdout) == (2, "")
    assert labelled.stderr.startswith(message)


def test_only_the_person_who_gave_a_label_takes_it_back(
    ran: Any, documents: Any, evalstore: Evalstore
) -> None:
    documents("label", OSLO, "pass", "--as", "Ada")
    output = evalstore("label", OSLO, "none", "--as", "Bob")
    assert (output.exit_code, output.stdout) == (2, "")
    assert (
        f"error: no label of Bob counts for '{OSLO}'\nhint: 'evalstore ls labels -v' lists all"
        in output.stderr
    )
    documents("label", OSLO, "fail", "--as", "Bob")
    (item,) = documents("label", OSLO, "none", "--as", "Bob")["labels"]
    assert (item["was"], item["now"]) == ("undecided", "pass")
    assert evalstore("label", OSLO, "none", "--as", "Bob").exit_code == 2
    assert verdicts(documents("run"))["city=Oslo"] == "pass"


def test_what_only_a_person_has_judged_is_judged_when_the_label_is_taken_back(
    workspace: Path, ran: Any, documents: Any, evalstore: Evalstore
) -> None:
    edit(workspace / "tests/weather.md", "must be warm.", "must be warm. Really.")
    documents("label", OSLO, "pass", "--as", "Ada")
    assert documents("status")["judge"] == 1
    output = evalstore("label", OSLO, "none", "--as", "Ada")
    assert "(was pass, now pending)" in output.stdout
    assert '("evalstore run" judges it)' in output.stderr
    assert documents("status")["judge"] == 2
    assert verdicts(documents("run"))["city=Oslo"] == "fail"


def test_stores_with_labels_that_were_taken_back_merge(workspace: Path, ran: Any) -> None:
    where = Location(workspace)
    stores = [workspace / f"{name}.db" for name in ("first", "second")]
    rome = OSLO.replace("Oslo", "Rome")
    output: list[tuple[int, str, Word, str]] = [
        *((0, OSLO, "pass", "Ada"), (1, OSLO, "pass", "Ada"), (1, OSLO, "pass", "Bob")),
        *((0, OSLO, "none", "Ada"), (1, OSLO, "none", "Bob")),
        *((0, rome, "fail", "Ada"), (0, rome, "none", "Ada"), (1, rome, "fail", "Ada")),
    ]
    for path in stores:
        copyfile(workspace / ".evalstore/store.db", path)
    for number, case, word, person in output:
        label(replace(where, store=str(stores[number])), case, word, person=person)
    actual = []
    for entry, other in (stores, stores[::-1]):
        with closing(Store.open(entry)) as into, closing(Store.open(other)) as of:
            new = of.find_evaluations(label.id for label in of.find_labels())
            people = of.load_all("evaluator").items()
            into.ensure_versions({id: ("evaluator", canonical_json(item)) for id, item in people})
            for _ in range(2):
                into.record(
                    evaluations={
                        id: identify(describe_evaluation_result(judged))[1]
                        for id, judged in new.items()
                        if id not in into.find_evaluations(new)
                    }
                )
            assert check_store(into)[1] == []
        rows = cases(replace(where, store=str(entry)), None).rows
        actual.append([result.word for row in rows for result in row.results if result])
    assert actual == [["fail", "fail"], ["fail", "fail"]]


def test_nobody_else_is_asked_about_what_a_person_has_labelled(
    workspace: Path, documents: Any
) -> None:
    tree(
        workspace, {"tests/weather.md": "# 👤\n\nHow is Oslo?\n\n---\n\nThe answer must be warm.\n"}
    )
    settings = "candidates: [scripted/one]\nevaluators: [scripted/judge]\n"
    documents("run")
    documents("label", "tests/weather.md", "pass", "--as", "Ada")
    tree(workspace, {"evalstore.yaml": settings + "evaluationsPerEvaluator: 3\n"})
    assert documents("status")["judge"] == 0


@pytest.mark.parametrize("option", ["--refresh", "--retry-errors"])
def test_a_label_counts_whatever_is_judged_again(
    ran: Any, documents: Any, evalstore: Evalstore, option: str
) -> None:
    documents("label", OSLO, "pass", "--as", "Ada")
    evalstore("run", "--judge-only", option)
    assert verdicts(documents("run"))["city=Oslo"] == "pass"


def test_a_label_counts_until_the_instructions_are_edited(
    workspace: Path, ran: Any, documents: Any
) -> None:
    documents("label", OSLO, "pass", "--as", "Ada")
    edit(workspace / "tests/weather.md", "must be warm.", "must be warm.Really.")
    assert verdicts(documents("run"))["city=Oslo"] == "fail"
    edit(workspace / "tests/weather.md", "must be warm.Really.", "must be warm.")
    assert verdicts(documents("run"))["city=Oslo"] == "pass"


def test_answers_that_are_judged_together_are_labelled_together(echo: Echo, documents: Any) -> None:
    body = "# 👤\n\na\n\n---\n\n~~~checks\n- {allEqual: , scope: case}\n~~~\n"
    tree(Path(), {"tests/t.md": f"---\nrepetitions: 2\nattempts: 2\n---\n\n{body}"})
    documents("run")
    actual = documents("label", "tests/t.md", "fail", "--as", "Ada")["labels"]
    assert [len(item["sessions"]) for item in actual] == [2, 2]
    assert verdicts(documents("run")) == {"": "fail"}


def test_a_session_that_nothing_asks_for_any_more_is_labelled_as_it_was_judged(
    workspace: Path, ran: Any, documents: Any
) -> None:
    text = (workspace / "tests/weather.md").read_text(encoding="utf-8")
    edit(workspace / "tests/weather.md", "How is", "How warm is")
    documents("label", ran["city=Oslo"], "pass", "--as", "Ada")
    tree(workspace, {"tests/weather.md": text})
    assert verdicts(documents("run"))["city=Oslo"] == "pass"


def test_the_name_is_that_of_git(ran: Any, workspace: Path, documents: Any) -> None:
    tree(workspace, {".git/config": "[user]\nname = Grace\n", ".git/HEAD": "ref: refs/heads/m\n"})
    tree(workspace, {".git/objects/.keep": "", ".git/refs/.keep": ""})
    (item,) = documents("label", OSLO, "pass")["labels"]
    assert item["by"] == "Grace"


@pytest.mark.parametrize(
    ("command", "message", "hint"),
    [
        (("tests/weather.md",), "has 2 cases", "tests/weather.md::city=Oslo, tests/weather.md::c"),
        (("tests/none.md",), "test file 'tests/none.md' not found", "weather"),
        (("@",), "'@' is not an answer or a case (run)", "'evalstore show' names the answers"),
        (("abcd1234",), "test file '<short>' not found", "weather"),
    ],
)
def test_what_cannot_be_labelled_is_reported(
    ran: Any, evalstore: Evalstore, command: tuple[str, ...], message: str, hint: str
) -> None:
    output = evalstore("label", *command, "pass")
    assert (output.exit_code, output.stdout) == (2, "")
    assert message in output.stderr
    assert hint in output.stderr


def test_a_case_without_an_answer_cannot_be_labelled(workspace: Path, evalstore: Evalstore) -> None:
    evalstore("init")
    output = evalstore("label", OSLO, "pass").stderr
    assert "has no answer to label" in output


def test_one_of_several_candidates_must_be_named(
    workspace: Path, documents: Any, evalstore: Evalstore
) -> None:
    one_file = (workspace / "models/one.yaml").read_text(encoding="utf-8")
    two = one_file.replace("/one", "/two")
    tree(workspace, {"models/two.yaml": two})
    edit(workspace / "evalstore.yaml", "[scripted/one]", "[scripted/one, scripted/two]")
    documents("run", "--yes")
    output = evalstore("label", OSLO, "pass").stderr
    assert "2 candidates have answered" in output
    assert "name one with --model (scripted/one, scripted/two), or add --all" in output
    (item,) = documents("label", OSLO, "pass", "--model", "scripted/two")["labels"]
    assert item["model"] == "scripted/two"


def test_a_label_that_changes_nothing_says_nothing_of_a_run(
    workspace: Path, evalstore: Evalstore
) -> None:
    evalstore("run")
    agreed = evalstore("label", "tests/weather.md::city=Rome", "pass", "--as", "Ada")
    assert agreed == Ran(0, "pass  tests/weather.md [city=Rome]  scripted/one  by Ada\n", "")
    removed = evalstore("label", "tests/weather.md::city=Rome", "--remove", "--as", "Ada")
    assert removed == Ran(
        0, "label removed  tests/weather.md [city=Rome]  scripted/one  by Ada (now pass)\n", ""
    )
    changed = evalstore("label", "tests/weather.md::city=Rome", "fail", "--as", "Ada")
    assert changed.stdout.endswith("by Ada (was pass)\n")
    assert changed.stderr == '("evalstore run" records the verdict in the history)\n'


def test_status_counts_the_labels_that_no_run_has_recorded(ran: Any, evalstore: Evalstore) -> None:
    """Also when it is cached; a label that was removed before a run is none."""

    def line() -> str:
        shown = [evalstore("status").stdout for _ in range(2)]
        assert shown[0] == shown[1]
        return next((line for line in shown[0].splitlines() if "label" in line), "")

    assert line() == ""
    evalstore("label", OSLO, "pass", "--as", "Ada")
    assert (
        line() == '1 label added or removed since run <short> (use "evalstore run" to record this)'
    )
    evalstore("label", "tests/weather.md::city=Rome", "fail", "--as", "Bob")
    assert line().startswith("2 labels added or removed since")
    evalstore("label", "tests/weather.md::city=Rome", "none", "--as", "Bob")
    assert line().startswith("1 label added or removed since")
    evalstore("run")
    assert line() == ""
    evalstore("label", OSLO, "none", "--as", "Ada")
    assert line().startswith("1 label added or removed since")


def test_status_names_the_labels_that_an_edit_makes_void(
    ran: Any, workspace: Path, evalstore: Evalstore
) -> None:
    evalstore("label", OSLO, "pass", "--as", "Ada")
    evalstore("run")
    assert "no longer" not in evalstore("status").stdout
    edit(workspace / "tests/weather.md", "must be warm", "must be mild")
    line = "\n1 label no longer counts: tests/weather.md [city=Oslo]\n"
    removed = evalstore("label", OSLO, "none", "--as", "Ada")
    assert f"error: no label of Ada counts for '{OSLO}'\n" in removed.stderr
    assert line in evalstore("status").stdout
    assert line in evalstore("status").stdout  # from the cache
    assert line in evalstore("run", "-n", "-k", "Oslo").stdout
    assert "no longer" not in evalstore("run", "-n", "-k", "Rome").stdout
    evalstore("run")
    assert "no longer" not in evalstore("status").stdout


@pytest.mark.parametrize("field", ["extraIdentifier: v2", "candidateOverrides: {temperature: 1}"])
def test_status_names_the_labels_that_an_edit_of_a_model_makes_void(
    ran: Any, workspace: Path, evalstore: Evalstore, field: str
) -> None:
    tree(workspace, {"tests/other.md": "# User\n\nHi\n\n---\n\nBe kind.\n"})
    evalstore("label", OSLO, "pass", "--as", "Ada")
    evalstore("run", "-q")
    model = workspace / "models/one.yaml"
    edit(model, "provider:", f"{field}\nprovider:")
    line = "\n1 label no longer counts: tests/weather.md [city=Oslo]\n"
    assert line in evalstore("status").stdout
    evalstore("run", "-q", "tests/other.md")
    assert line in evalstore("status").stdout  # the last run left out its case
    assert "\nEdited:\n" in evalstore("diff").stdout
    evalstore("run", "-q", "tests/weather.md::city=Rome")
    edit(model, field, "extraIdentifier: v3")
    assert line in evalstore("status").stdout
    evalstore("run", "-q", "tests/weather.md::city=Oslo")
    edit(model, "extraIdentifier: v3", field)
    assert "no longer" not in evalstore("status").stdout  # it did not count in the last run of it
    edit(model, field, "extraIdentifier: v3")
    edit(model, "extraIdentifier: v3\n", "")
    assert "no longer" not in evalstore("status").stdout


def test_status_counts_the_labels_that_an_edit_of_prompt_or_instructions_makes_void(
    ran: Any, workspace: Path, evalstore: Evalstore
) -> None:
    def counts() -> tuple[str, str]:
        shown = evalstore("status").stdout.splitlines()
        left_out = re.search(r"left out: (\d+ labels?) ", evalstore("ls", "labels").stderr)
        line = next((line for line in shown if "no longer count" in line), "")
        return line, left_out[1] if left_out else ""

    prompt, test = workspace / "prompts/brief.md", workspace / "tests/weather.md"
    tree(workspace, {"prompts/brief.md": "Be brief.\n"})
    test.write_text(test.read_text().replace("---\n", "---\nsystemPrompts: [brief, null]\n", 1))
    evalstore("run", "-q")
    evalstore("label", OSLO, "pass", "--as", "Ada", "--all")
    assert counts() == ("", "")
    edit(prompt, "brief", "short")
    lost = "1 label no longer counts: tests/weather.md [city=Oslo]"
    assert counts() == (lost, "1 label")
    evalstore("report", "-o", "now.html")
    assert lost in (workspace / "now.html").read_text()
    shown = evalstore("show", OSLO, "--prompt", "brief").stdout
    assert "by Ada (a person)  (after this run)" in shown
    edit(test, "must be warm", "must be mild")
    lost = "2 labels on 1 case no longer count: tests/weather.md [city=Oslo]"
    assert counts() == (lost, "2 labels")
    edit(prompt, "short", "brief")
    edit(test, "must be mild", "must be warm")
    assert counts() == ("", "")


@pytest.mark.parametrize("by", ["an edit", "another answer"])
def test_every_view_says_that_a_label_no_longer_counts(
    workspace: Path, evalstore: Evalstore, by: str
) -> None:
    evalstore("run", "-q")
    evalstore("label", OSLO, "pass", "-m", "It is warm enough.", "--as", "Ada")
    evalstore("run", "-q")
    if by == "an edit":
        edit(workspace / "tests/weather.md", "must be warm", "must be warm, please")
    run = evalstore("run", "-q", *(["--refresh"] if by == "another answer" else [])).stdout
    assert "since the last run: 1 broke (as a label no longer counts)\n" in run
    assert "(broke, its label no longer counts)" in run
    shown = evalstore("diff", "@~1", "@").stdout
    same = "asked again, " if by == "another answer" else "instructions changed, "
    assert f"({same}label of Ada no longer counts)" in shown
    assert (
        "        was: by Ada (a person): It is warm enough.\n        now: It is cold there.\n"
        in shown
    )
    assert "(broke, its label no longer counts)" in evalstore("show", "@").stdout
    assert "label of Ada no longer counts\n" in evalstore("show", OSLO).stdout
    assert "no longer counts" not in evalstore("diff", "@~2", "@~1").stdout
    if by == "an edit":
        edit(workspace / "tests/weather.md", "must be warm, please", "must be warm")
        run = evalstore("run", "-q").stdout
        assert "since the last run: 1 fixed (as a label counts again)\n" in run
        for shown in (run, evalstore("show", "@").stdout):
            assert "(fixed, its label counts again)" in shown
        back = "(instructions changed, label of Ada counts again)"
        assert back in evalstore("diff", "@~1", "@").stdout
        assert "    label of Ada counts again\n" in evalstore("log", OSLO, "-n", "1").stdout
        assert "      label of Ada counts again\n" in evalstore("show", OSLO).stdout


def test_a_run_counts_void_labels_beside_what_broke(workspace: Path, evalstore: Evalstore) -> None:
    evalstore("run", "-q")
    evalstore("label", OSLO, "pass", "--as", "Ada")
    evalstore("run", "-q")
    edit(workspace / "tests/weather.md", "\n\n---\n", " Be brief.\n\n---\n")
    counts = "1 broke (as a label no longer counts), 1 with the same answer\n"
    assert f"since the last run: {counts}" in evalstore("run", "-q").stdout
    evalstore("label", OSLO, "pass", "--as", "Ada")
    evalstore("label", "tests/weather.md::city=Rome", "fail", "--as", "Ada")
    assert "1 broke, 1 fixed (by labels)\n" in evalstore("run", "-q").stdout
    edit(workspace / "tests/weather.md", " Be brief.\n\n---\n", " Be short.\n\n---\n")
    assert "1 broke, 1 fixed (as labels no longer count)" in evalstore("run", "-q").stdout


def test_what_broke_is_fixed_when_it_passes_whatever_it_was_in_between(
    workspace: Path, ran: Any, evalstore: Evalstore
) -> None:
    def broken() -> list[str]:
        """What the list and the dashboard have; both are empty if nothing is broken."""
        listed = evalstore("ls", "results", "--broke").stdout.splitlines()[1:]
        assert len(read_dashboard(Location(workspace)).broken or ()) == len(listed)
        return [line.split()[0] for line in listed]

    rome = "tests/weather.md::city=Rome"
    for by, word, shown in (("Ada", "fail", "fail"), ("Bob", "pass", "undecided")):
        evalstore("label", rome, word, "--as", by)
        evalstore("run", "-q")
        assert broken() == [shown]
    for by in ("Ada", "Bob"):
        evalstore("label", rome, "--remove", "--as", by)
    told = "Since the last run, without new calls: 1 result no longer undecided "
    assert told in evalstore("status").stdout
    assert "(labels of Ada, Bob removed)" in evalstore("diff").stdout
    for _ in range(3):
        assert broken() == []
        evalstore("run", "-q")
    evalstore("label", rome, "pass", "--as", "Bob")
    evalstore("label", rome, "fail", "--as", "Ada")
    evalstore("run", "-q")
    assert broken() == [], "it became undecided after it was fixed"


def test_what_broke_when_it_was_asked_again_is_not_broken_if_an_older_answer_counts(
    workspace: Path, ran: Any, evalstore: Evalstore
) -> None:
    edit(workspace / "models/one.yaml", "answer: Warm.", "answer: Cold.")
    evalstore("run", "-q", "--refresh")
    assert evalstore("ls", "results", "--broke", "--run", "@~0").stdout.startswith("VERDICT")
    assert evalstore("ls", "results", "--broke").stdout == ""
    assert read_dashboard(Location(workspace)).broken == ()


def test_a_run_names_the_label_that_changed_a_verdict(ran: Any, evalstore: Evalstore) -> None:
    evalstore("label", "tests/weather.md::city=Oslo", "pass", "--as", "Mo")
    shown = evalstore("run", "-q").stdout
    assert shown.startswith("since the last run: 1 fixed (by a label)\n")
    assert "(fixed, by a label)\n" in shown
    assert "(fixed, by a label)\n" in evalstore("show", "@").stdout
    for command in ("show", "log"):
        assert "(1 fixed: by a label of Mo)\n" in evalstore(command).stdout


def test_the_causes_in_a_log_are_those_of_what_broke_and_was_fixed(
    ran: Any, evalstore: Evalstore
) -> None:
    evalstore("label", "tests/weather.md::city=Oslo", "pass", "--as", "Ada")
    for verdict, person in (("pass", "Ada"), ("fail", "Bob")):
        evalstore("label", "tests/weather.md::city=Rome", verdict, "--as", person)
    shown = evalstore("run", "-q").stdout
    assert "1 fixed, 1 now undecided (by labels)\n" in shown
    assert "(fixed, by a label)\n" in shown
    for command in ("show", "log"):
        assert "(1 fixed, 1 now undecided: by labels of Ada, Bob)\n" in evalstore(command).stdout
    assert (
        "(1 now undecided: by labels of Ada, Bob)\n"
        in evalstore("log", "tests/weather.md::city=Rome").stdout
    )
    for person in ("Ada", "Bob"):
        evalstore("label", "tests/weather.md::city=Oslo", "fail", "--as", person)
    assert "1 broke (by labels)\n" in evalstore("run", "-q").stdout
    assert "(broke, by labels)\n" in evalstore("show", "@").stdout


def test_the_reason_of_a_labelled_result_says_who_gave_it_and_the_note(
    ran: Any, evalstore: Evalstore
) -> None:
    evalstore("label", OSLO, "pass", "-m", "cold is right", "--as", "Ada")
    evalstore("label", "tests/weather.md::city=Rome", "fail", "--as", "Ada")  # without a note
    evalstore("run", "-q")
    listed = [line.rpartition("  ")[2] for line in evalstore("ls", "results").stdout.splitlines()]
    assert listed[1:] == ["by Ada (a person): cold is right", "by Ada (a person)"]
    csv = evalstore("export", "--format", "csv").stdout
    assert ",by Ada (a person): cold is right," in csv
    assert ",by Ada (a person)," in csv
    failure = '<failure type="fail" message="by Ada (a person)">by Ada (a person)</failure>'
    assert failure in evalstore("export", "--format", "junit").stdout


def test_a_label_of_several_attempts_is_printed_once(
    workspace: Path, documents: Any, evalstore: Evalstore
) -> None:
    settings = workspace / "evalstore.yaml"
    settings.write_text(f"{settings.read_text()}attempts: 3\n")
    evalstore("run", "-q")
    line = "pass  tests/weather.md [city=Oslo]  scripted/one  by Ada (was fail)\n"
    assert evalstore("label", OSLO, "pass", "--as", "Ada").stdout == line
    labels = documents("label", OSLO, "pass", "--as", "Ada")["labels"]
    assert len({label["judgement"] for label in labels}) == 3
    listed = documents("ls", "labels")["labels"]
    assert [row["attempt"] for row in listed] == [1, 2, 3]
    assert "  ATTEMPT  LABEL  " in evalstore("ls", "labels").stdout
    mark = "(labelled pass by Ada (3 of 3 attempts) after the run)\n"
    assert evalstore("show", "@").stdout.count(mark) == 1
    page = evalstore("show", OSLO).stdout
    counted = "judged once, pass by labels (fail without them), 3 of 3 attempts passed"
    assert f"\n    this version: {counted}\n" in page
    evalstore("label", listed[1]["session"], "--remove", "--as", "Ada")
    assert [row["attempt"] for row in documents("ls", "labels")["labels"]] == [1, 3]
