"""The setting `thresholds`: gates of a run by tag, file and model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.builders import tree
from tests.interfaces.cli.conftest import Echo, Evalstore


def case(text: str, *tags: str) -> str:
    """A test that passes when its question contains 'good'."""
    front = f"---\ntags: [{', '.join(tags)}]\n---\n\n" if tags else ""
    return f"{front}# 👤\n\n{text}\n\n---\n\n~~~checks\n- contains: good\n~~~\n"


@pytest.fixture
def three_of_four(echo: Echo) -> None:
    """A workspace with four cases, of which one of the tag `a` fails."""
    tree(
        Path.cwd(),
        {
            "tests/a1.md": case("good 1", "a", "x"),
            "tests/a2.md": case("bad 2", "a", "x"),
            "tests/b1.md": case("good 3", "b"),
            "tests/b2.md": case("good 4", "b"),
        },
    )


def use(thresholds: str) -> None:
    with Path("evalstore.yaml").open("a") as settings:
        settings.write(f"thresholds: {thresholds}\n")


pytestmark = pytest.mark.usefixtures("three_of_four")


@pytest.mark.parametrize(
    ("thresholds", "code"),
    [
        ("[{passRate: 0.5, where: [a]}]", 0),
        ("[{passRate: 0.6, where: [a]}]", 1),
        ("[{passRate: 0.5, where: [b]}]", 1),
        ("[{passRate: 0.75}]", 0),
        ("[{passRate: 0.75, by: [tag]}]", 1),
        ("[{passRate: 0.5, by: [tag]}]", 0),
        ("[{passRate: 0.75, by: [model]}]", 0),
        ("[{passRate: 0.75, by: [file]}]", 1),
        ("[{passRate: 0.5, where: [a, x]}, {passRate: 1, where: [b]}]", 0),
        ("[{passRate: 0, where: [a]}]", 0),
        ("[]", 1),
    ],
)
def test_cases_with_a_threshold_fail_a_run_together(
    evalstore: Evalstore, thresholds: str, code: int
) -> None:
    use(thresholds)
    assert evalstore("run").exit_code == code


def test_each_gate_has_a_line_and_the_missed_one_is_named(evalstore: Evalstore) -> None:
    use("[{passRate: 0.9, by: [tag, model]}]")
    assert evalstore("run").stdout.splitlines()[-4:] == [
        "threshold 90.0% of a, scripted/one: 1 of 2 pass (50.0%), missed",
        "threshold 90.0% of x, scripted/one: 1 of 2 pass (50.0%), missed",
        "threshold 90.0% of b, scripted/one: 2 of 2 pass (100.0%), reached",
        "gate failed: the threshold of a, scripted/one is missed, and 1 more",
    ]


def test_gates_are_in_the_document(documents: Any) -> None:
    use("[{passRate: 0.9, where: [a], by: [model]}]")
    document = documents("run")
    assert document["gate"] == "failed"
    assert document["thresholds"] == [
        {
            "where": ["a"],
            "by": {"model": "scripted/one"},
            "passRate": 0.9,
            "passed": 1,
            "judged": 2,
            "reached": False,
        }
    ]


def test_without_thresholds_the_document_has_none(documents: Any) -> None:
    assert "thresholds" not in documents("run")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("--fail-on", "none"), 0),
        (("--fail-on", "undecided"), 1),
        (("--fail-on", "error"), 0),
        (("--threshold", "0.7"), 0),
        (("--threshold", "0.8"), 1),
        (("tests/b1.md",), 0),
    ],
)
def test_options_decide_which_gate_counts(
    evalstore: Evalstore, arguments: tuple[str, ...], code: int
) -> None:
    use("[{passRate: 0.6, where: [a]}]")
    assert evalstore("run", *arguments).exit_code == code


def test_a_run_again_has_the_same_gates(evalstore: Evalstore) -> None:
    use("[{passRate: 0.6, where: [a]}]")
    first = evalstore("run").stdout.splitlines()[-2:]
    assert evalstore("run").stdout.splitlines()[-2:] == first


def test_a_missing_verdict_leaves_a_reached_threshold_open(echo: Echo, documents: Any) -> None:
    use("[{passRate: 0.5, where: [a]}]")
    echo.failing = "good 3"
    assert documents("run")["gate"] == "undetermined"


def test_a_tag_that_no_case_has_is_a_warning(evalstore: Evalstore) -> None:
    use("[{passRate: 0.5, where: [aa]}]")
    assert "no case has the tag 'aa' of a threshold" in evalstore("check").stderr
