"""The history of a case: what one version of it was judged as, each answer once."""

from __future__ import annotations

from typing import Any

import pytest

from tests.interfaces.cli.conftest import Echo, Evalstore
from tests.interfaces.cli.status.test_explained_cases import history, write


@pytest.fixture
def answers(echo: Echo) -> Any:
    """Set the words that the model answers with, one after the other."""

    def set_answers(*words: str) -> None:
        left = iter(words)
        echo.reply = lambda _text: next(left)

    return set_answers


def counts(evalstore: Evalstore) -> str:
    return history(evalstore, "tests/t.md")[-1]


def test_more_attempts_are_told_with_their_answers(answers: Any, evalstore: Evalstore) -> None:
    write("How?")
    answers("10 euros", "20 euros", "30 euros")
    evalstore("run", "-q")
    evalstore("run", "-q", "-r", "3", "-j", "1")
    assert history(evalstore, "tests/t.md") == [
        "broken since run <short> (<when>)",
        "last passed in run <short> (<when>)",
        "what changed in between:",
        "  attempts 1 -> 3",
        "  same question, 2 more answers",
        "this version: judged once, 1 of 3 attempts passed",
    ]


def test_the_first_answers_that_differ_are_shown(answers: Any, evalstore: Evalstore) -> None:
    write("How?")
    answers("10 euros", "10 euros", "10 euros", "9 euros", "10 euros", "9 euros")
    for refresh in ((), ("--refresh",)):
        evalstore("run", "-q", "-r", "3", "-j", "1", *refresh)
    assert history(evalstore, "tests/t.md")[3:-1] == [
        "  same question, asked again",
        "    - [-10-] euros",
        "    + {+9+} euros",
    ]


def test_a_replaced_label_is_not_another_verdict_of_the_model(
    echo: Echo, evalstore: Evalstore
) -> None:
    write("20 euros")
    evalstore("run", "-q")
    for verdict in ("pass", "fail", "pass"):
        evalstore("label", "tests/t.md", verdict, "--as", "Ada")
        evalstore("run", "-q")
        lines = history(evalstore, "tests/t.md")
        assert lines[3:] == [
            "  labelled by Ada",
            f"this version: judged once, {verdict} by a label"
            + " (fail without it)" * (verdict == "pass"),
        ]


def test_runs_that_only_reuse_change_no_count(answers: Any, evalstore: Evalstore) -> None:
    write("How?")
    answers("10 euros", "20 euros", "30 euros", "10 euros")
    evalstore("run", "-q")
    evalstore("run", "-q", "-r", "3", "-j", "1")
    evalstore("run", "-q", "--refresh")
    expected = (
        "this version: 1 of the last 2 verdicts passed, 1 change "
        "(newest first: pass, fail (1 of 3 attempts passed))"
    )
    assert counts(evalstore) == expected
    for argv in ((), ("-r", "3"), (), ()):
        evalstore("run", "-q", *argv)
        counted = "1 of 3 attempts passed; counts here" if argv else "1 of 3 attempts passed"
        assert counts(evalstore) == expected.replace("1 of 3 attempts passed", counted)


@pytest.mark.parametrize(("before", "verdict"), [("10 euros", "passed"), ("5 euros", "failed")])
def test_a_pending_result_has_no_outcome_of_its_own(
    echo: Echo, evalstore: Evalstore, documents: Any, before: str, verdict: str
) -> None:
    write(before)
    evalstore("run", "-q")
    write("15 euros")
    echo.failing = "15"
    evalstore("run", "-q")
    expected = [f"pending; last {verdict} in run <short> (<when>)"]
    assert history(evalstore, "tests/t.md") == expected
    assert history(evalstore, "@work:tests/t.md::") == expected
    assert documents("show", "tests/t.md")["history"]["pending"] is True


def test_attempts_before_an_edit_that_was_undone_count_again(
    echo: Echo, evalstore: Evalstore, documents: Any
) -> None:
    write()
    evalstore("run", "-q", "-r", "3")
    evalstore("run", "-q")
    expected = "judged once, 3 of 3 attempts passed"
    assert counts(evalstore) == f"this version: {expected}"
    write("20 euros", "30 euros")
    evalstore("run", "-q")
    version = "with the same question, instructions and checks"
    assert "judged once" not in evalstore("show", "tests/t.md").stdout
    write()
    evalstore("run", "-q")
    assert counts(evalstore) == f"{version}: {expected}"
    document = documents("show", "tests/t.md")["history"]
    assert (document["judged"], document["passed"], document["flips"]) == (3, 3, 0)
    assert (document["runsSearched"], document["isCut"]) == (4, False)


def test_the_search_ends_with_as_many_verdicts_as_are_counted(
    echo: Echo, evalstore: Evalstore, documents: Any
) -> None:
    write()
    evalstore("run", "-q", "-r", "2")
    write("20 euros", "30 euros")
    evalstore("run", "-q")
    write()
    for _ in range(3):
        evalstore("run", "-q", "--refresh", "-r", "10")
    document = documents("show", "tests/t.md")["history"]
    assert document["verdicts"] == ["pass"] * 20
    assert document["before"] is not None
    assert document["runsSearched"] <= 5


def test_what_changed_after_a_failure_began_is_told(
    echo: Echo, evalstore: Evalstore, documents: Any
) -> None:
    echo.reply = lambda text: "10 euros" if text.startswith("Old") else "no"
    for number, words in enumerate(("Old.", "New.", "Newer.", "Newer.")):
        write(words)
        evalstore("run", "-q")
        if number == 1:
            assert "since then" not in evalstore("show", "tests/t.md").stdout
    told = history(evalstore, "tests/t.md")
    assert told[:3] == [
        "broken since run <short> (<when>)",
        "last passed in run <short> (<when>)",
        "what changed in between:",
    ]
    later = told.index("what changed since then, up to run <short> (<when>):")
    assert [line.strip() for line in told[later + 1 :]] == [
        "test changed",
        "user:",
        "- [-New-].",
        "+ {+Newer+}.",
    ]
    runs = documents("log")["runs"]
    document = documents("show", "tests/t.md")
    assert document["history"]["later"]["run"]["run"] == runs[1]["run"]


def test_a_pass_for_another_reason_than_when_it_began_is_told(
    echo: Echo, evalstore: Evalstore
) -> None:
    write("20 euros")
    evalstore("run", "-q")
    evalstore("label", "tests/t.md", "pass", "--as", "Ada")
    evalstore("run", "-q")
    assert "what changed since" not in evalstore("show", "tests/t.md").stdout
    write("20 euros", "20 euros")
    evalstore("run", "-q")
    later = history(evalstore, "tests/t.md")[2:]
    assert later[:4] == [
        "what changed in between:",
        "  labelled by Ada",
        "what changed since then, up to run <short> (<when>):",
        "  checks changed",
    ]
    assert later[-1] == "  label of Ada no longer counts"


def test_a_pass_by_a_label_on_an_older_answer_is_told(answers: Any, evalstore: Evalstore) -> None:
    write("How?")
    answers("20 euros", "10 euros")
    evalstore("run", "-q")
    evalstore("run", "-q", "--refresh", "tests/t.md")
    evalstore("label", "tests/t.md", "pass", "--as", "Ada")
    assert history(evalstore, "@work:tests/t.md::")[2:-1] == [
        "what changed in between:",
        "  same question, asked again",
        "    - [-20-] euros",
        "    + {+10+} euros",
        "what changed since then, in the workspace:",
        "  same question, and an older answer counts: run <short> had asked again",
        "    - [-10-] euros",
        "    + {+20+} euros",
        "  labelled by Ada",
    ]
    write("How?", "euros")
    evalstore("label", "tests/t.md", "pass", "--as", "Ada")
    evalstore("run", "-q")
    told = history(evalstore, "tests/t.md")
    assert told[told.index("what changed since then, up to run <short> (<when>):") + 1 : -1] == [
        "  same question, and an older answer counts: run <short> had asked again",
        "    - [-10-] euros",
        "    + {+20+} euros",
        "  checks changed",
        "    - - contains: [-10-] euros",
        "    + - contains: euros",
        "  labelled by Ada",
    ]
