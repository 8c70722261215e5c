"""`run --fail-on regression`: a case that has passed before and does not pass now."""

from __future__ import annotations

from typing import Any

import pytest

from evalstore.operations import earlier_results
from evalstore.store import runs
from tests.cli.conftest import Echo, Evalstore
from tests.cli.test_explained_cases import write

GATE = ("run", "-q", "--fail-on", "regression")


@pytest.fixture
def broken(echo: Echo, evalstore: Evalstore) -> Evalstore:
    """A case that passed in the first run and failed in the second."""
    write()
    evalstore("run", "-q")
    write("20 euros")
    assert evalstore(*GATE).exit_code == 1
    return evalstore


def test_the_gate_fails_again_until_the_case_passes(broken: Evalstore) -> None:
    ran = broken(*GATE)
    assert ran.exit_code == 1
    assert ran.stdout == (
        "fail       tests/t.md  scripted/one  <short>  (passed in run <short>)\n"
        "           '10 euros' is not in '20 euros'\n"
        "\n"
        "0 pass, 1 fail (0.0%, 95% interval 0.0% to 79.3%)\n"
        "run <short> complete: 0 asked, 0 judged, 1 reused, $0\n"
        "gate failed: 1 regression\n"
    )
    write("30 euros")
    assert broken(*GATE).exit_code == 1
    write("it is 10 euros")
    assert broken(*GATE).stdout.endswith("gate passed\n")


def test_no_number_of_runs_makes_a_regression_pass(
    broken: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "RUNS_SEARCHED", 2)
    for _ in range(4):
        ran = broken(*GATE)
    assert ran.exit_code == 1


def test_equal_earlier_runs_are_looked_up_once(
    broken: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[object] = []
    look_up = earlier_results.EarlierRuns._look_up

    def counting(self: Any, root: str, paths: Any) -> Any:
        looked.append(root)
        return look_up(self, root, paths)

    monkeypatch.setattr(earlier_results.EarlierRuns, "_look_up", counting)
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


@pytest.mark.parametrize("gate", [(), ("--fail-on", "regression", "--threshold", "0.5")])
def test_a_baseline_of_another_gate_is_refused(
    broken: Evalstore, echo: Echo, gate: tuple[str, ...]
) -> None:
    write("40 euros")
    asked = len(echo.asked)
    ran = broken("run", *gate, "--baseline", "@")
    assert (ran.exit_code, len(echo.asked)) == (2, asked)
    assert ran.stderr == (
        "error: '--baseline' needs '--fail-on regression'\n"
        "hint: the other gates do not depend on earlier runs\n"
    )


def test_an_unknown_baseline_asks_nothing(broken: Evalstore, echo: Echo) -> None:
    write("40 euros")
    asked = len(echo.asked)
    ran = broken(*GATE, "--baseline", "@~7")
    assert (ran.exit_code, len(echo.asked)) == (2, asked)
    assert "there is no run '@~7'" in ran.stderr
