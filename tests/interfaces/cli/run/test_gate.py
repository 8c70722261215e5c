"""The gate's word in `--json`: it says `passed` only when nothing that is missing could fail it."""

from __future__ import annotations

import itertools
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from evalstore.comparison.statistics import wilson
from evalstore.core.errors import INCOMPLETE, INTERRUPTED, NO, OK, STOPPED
from evalstore.runs.run import decide
from tests.interfaces.cli.conftest import Echo, Evalstore

CHECKED = "# 👤\n\nSay yes\n\n---\n\n~~~checks\n- contains: Say\n~~~\n"
WITH_IMAGE = CHECKED.replace("Say yes", "Say {{_file:a.png}}")


def write(text: str) -> None:
    Path("tests").mkdir(exist_ok=True)
    Path("tests/a.md").write_text(text)


def test_a_gate_with_nothing_judged_is_undetermined(echo: Echo, documents: Any) -> None:
    write(CHECKED)
    echo.failing = "Say"
    document = documents("run")
    assert (document["status"], document["verdicts"]["pending"]) == ("incomplete", 1)
    assert document["gate"] == "undetermined"
    echo.failing = None
    assert documents("run")["gate"] == "passed"


def test_a_gate_with_a_failed_verdict_has_failed_whatever_is_missing(
    echo: Echo, documents: Any
) -> None:
    write(CHECKED.replace("contains: Say", "contains: No"))
    Path("tests/b.md").write_text(CHECKED.replace("Say yes", "Fail here"))
    echo.failing = "Fail here"
    document = documents("run")
    assert (document["verdicts"]["fail"], document["verdicts"]["pending"]) == (1, 1)
    assert document["gate"] == "failed"


def test_a_gate_that_is_off_says_so(echo: Echo, documents: Any) -> None:
    write(CHECKED.replace("contains: Say", "contains: No"))
    assert documents("run", "--fail-on", "none")["gate"] == "off"
    assert documents("run", "--fail-on", "none", "--threshold", "0.5")["gate"] == "failed"


@pytest.mark.parametrize("threshold", [(), ("--threshold", "0.5")], ids=["verdicts", "rate"])
def test_a_gate_of_skipped_cases_alone_is_undetermined(
    echo: Echo, evalstore: Evalstore, documents: Any, threshold: tuple[str, ...]
) -> None:
    write(WITH_IMAGE)
    Path("tests/a.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    with Path("models/one.yaml").open("a") as model:
        model.write("capabilities: {input: {image: false}}\n")
    assert documents("run", *threshold)["gate"] == "undetermined"
    ran = evalstore("run", *threshold)
    assert ran.exit_code == INCOMPLETE
    assert ran.stdout.endswith("incomplete; no result has a verdict, so the gate is undetermined\n")
    assert evalstore("run", "--fail-on", "none").exit_code == OK


COUNTS = [
    Counter(),
    *(
        Counter(pair)
        for pair in itertools.combinations_with_replacement(
            ("pass", "fail", "undecided", "error", "pending"), 2
        )
    ),
]
FAIL_ON = ["failure", "undecided", "error", "regression", "none"]
STATUSES = ["complete", "incomplete", "interrupted", "over budget"]


@pytest.mark.parametrize("threshold", [None, 0.0, 0.5, 1.0])
@pytest.mark.parametrize("fail_on", FAIL_ON)
@pytest.mark.parametrize("status", STATUSES)
@pytest.mark.parametrize("failed", [0, 1])
def test_the_word_and_the_exit_code_agree(
    threshold: float | None, fail_on: str, status: str, failed: int
) -> None:
    for counts in COUNTS:
        report = decided(counts, threshold, fail_on, status, failed)
        missing = bool(counts["pending"] or failed or status in ("interrupted", "over budget"))
        if report.gate == "passed":
            assert not missing
            assert report.exit_code == OK
        if report.exit_code == OK:
            assert report.gate in ("passed", "off")
        if report.exit_code == NO:
            assert report.gate == "failed"
        if report.gate == "off":
            assert (fail_on, threshold) == ("none", None)
        if report.exit_code in (INTERRUPTED, STOPPED):
            assert report.gate != "passed"


@pytest.mark.parametrize(
    ("threshold", "gate"), [(None, "passed"), (0.5, "undetermined")], ids=["regression", "rate"]
)
def test_an_undecided_case_that_has_never_passed_does_not_keep_the_gate_open(
    threshold: float | None, gate: str
) -> None:
    counts = Counter({"pass": 1, "undecided": 1})
    assert decided(counts, threshold, "regression", "complete", 0).gate == gate


def decided(
    counts: Counter[str], threshold: float | None, fail_on: str, status: str, failed: int
) -> Any:
    """A report of cases of one file that ended with these words, with what the gate made of it."""
    words = ("pass", "fail", "undecided", "error", "pending")
    totals = SimpleNamespace(
        verdicts={word: counts[word] for word in words},
        files={"a.md": counts},
        rate=wilson(counts["pass"], counts.total() - counts["pending"]),
    )
    project: Any = SimpleNamespace(
        reading=SimpleNamespace(files={"a.md": SimpleNamespace(threshold=None)})
    )
    report: Any = SimpleNamespace(
        totals=totals,
        failed=failed,
        status=status,
        gate="undetermined",
        left_out=[],
        regressions=[],
        gate_off=fail_on == "none" and threshold is None,
        exit_code=OK,
    )
    orders: Any = SimpleNamespace(threshold=threshold, fail_on=fail_on)
    decide(project, report, orders)
    return report
