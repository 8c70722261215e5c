"""Bounds of a run: what it may cost, how long it may take, where it stops."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

from evalstore.checks.check_verdict import ChecksVerdict, judge_by_checks
from evalstore.core.values import Reply, Request
from evalstore.interfaces.cli.progress import TerminalProgress
from evalstore.providers.script import ScriptedProvider
from evalstore.runs.execution import evaluators
from tests.builders import tree
from tests.interfaces.cli.conftest import Echo, Evalstore, Ran
from tests.interfaces.cli.run.test_run import edit

CHECK = "```checks\n- contains: Number\n```\n"
PRICED = "costs: [{costPerCall: 0.5}]\n"


@pytest.fixture
def many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Ten questions; each answer costs half a dollar, each judgement a tenth."""
    files = {
        f"tests/t{number}.md": f"# 👤\n\nQuestion {number}\n\n---\n\nJudge.\n"
        for number in range(10)
    }
    tree(
        tmp_path,
        {
            **files,
            "evalstore.yaml": "candidates: [one]\nevaluators: [judge]\nconcurrency: 1\n",
            "models/one.yaml": "id: one\nprovider: scripted\nresponses:\n"
            "  - {when: Question 3, answer: No way}\n  - {answer: Yes}\n" + PRICED,
            "models/judge.yaml": (
                "id: judge\nprovider: scripted\ncosts: [{costPerCall: 0.1}]\nresponses:\n"
                "  - {when: No way, answer: {pass: false, feedback: no}}\n"
                "  - {answer: {pass: true, feedback: yes}}\n"
            ),
        },
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


def report(evalstore: Evalstore, *options: str) -> tuple[int, Any]:
    ran = evalstore("run", "--json", *options)
    return ran.exit_code, json.loads(ran.stdout)


def test_a_run_ends_before_it_costs_more(many: Path, evalstore: Evalstore) -> None:
    code, actual = report(evalstore, "--max-cost", "2")
    assert (code, actual["status"], actual["cost"]) == (4, "over budget", pytest.approx(1.8))
    assert (actual["asked"], actual["judged"], actual["failed"]) == (3, 3, 0)


def test_a_run_within_its_limit_is_shown_as_at_limit(many: Path, evalstore: Evalstore) -> None:
    code, actual = report(evalstore, "--max-cost", "2")
    assert (code, actual["status"]) == (4, "over budget")
    (entry,) = json.loads(evalstore("log", "--json").stdout)["runs"]
    assert entry["status"] == "over budget"
    for command in (["log"], ["show", "@"], ["ls", "runs"], ["report", "--markdown"]):
        shown = evalstore(*command).stdout
        assert "at limit" in shown, command
        assert "over budget" not in shown, command


def test_the_next_run_goes_on_from_there(many: Path, evalstore: Evalstore) -> None:
    report(evalstore, "--max-cost", "2")
    code, actual = report(evalstore, "--fail-on", "none")
    assert (code, actual["status"], actual["asked"] + actual["reused"]) == (0, "complete", 10)
    assert actual["saved"] == pytest.approx(0.5 * actual["reused"] + 0.1 * (10 - actual["judged"]))


LONG = "costs: [{costPerCompletionToken: 0.001}]\n"
"""The answer of 400 tokens costs 0.4 USD; that of an unknown model is taken to have 300."""


def test_the_longest_stored_answer_is_set_aside(many: Path, evalstore: Evalstore) -> None:
    model = many / "models/one.yaml"
    model.write_text(model.read_text().replace("answer: Yes", f"answer: {'abcd' * 400}"))
    edit(model, PRICED, LONG)
    assert report(evalstore, "--max-cost", "0.35")[1]["asked"] == 1
    code, again = report(evalstore, "--max-cost", "0.35")
    assert (code, again["status"], again["asked"]) == (4, "over budget", 0)
    assert report(evalstore, "--max-cost", "1.05")[1]["asked"] == 2


def test_the_longest_stored_judgement_is_set_aside(many: Path, evalstore: Evalstore) -> None:
    judge, model = many / "models/judge.yaml", many / "models/one.yaml"
    edit(judge, "feedback: yes", f"feedback: {'abcd' * 400}")
    edit(judge, "costs: [{costPerCall: 0.1}]\n", LONG)
    edit(model, PRICED, "")
    assert report(evalstore, "--max-cost", "0.35")[1]["judged"] == 1
    code, again = report(evalstore, "--max-cost", "0.35")
    assert (code, again["status"], again["judged"]) == (4, "over budget", 0)


def test_the_bound_can_be_a_setting(many: Path, evalstore: Evalstore) -> None:
    with (many / "evalstore.yaml").open("a") as settings:
        settings.write("maxCost: 0.6\n")
    ran = evalstore("run")
    assert ran.exit_code == 4
    assert "stopped: cost limit reached; what was finished is stored" in ran.stdout


def test_a_bound_without_prices_is_refused(many: Path, evalstore: Evalstore) -> None:
    edited = (many / "models/one.yaml").read_text().replace("scripted", "openai-compatible")
    (many / "models/one.yaml").write_text(edited.split("responses")[0])
    ran = evalstore("run", "--max-cost", "1")
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert "the price of 'one' is not known, so no bound on the cost can be kept" in ran.stderr


def test_what_costs_much_is_not_done_without_leave(many: Path, evalstore: Evalstore) -> None:
    with (many / "evalstore.yaml").open("a") as settings:
        settings.write("confirmAbove: 3\n")
    ran = evalstore("run")
    assert (ran.exit_code, ran.stdout) == (4, "")
    assert ran.stderr == (
        "error: this run would ask for 10 answers and give 10 verdicts, which is likely to cost "
        "$6.00: more than the $3.00 allowed without confirmation\n"
        "hint: add --yes or --max-cost USD, or set 'confirmAbove' in evalstore.yaml\n"
    )
    assert json.loads(evalstore("log", "--json").stdout)["runs"] == []
    assert report(evalstore, "--yes", "--fail-on", "none")[0] == 0


def test_a_cost_that_is_declined_is_not_told_again(
    many: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    edit(many / "evalstore.yaml", "candidates:", "confirmAbove: 0.005\ncandidates:")
    assert "more than the $0.0050 allowed without confirmation" in evalstore("run").stderr
    monkeypatch.setattr(TerminalProgress, "agrees", lambda _self, _question: False)
    assert evalstore("run") == Ran(4, "", "error: not confirmed: nothing was asked or judged\n")
    assert json.loads(evalstore("log", "--json").stdout)["runs"] == []


def test_a_run_ends_when_its_time_is_up(
    many: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = ScriptedProvider.ask

    async def pass_time(provider: ScriptedProvider, request: Request, *, timeout: float) -> Reply:
        if request.messages[-1].text in ("Question 4", "Question 6"):
            loop = asyncio.get_running_loop()
            time = loop.time
            loop.time = lambda: time() + 1000  # type: ignore[method-assign]
            await asyncio.sleep(0)
        return await ask(provider, request, timeout=timeout)

    monkeypatch.setattr(ScriptedProvider, "ask", pass_time)
    code, actual = report(evalstore, "--max-time", "600")
    assert (code, actual["status"], actual["asked"]) == (4, "over budget", 5)
    assert actual["verdicts"]["pending"] == 6
    assert "stopped: time limit reached;" in evalstore("run", "--max-time", "600").stdout


def test_x_stops_at_the_first_failure(many: Path, evalstore: Evalstore) -> None:
    code, actual = report(evalstore, "-x")
    assert (code, actual["status"]) == (1, "incomplete")
    assert (actual["asked"], actual["judged"]) == (4, 4)
    assert actual["verdicts"] == {"pass": 3, "fail": 1, "undecided": 0, "error": 0, "pending": 6}
    refreshed = evalstore("run", "-x", "--refresh").stdout
    assert (
        "\nstopped at the first failing verdict (-x)\n" in refreshed
    )  # a plain run does not continue it


RECORDED = {
    "tests/many.md": "---\ndataset: rows.jsonl\nanswer: '{{item.reply}}'\n---\n\n# 👤\n\nCity {{n}}"
    "?\n\n---\n\n~~~checks\n- contains: Oslo\n~~~\n",
    "tests/rows.jsonl": "".join(
        json.dumps({"n": n, "reply": f"{'Rome' if n == 7 else 'Oslo'} {n}"}) + "\n"
        for n in range(30)
    ),
}


@pytest.mark.parametrize("check", ["contains: Oslo", r"regex: '(\w+\s?)+$'"], ids=["quick", "slow"])
def test_x_stores_no_recorded_answer_after_the_first_failure(
    many: Path, evalstore: Evalstore, check: str
) -> None:
    tree(many, RECORDED)
    edit(many / "tests/many.md", "- contains: Oslo", f"- contains: Oslo\n- {check}")
    code, actual = report(evalstore, "-x", "tests/many.md")
    assert (code, actual["recorded"], actual["judged"]) == (1, 8, 8)
    code, actual = report(evalstore, "tests/many.md")
    assert (code, actual["recorded"], actual["judged"]) == (1, 22, 22)


def test_slow_checks_of_recorded_answers_are_made_side_by_side(
    many: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree(many, RECORDED)
    together, judge = Barrier(2, timeout=120), judge_by_checks

    def wait(*arguments: Any) -> ChecksVerdict:
        together.wait()
        return judge(*arguments)

    monkeypatch.setattr(evaluators, "judge_by_checks", wait)
    monkeypatch.setattr(evaluators, "is_cheap_check", lambda *_: False)
    code, actual = report(evalstore, "tests/many.md")
    assert (code, actual["recorded"], actual["judged"]) == (1, 30, 30)


def test_a_failure_in_the_last_case_stops_nothing(many: Path, evalstore: Evalstore) -> None:
    evalstore("run")
    edit(many / "tests/t3.md", "Judge.", "Judge it.")
    shown = evalstore("run", "-x").stdout
    assert " complete: " in shown
    assert "stopped at" not in shown
    for name in ("t3", "t9"):
        edit(many / f"tests/{name}.md", "Judge", "Please judge")
    there = "\nstopped at the first failing verdict (-x); the next run continues from there\n"
    assert there in evalstore("run", "-x").stdout


def test_an_attempt_that_fails_is_not_a_failure_yet(many: Path, evalstore: Evalstore) -> None:
    (many / "models/one.yaml").write_text(
        "id: one\nprovider: scripted\nresponses: [{answer: No way, times: 1}, {answer: Yes}]\n"
    )
    with (many / "evalstore.yaml").open("a") as settings:
        settings.write("attempts: 2\nverdict: any\n")
    code, actual = report(evalstore, "-x")
    assert (code, actual["status"], actual["verdicts"]["pass"]) == (0, "complete", 10)


def test_a_failure_that_is_known_stops_nothing(many: Path, evalstore: Evalstore) -> None:
    report(evalstore, "-x")
    code, actual = report(evalstore, "-x")
    assert (code, actual["status"], actual["asked"]) == (1, "complete", 6)


def test_judgements_that_failed_checks_may_save_are_an_upper_bound(
    many: Path, evalstore: Evalstore
) -> None:
    assert "and give 10 verdicts (" in evalstore("status").stdout
    check = "# 👤\n\nQuestion 3\n\n---\n\nJudge.\n\n```checks\n- contains: Yes\n```\n"
    tree(many, {"tests/t3.md": check})
    both = "and give 1 verdict by checks and up to 10 by models"
    assert f"{both} (" in evalstore("status").stdout
    assert f"{both} (" in evalstore("status").stdout  # from the cache
    edit(many / "evalstore.yaml", "concurrency: 1", "concurrency: 1\nconfirmAbove: 0.01")
    assert f"{both}, which" in evalstore("run").stderr
    evalstore("run", "-y", "tests/t3.md")
    assert "and give 9 verdicts (" in evalstore("status").stdout


@pytest.mark.parametrize("is_ignored", [False, True], ids=["a terminal that closes", "nohup"])
def test_a_hang_up_stops_a_run_in_order_unless_it_is_ignored(
    echo: Echo, evalstore: Evalstore, is_ignored: bool
) -> None:
    for number in range(4):
        tree(Path.cwd(), {f"tests/t{number}.md": f"# 👤\n\nNumber {number}\n\n---\n\n" + CHECK})

    def hang_up(text: str) -> str:
        if len(echo.asked) == 2:
            os.kill(os.getpid(), signal.SIGHUP)
        return text

    echo.reply = hang_up
    missed: list[int] = []
    handler = signal.SIG_IGN if is_ignored else lambda number, _frame: missed.append(number)
    before = signal.signal(signal.SIGHUP, handler)
    try:
        ran = evalstore("run", "-j", "1")
    finally:
        signal.signal(signal.SIGHUP, before)
    assert missed == []
    if is_ignored:
        assert (ran.exit_code, len(echo.asked)) == (0, 4)
        return
    assert ran.exit_code == 130
    assert "interrupted: finishing what is in flight" in ran.stderr
    assert "interrupted; what was finished is stored" in ran.stdout
    asked = len(echo.asked)
    assert 2 <= asked < 4
    assert f"complete: {4 - asked} new answer" in evalstore("run").stdout
