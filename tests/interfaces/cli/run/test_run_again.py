"""Options that say what counts: `--refresh`, `--max-age`, `--retry-errors`, `--offline`, `-r`."""

from __future__ import annotations

import json
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from evalstore.checks.base import CheckOutcome
from tests.builders import test_file, tree
from tests.interfaces.cli.conftest import JUDGE, ONE, Evalstore
from tests.interfaces.cli.run.test_run import edit

DAY = 86_400 * 10**9
"""Nanoseconds."""


@pytest.fixture(autouse=True)
def _at_any_price(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVALSTORE_RUN_YES", "1")


@pytest.fixture
def days_later(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Put the clock forward."""

    def put(days: float) -> None:
        clock = SimpleNamespace(time_ns=lambda: time.time_ns() + int(days * DAY))
        monkeypatch.setattr("evalstore.core.clock.time", clock)

    return put


def counts(document: Any) -> tuple[int, int]:
    """How much a run has asked and judged."""
    return document["asked"], document["judged"]


def plan(document: Any) -> tuple[int, int]:
    """How much a run would ask and judge."""
    return document["ask"], document["judge"]


# --- refresh


def test_refresh_asks_all_again_and_judges_the_new_answers(
    workspace: Path, evalstore: Evalstore, documents: Any
) -> None:
    first = documents("run")
    again = documents("run", "--refresh")
    assert counts(again) == (2, 2)
    assert again["reused"] == 0
    sessions = [[set(case["sessions"]) for case in run["cases"]] for run in (first, again)]
    assert not any(old & new for old, new in zip(*sessions, strict=True))


def test_after_a_refresh_the_oldest_answers_count_again(
    workspace: Path, evalstore: Evalstore, documents: Any
) -> None:
    first = documents("run")
    documents("run", "--refresh")
    later = documents("run")
    assert counts(later) == (0, 0)
    assert [case["sessions"] for case in later["cases"]] == [
        case["sessions"] for case in first["cases"]
    ]


def test_the_reason_of_a_refresh_is_the_request(workspace: Path, documents: Any) -> None:
    documents("run")
    document = documents("run", "-n", "--refresh", "-k", "Oslo")
    assert [(item["kind"], item["row"], item["reason"]) for item in document["items"]] == [
        ("ask", "city=Oslo", "asked again at your request"),
        ("judge", "city=Oslo", "new answer"),
    ]


def test_a_refresh_after_an_edit_names_the_edit_and_the_other_files(
    workspace: Path, evalstore: Evalstore, documents: Any
) -> None:
    tree(workspace, {"prompts/shop.md": "Be kind.\n", "prompts/other.md": "Be short.\n"})
    rows = ", ".join(f"R{number}" for number in range(20))
    text = (workspace / "tests/weather.md").read_text().replace("[Oslo, Rome]", f"[{rows}]")
    tree(workspace, {"tests/unedited.md": text.replace("{{city}}", "{{city}} {{city}}")})
    edit(workspace / "tests/weather.md", "tags:", "systemPrompts: [other, shop]\ntags:")
    documents("run")
    edit(workspace / "prompts/shop.md", "kind", "very kind")
    for command in ("status", "run -n"):
        printed = evalstore(*command.split(), "--refresh").stdout
        assert "M.  tests/weather.md  2 cases asked again: system prompt shop changed: " in printed
        assert " (2 cases); at your request (2 cases)\n" in printed
        assert "20 answers in tests/unedited.md  asked again at your request\n" in printed


def test_each_refresh_adds_as_many_samples_as_there_are_attempts(
    workspace: Path, evalstore: Evalstore, documents: Any
) -> None:
    documents("run")
    for _ in range(2):
        assert counts(documents("run", "--refresh", "-r", "3")) == (6, 6)
    # One, three and three answers are stored; the oldest are judged already.
    assert counts(documents("run", "-r", "7")) == (0, 0)


def test_a_refresh_asks_identical_questions_of_several_files_once(
    workspace: Path, documents: Any
) -> None:
    (workspace / "tests/copy.md").write_bytes((workspace / "tests/weather.md").read_bytes())
    documents("run")
    assert counts(documents("run", "--refresh")) == (2, 2)


def test_a_judge_refreshes_judgements_and_asks_nothing(
    workspace: Path, evalstore: Evalstore, documents: Any
) -> None:
    documents("run")
    document = documents("run", "--judge-only", "-n", "--refresh")
    assert {item["reason"] for item in document["items"]} == {"judged again at your request"}
    assert counts(documents("run", "--judge-only", "--refresh")) == (0, 2)
    assert counts(documents("run")) == (0, 0)


def test_a_judge_refreshes_checks_as_well(workspace: Path, documents: Any) -> None:
    edit(workspace / "tests/weather.md", "[weather]", "[weather, _json_mode]")
    edit(workspace / "models/one.yaml", "answer: Warm.", "answer: '{}'")
    assert counts(documents("run")) == (2, 3)  # Oslo's answer is not JSON, so no model judges it
    assert counts(documents("run", "--judge-only", "--refresh")) == (0, 3)


# --- max age


def test_an_answer_that_is_too_old_is_asked_again(
    workspace: Path, documents: Any, days_later: Any
) -> None:
    documents("run")
    assert plan(documents("status", "--max-age", "30d")) == (0, 0)
    days_later(31)
    document = documents("status", "--max-age", "30d")
    assert plan(document) == (2, 2)
    assert document["items"][0]["reason"] == "answer is older than 30d"
    assert plan(documents("status")) == (0, 0)
    assert counts(documents("run", "--max-age", "30d")) == (2, 2)
    assert plan(documents("status", "--max-age", "30d")) == (0, 0)


def test_a_judgement_that_is_too_old_is_made_again(
    workspace: Path, documents: Any, days_later: Any
) -> None:
    documents("run")
    days_later(31)
    document = documents("run", "--judge-only", "-n", "--max-age", "4w")
    assert {item["reason"] for item in document["items"]} == {"verdict is older than 4w"}
    assert counts(documents("run", "--judge-only", "--max-age", "4w")) == (0, 2)
    assert counts(documents("run", "--judge-only", "--max-age", "4w")) == (0, 0)


def test_an_age_that_makes_no_sense_is_refused(workspace: Path, evalstore: Evalstore) -> None:
    output = evalstore("run", "--max-age=30")
    assert output.exit_code == 2
    assert output.stderr == (
        "error: '--max-age 30' is not valid\n"
        "hint: write a number with s, m, h, d or w: '30d', '1.5h'\n"
    )


def test_the_age_can_be_set_for_good_and_status_is_empty_until_it_is_reached(
    workspace: Path, documents: Any, days_later: Any
) -> None:
    edit(workspace / "evalstore.yaml", "candidates:", "maxAge: 30d\ncandidates:")
    documents("run")
    assert plan(documents("status")) == (0, 0)
    days_later(29)
    assert plan(documents("status")) == (0, 0)
    days_later(31)
    assert plan(documents("status")) == (2, 2)
    assert counts(documents("run")) == (2, 2)
    assert plan(documents("status")) == (0, 0)
    days_later(60)
    assert plan(documents("status")) == (0, 0)
    assert counts(documents("run", "--judge-only")) == (0, 0)


def test_a_refresh_counts_on_with_an_age_that_the_older_answers_exceed(
    workspace: Path, documents: Any, days_later: Any
) -> None:
    documents("run")
    days_later(20)
    fresh = documents("run", "--refresh")
    document = documents("run", "--max-age", "10d")
    assert counts(document) == (0, 0)
    assert [case["sessions"] for case in document["cases"]] == [
        case["sessions"] for case in fresh["cases"]
    ]


# --- retries


@pytest.fixture
def failing(workspace: Path) -> Path:
    """Oslo cannot be asked."""
    edit(workspace / "models/one.yaml", ONE, ONE.replace("answer: Cold.", "error: 500", 1))
    edit(
        workspace / "models/one.yaml",
        "error: 500, usage: {inputTokens: 10, outputTokens: 2}",
        "error: 500",
    )
    return workspace


def repair(folder: Path) -> None:
    (folder / "models/one.yaml").write_text(ONE)


def test_retry_errors_asks_what_failed_and_nothing_that_was_never_tried(
    failing: Path, evalstore: Evalstore, documents: Any
) -> None:
    evalstore("run", "--retries", "0")
    (failing / "tests/new.md").write_text(test_file())
    repair(failing)
    document = documents("run", "-n", "--retry-errors")
    assert [(item["kind"], item["row"]) for item in document["items"]] == [
        ("ask", "city=Oslo"),
        ("judge", "city=Oslo"),
    ]
    assert document["items"][0]["reason"].startswith("retry of a failure: ")
    assert counts(documents("run", "--retry-errors")) == (1, 1)
    assert evalstore("run", "--retry-errors").exit_code == 5


def test_a_failure_that_was_made_good_is_not_retried(
    failing: Path, evalstore: Evalstore, documents: Any
) -> None:
    evalstore("run", "--retries", "0")
    repair(failing)
    evalstore("run")
    output = evalstore("run", "--retry-errors", "-r", "2")
    assert output.exit_code == 5
    assert "no call failed, and no verdict is undecided" in output.stderr
    assert {item["reason"] for item in documents("status", "-r", "2")["items"]} == {
        "attempts 1 -> 2",
        "new answer",
    }


def test_one_of_several_tries_that_failed_is_retried(
    workspace: Path, evalstore: Evalstore, documents: Any
) -> None:
    edit(
        workspace / "models/one.yaml",
        "  - {when: Oslo,",
        "  - {when: Oslo, times: 1, error: 500}\n  - {when: Oslo,",
    )
    edit(workspace / "tests/weather.md", "[Oslo, Rome]", "[Oslo]")
    evalstore("run", "--retries", "0", "-r", "3", "-j", "1")
    document = documents("status", "--retry-errors", "-r", "3")
    assert [(item["kind"], item["count"]) for item in document["items"]] == [
        ("ask", 1),
        ("judge", 1),
    ]
    assert document["items"][0]["reason"].startswith("retry of a failure")


def test_a_judge_that_failed_is_retried(
    workspace: Path, evalstore: Evalstore, documents: Any
) -> None:
    judge = JUDGE.replace("{pass: false, feedback: It is cold there.}", "x")
    edit(workspace / "models/judge.yaml", JUDGE, judge.replace("answer: x", "error: 500"))
    evalstore("run", "--retries", "0")
    (workspace / "models/judge.yaml").write_text(JUDGE)
    document = documents("status", "--retry-errors")
    assert [(item["kind"], item["row"]) for item in document["items"]] == [("judge", "city=Oslo")]
    assert document["items"][0]["reason"].startswith("retry of a failure: ")
    assert counts(documents("run", "--judge-only", "--retry-errors")) == (0, 1)


def test_of_two_unreadable_judgements_the_newest_counts_everywhere(
    workspace: Path, evalstore: Evalstore, documents: Any
) -> None:
    unreadable = "id: scripted/judge\nprovider: scripted\nresponses: [{answer: Hm.}]\n"
    (workspace / "models/judge.yaml").write_text(unreadable)
    edit(workspace / "tests/weather.md", "[Oslo, Rome]", "[Oslo]")
    counted = []
    for options in ((), ("--retry-errors",), ()):
        evalstore("run", "-q", *options)
        evalstore("export", "@", "-o", "r.jsonl")
        counted.append(json.loads(Path("r.jsonl").read_text())["evaluations"])
    first, retried, later = counted
    assert first != retried == later
    assert "In the workspace" not in evalstore("show", "tests/weather.md").stdout
    assert counts(documents("run")) == (0, 0)


def test_a_tie_of_judges_is_not_retried(workspace: Path, evalstore: Evalstore) -> None:
    text = JUDGE.replace("scripted/judge", "scripted/other").replace("pass: false", "pass: true")
    tree(workspace, {"models/other.yaml": text})
    both = "evaluators: [scripted/judge, scripted/other]"
    edit(workspace / "evalstore.yaml", "evaluators: [scripted/judge]", both)
    hint = "--retry-errors' asks the judges again except in a tie, 'evalstore label' decides"
    assert hint in evalstore("run").stdout
    retried = evalstore("run", "--retry-errors")
    assert (retried.exit_code, retried.stderr) == (
        5,
        "error: nothing is selected: no call failed, and no verdict is undecided or an error, "
        "but for ties\n"
        "hint: 'evalstore run' does all that is missing, and 'evalstore label' decides a tie\n",
    )


def test_contradictory_labels_are_told(workspace: Path, evalstore: Evalstore) -> None:
    evalstore("run", "-q")
    for word, who in (("pass", "Ada"), ("fail", "Bob")):
        evalstore("label", "tests/weather.md::city=Oslo", word, "--as", who)
    assert "'evalstore label' decides" in evalstore("run").stdout


def test_an_unreadable_judgement_is_made_again_and_the_readable_one_stays(
    workspace: Path, evalstore: Evalstore, documents: Any
) -> None:
    text = JUDGE.replace("{pass: false, feedback: It is cold there.}", "Hm.")
    (workspace / "models/judge.yaml").write_text(text)
    assert documents("run")["verdicts"]["undecided"] == 1
    assert counts(documents("run")) == (0, 0)
    (workspace / "models/judge.yaml").write_text(JUDGE)
    document = documents("status", "--retry-errors")
    assert [item["reason"] for item in document["items"]] == ["retry of an undecided verdict"]
    assert documents("run", "--retry-errors")["verdicts"]["fail"] == 1
    later = documents("run")
    assert counts(later) == (0, 0)
    assert (later["verdicts"]["undecided"], later["verdicts"]["fail"]) == (0, 1)
    assert evalstore("run", "--retry-errors").exit_code == 5


def test_what_stays_unreadable_is_judged_once_for_each_retry(
    workspace: Path, evalstore: Evalstore, documents: Any
) -> None:
    text = JUDGE.replace("{pass: false, feedback: It is cold there.}", "Hm.")
    (workspace / "models/judge.yaml").write_text(text)
    evalstore("run")
    for _ in range(2):
        assert counts(documents("run", "--retry-errors")) == (0, 1)
    assert plan(documents("status")) == (0, 0)


def test_retry_errors_and_refresh_do_not_go_together(workspace: Path, evalstore: Evalstore) -> None:
    output = evalstore("run", "--retry-errors", "--refresh")
    assert output.exit_code == 2
    assert output.stderr.startswith("error: '--retry-errors' and '--refresh' cannot be combined")


def test_a_retry_takes_the_first_of_what_failed(
    failing: Path, evalstore: Evalstore, documents: Any
) -> None:
    edit(failing / "tests/weather.md", "[Oslo, Rome]", "[Rome, Oslo, Oslo 東]")
    evalstore("run", "--retries", "0")
    repair(failing)
    document = documents("status", "--retry-errors", "--limit", "1")
    assert [(item["kind"], item["row"]) for item in document["items"]] == [
        ("ask", "city=Oslo"),
        ("judge", "city=Oslo"),
    ]


def test_a_retry_leaves_judgements_that_were_never_tried(
    workspace: Path, evalstore: Evalstore, documents: Any
) -> None:
    edit(
        workspace / "models/judge.yaml",
        "answer: {pass: false, feedback: It is cold there.}",
        "error: 500",
    )
    evalstore("run", "--retries", "0")
    edit(workspace / "evalstore.yaml", "judge]", "judge, {id: scripted/judge, temperature: 1}]")
    document = documents("status", "--retry-errors")
    assert [(item["kind"], item["row"], item["count"]) for item in document["items"]] == [
        ("judge", "city=Oslo", 1)
    ]
    assert documents("status")["judge"] == 3


def test_a_check_that_could_not_be_computed_is_repeated(
    workspace: Path, evalstore: Evalstore, documents: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    edit(workspace / "tests/weather.md", "[weather]", "[weather, _json_mode]")
    edit(workspace / "models/one.yaml", "answer: Warm.", "answer: '{}'")

    def fail(*_: object) -> object:
        return CheckOutcome("error", "not now")

    with monkeypatch.context() as patch:
        patch.setattr("evalstore.runs.execution.evaluators.run_check", fail)
        assert documents("run")["verdicts"]["error"] == 2
    assert plan(documents("status")) == (0, 0)
    document = documents("status", "--retry-errors")
    assert {item["reason"] for item in document["items"] if item["evaluator"] == "checks"} == {
        "retry of an error of a check"
    }
    again = documents("run", "--retry-errors")
    assert counts(again) == (0, 3)
    assert again["verdicts"]["error"] == 0
    assert documents("run")["verdicts"] == again["verdicts"]
    assert plan(documents("status")) == (0, 0)


def test_offline_retries_only_what_needs_no_network(
    failing: Path, evalstore: Evalstore, documents: Any
) -> None:
    tree(failing, {"models/far.yaml": SERVER, "providers/p.yaml": PROVIDER})
    edit(failing / "evalstore.yaml", "[scripted/one]", "[scripted/one, far]")
    evalstore("run", "--retries", "0", "--timeout", "5")
    repair(failing)
    document = documents("status", "--offline", "--retry-errors")
    assert {item["model"] for item in document["items"]} == {"scripted/one"}
    assert counts(documents("run", "--offline", "--retry-errors")) == (1, 1)


# --- offline

SERVER = "id: far\nprovider: openai-compatible\n"
PROVIDER = "code: openai-compatible\ntype: openai-compatible\nbaseURL: http://127.0.0.1:9/v1\n"


def test_offline_leaves_what_needs_the_network(
    workspace: Path, evalstore: Evalstore, documents: Any
) -> None:
    tree(workspace, {"models/far.yaml": SERVER, "providers/p.yaml": PROVIDER})
    edit(workspace / "evalstore.yaml", "[scripted/one]", "[scripted/one, far]")
    document = documents("status", "--offline")
    assert plan(document) == (2, 2)
    assert document["left"] == {"ask": 2, "judge": 0}
    ran = documents("run", "--offline")
    assert counts(ran) == (2, 2)
    assert (ran["failed"], ran["verdicts"]["pending"]) == (0, 2)
    assert evalstore("run", "--offline", "--fail-on", "none").exit_code == 3
    assert evalstore("status", "--offline").stdout == (
        "Left: 2 answers (no model may be called).\nNo other pending work.\n"
    )
    assert documents("status")["left"] == {"ask": 0, "judge": 0}


def test_offline_checks_but_leaves_the_judgements_of_other_models(
    workspace: Path, evalstore: Evalstore, documents: Any
) -> None:
    tree(workspace, {"models/far.yaml": SERVER, "providers/p.yaml": PROVIDER})
    edit(workspace / "evalstore.yaml", "[scripted/judge]", "[far]")
    edit(workspace / "tests/weather.md", "[weather]", "[weather, _json_mode]")
    edit(workspace / "models/one.yaml", "answer: Warm.", "answer: '{}'")
    ran = documents("run", "--offline")
    assert counts(ran) == (2, 2)
    assert (ran["verdicts"]["fail"], ran["verdicts"]["pending"]) == (1, 1)
    document = documents("status", "--offline")
    assert plan(document) == (0, 0)
    assert document["left"] == {"ask": 0, "judge": 1}


def test_offline_needs_no_key_and_says_nothing_of_one(
    workspace: Path, evalstore: Evalstore
) -> None:
    output = evalstore("run", "--offline", "-m", "openai/gpt-4o-mini")
    assert output.exit_code == 3
    assert output.stderr == ""


# --- attempts and limits


def test_attempts_that_were_lowered_and_raised_again_ask_nothing(
    workspace: Path, documents: Any
) -> None:
    documents("run", "-r", "3")
    assert counts(documents("run", "-r", "1")) == (0, 0)
    assert counts(documents("run", "-r", "3")) == (0, 0)
    assert counts(documents("run", "-r", "4")) == (2, 2)


def test_judge_judges_as_many_answers_as_there_are(workspace: Path, documents: Any) -> None:
    documents("run", "-r", "2")
    edit(workspace / "tests/weather.md", "must be warm", "must be short")
    assert counts(documents("run", "--judge-only", "-r", "1")) == (0, 2)
    assert counts(documents("run", "--judge-only", "-r", "3")) == (0, 2)


def test_an_answer_counts_under_a_lower_limit_and_a_cut_one_not_under_a_higher(
    workspace: Path, documents: Any
) -> None:
    settings = workspace / "evalstore.yaml"
    edit(settings, "candidates:", "maxTestOutputTokens: 100\ncandidates:")
    documents("run")
    edit(settings, "Tokens: 100", "Tokens: 1")
    assert plan(documents("status")) == (0, 0)
    assert counts(documents("run", "--refresh")) == (2, 2)
    edit(settings, "Tokens: 1", "Tokens: 50")
    assert plan(documents("status")) == (0, 0)


# --- one model at several temperatures


def test_a_model_at_two_temperatures_is_two_candidates(
    workspace: Path, evalstore: Evalstore, documents: Any
) -> None:
    edit(
        workspace / "evalstore.yaml",
        "[scripted/one]",
        "[scripted/one, {id: scripted/one, temperature: 0.7}]",
    )
    document = documents("run")
    assert counts(document) == (4, 4)
    assert {case["model"] for case in document["cases"]} == {"scripted/one", "scripted/one@0.7"}
    assert plan(documents("status")) == (0, 0)
    only = documents("run", "-m", "scripted/one@0.7")
    assert {case["model"] for case in only["cases"]} == {"scripted/one@0.7"}
    assert len(documents("run", "-m", "scripted/one")["cases"]) == 4
    assert len(documents("run", "--lf")["cases"]) == 2
