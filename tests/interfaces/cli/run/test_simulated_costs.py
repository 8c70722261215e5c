"""Costs of scripted models, for which nobody is paid: they are marked wherever they are shown."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from evalstore.core.display import cost_text, likely_price
from evalstore.core.runs import shared_cost_text
from evalstore.interfaces.cli.main import main
from evalstore.planning.open_project import open_store
from evalstore.planning.options import Location
from evalstore.store.results import read_results
from tests.interfaces.cli.run.test_run import edit

if TYPE_CHECKING:
    from pathlib import Path

    from tests.interfaces.cli.conftest import Evalstore

SAID = "(simulated: scripted models call no service, so nothing is paid)"


def test_the_end_of_a_run_says_that_nothing_is_paid(workspace: Path, evalstore: Evalstore) -> None:
    ran = evalstore("run")
    assert "new verdicts, $0.0600 simulated\n" in ran.stdout
    assert SAID in ran.stderr
    again = evalstore("run")
    assert "$0; saved $0.0600 simulated by reuse\n" in again.stdout
    assert SAID not in again.stderr


def test_an_estimate_a_log_and_a_report_are_marked(workspace: Path, evalstore: Evalstore) -> None:
    assert "simulated" in evalstore("status").stdout
    evalstore("run")
    edit(workspace / "tests/weather.md", "How is", "And how is")
    assert "about $0.0600 simulated.\n" in evalstore("run", "--dry-run").stdout
    assert "2 new verdicts, $0.0600 simulated\n" in evalstore("log").stdout
    report = evalstore("report", "--markdown").stdout
    assert "The run cost $0.0600 (simulated)." in report
    evalstore("run")
    evalstore("run")
    assert ", 0 new verdicts, $0, compared with" in evalstore("report", "--markdown").stdout
    evalstore("report", "@", "-o", "r.html")
    told = "this run cost $0; cost of all answers and verdicts shown: $0.0600 simulated"
    assert told in (workspace / "r.html").read_text(encoding="utf-8")
    assert "the costs are simulated" in evalstore("stats", "@").stderr


def test_a_report_has_the_cost_of_the_runs_up_to_its_own(
    workspace: Path, evalstore: Evalstore
) -> None:
    with (workspace / "models/judge.yaml").open("a", encoding="utf-8") as judge:
        judge.write("costs: [{costPerCall: 0.002}]\n")
    evalstore("run")
    edit(workspace / "tests/weather.md", "How is", "And how is")
    evalstore("run")
    until = "cost of all runs up to this one"
    for revision, name, cost in (
        ("@~1", until, "$0.0640 simulated (answers $0.0600, judging $0.0040)"),
        ("@", until, "$0.1280 simulated (answers $0.1200, judging $0.0080)"),
        ("@work", "cost of all runs", "$0.1280 simulated (answers $0.1200, judging $0.0080)"),
    ):
        assert evalstore("report", revision, "-o", "r.html").exit_code == 0
        page = (workspace / "r.html").read_text(encoding="utf-8")
        assert f'<dt>{name}</dt><dd dir="auto">{cost}<' in page
        if revision != "@work":
            markdown = evalstore("report", revision, "--markdown").stdout
            assert f"All runs up to this one cost {cost}.\n" in markdown
            edited = "Edits: tests/weather.md changed.\n"
            assert (edited in markdown) == (revision == "@")


def test_the_document_of_a_run_marks_each_scripted_model(
    workspace: Path, evalstore: Evalstore
) -> None:
    spending = json.loads(evalstore("run", "--json").stdout)["spending"]
    assert {each["model"]: each["simulated"] for each in spending} == {
        "scripted/one": True,
        "scripted/judge": True,
    }


def test_a_free_run_has_no_mark(workspace: Path, evalstore: Evalstore) -> None:
    evalstore("run")
    evalstore("run")
    assert "simulated" not in evalstore("log", "-n", "1").stdout


def test_a_bound_counts_simulated_costs(workspace: Path, evalstore: Evalstore) -> None:
    assert evalstore("run", "--max-cost", "0.0001").exit_code == 4


def test_a_cost_is_simulated_only_if_all_of_it_is() -> None:
    scripted = {"cost": 0.01, "simulated": True}
    free, paid = {"cost": 0.0}, {"cost": 0.02}
    assert cost_text(0.01, [scripted]) == "$0.0100 simulated"
    assert cost_text(0.01, [scripted, free]) == "$0.0100 simulated"
    assert cost_text(0.01, [scripted], brief=True) == "$0.0100 simulated"
    parts = [{**scripted, "part": "candidate"}, {**scripted, "part": "evaluator"}]
    assert shared_cost_text(0.02, parts) == "$0.0200 simulated (answers $0.0100, judging $0.0100)"
    assert cost_text(0.03, [scripted, paid]) == "$0.0300"
    assert cost_text(None, [scripted, {"cost": None, "unpriced": 1}]) == (
        "at least $0.0100 (1 call without a price)"
    )
    assert cost_text(0.0, []) == "$0"
    assert likely_price(0.06, None, is_simulated=True) == "about $0.0600 simulated"
    assert likely_price(0.06, 40, brief=True, is_simulated=True) == "about $0.0600 simulated"
    assert likely_price(0.0, None, is_simulated=True) == "about $0"


def test_a_judgement_by_a_script_is_marked(workspace: Path, evalstore: Evalstore) -> None:
    with (workspace / "models/judge.yaml").open("a", encoding="utf-8") as judge:
        judge.write("costs: [{costPerCall: 0.002}]\n")
    (workspace / "tests/checked.md").write_text(
        "# 👤\n\nHi\n\n---\n\n~~~checks\n- contains: W\n~~~\n"
    )
    assert main(["run", "--quiet"]) == 1
    with open_store(Location(workspace)) as store:
        (run,) = store.find_runs()
        judgements = [id for each in read_results(store, run) for id in each.evaluations]
    shown = [evalstore("show", id).stdout for id in judgements]
    assert ["$0.0020 simulated" in text for text in shown] == [False, True, True]
