"""What `stats` says of passes that were failures before they were asked again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.builders import tree
from tests.interfaces.cli.conftest import Evalstore
from tests.interfaces.cli.run.test_run import edit

TEST = "# 👤\n\nQuestion {}?\n\n---\n\n~~~checks\n- contains: fine\n~~~\n"
NOTE = (
    "1 of 2 passes failed before they were asked again (asked again: 2 that failed, 0 that "
    "passed). A new answer may pass by chance, so the rate may be too high; "
    "'evalstore run --refresh' asks all again."
)


@pytest.fixture
def answers(echo: Any) -> dict[str, str]:
    """What is answered to a question that contains a word; three files, two of which fail."""
    actual = {"Question": "bad", "Question c": "fine"}
    echo.reply = lambda text: next(actual[word] for word in reversed(actual) if word in str(text))
    tree(Path.cwd(), {f"tests/{name}.md": TEST.format(name) for name in "abc"})
    return actual


def rerolls(documents: Any, *arguments: str, run: str = "@") -> tuple[int, int, int, int]:
    actual = documents("stats", run, *arguments)["rerolls"]
    return actual["fails"], actual["passes"], actual["passedAfterFail"], actual["runs"]


def printed_words(evalstore: Evalstore, *arguments: str) -> str:
    return " ".join(evalstore("stats", "@", *arguments).stdout.split())


def test_failures_that_were_asked_again_after_an_edit_are_counted(
    answers: dict[str, str], evalstore: Evalstore, documents: Any
) -> None:
    documents("run")
    assert rerolls(documents) == (0, 0, 0, 0)
    assert "asked again" not in printed_words(evalstore)
    for name in "ab":
        edit(Path.cwd() / f"tests/{name}.md", "?", ", please?")
    answers["Question a, please"] = "fine"
    documents("run")
    assert rerolls(documents) == (2, 0, 1, 1)
    assert printed_words(evalstore).endswith(NOTE)
    assert " ".join(evalstore("stats").stdout.split()).endswith(NOTE)  # the same rows
    edit(Path.cwd() / "tests/c.md", "?", ", please?")
    assert "asked again" not in evalstore("stats").stdout
    edit(Path.cwd() / "tests/c.md", ", please?", "?")
    # The failures stay counted when runs follow that ask nothing, or are about a selection.
    documents("run")
    documents("run", "tests/b.md")
    documents("run")
    assert rerolls(documents) == (2, 0, 1, 4)
    assert rerolls(documents, run="@~3") == (2, 0, 1, 1)
    assert rerolls(documents, run="@~4") == (0, 0, 0, 0)


def test_a_refresh_asks_passes_again_as_well_and_ends_it(
    answers: dict[str, str], evalstore: Evalstore, documents: Any
) -> None:
    documents("run")
    edit(Path.cwd() / "tests/a.md", "?", ", please?")
    answers["Question a, please"] = "fine"
    documents("run")
    assert rerolls(documents) == (1, 0, 1, 1)
    documents("run", "--refresh")
    assert rerolls(documents) == (1, 2, 0, 2)
    assert "asked again" not in printed_words(evalstore)


def test_an_answer_that_is_only_judged_again_was_not_asked_again(
    answers: dict[str, str], documents: Any
) -> None:
    documents("run")
    edit(Path.cwd() / "tests/a.md", "contains: fine", "contains: bad")
    documents("run")
    assert rerolls(documents) == (0, 0, 0, 1)


def test_only_verdicts_by_the_same_checks_are_compared(
    answers: dict[str, str], documents: Any
) -> None:
    documents("run")
    edit(Path.cwd() / "tests/a.md", "?\n\n---", ", please?\n\n---")
    edit(Path.cwd() / "tests/a.md", "contains: fine", "contains: bad")
    documents("run")
    assert rerolls(documents) == (0, 0, 0, 1)
    edit(Path.cwd() / "tests/a.md", "please?", "tell me?")
    answers["Question a, tell"] = "fine"
    edit(Path.cwd() / "tests/a.md", "contains: bad", "contains: fine")
    documents("run")
    assert rerolls(documents) == (1, 0, 1, 2)  # the first run had the same checks


def test_an_answer_that_an_undone_edit_brings_back_counts_by_what_came_before_it(
    answers: dict[str, str], evalstore: Evalstore, documents: Any
) -> None:
    file = Path.cwd() / "tests/c.md"
    documents("run")
    for was, now, asked, counted in (
        ("Question c?", "Question d?", 1, (0, 1, 0, 1)),  # fails
        ("Question d?", "Question c?", 0, (0, 0, 0, 2)),  # passed before anything had failed
        ("Question c?", "Question d?", 0, (0, 1, 0, 3)),
        ("Question d?", "Question c, really?", 1, (1, 0, 1, 4)),
        ("Question c, really?", "Question d?", 0, (0, 1, 0, 5)),
        ("Question d?", "Question c, really?", 0, (1, 0, 1, 6)),  # was asked after a failure
    ):
        edit(file, was, now)
        assert documents("run")["asked"] == asked
        assert rerolls(documents) == counted
    assert printed_words(evalstore).endswith(NOTE.replace("1 of 2", "1 of 1").replace(": 2", ": 1"))


def test_only_what_a_query_selects_is_counted(answers: dict[str, str], documents: Any) -> None:
    queries = "\nanalysisQueries:\n  - {description: tagged, requiredTags1: [short]}\n"
    settings = Path.cwd() / "evalstore.yaml"
    settings.write_text(settings.read_text() + queries)
    edit(Path.cwd() / "tests/c.md", "# 👤", "---\ntags: [short]\n---\n\n# 👤")
    documents("run")
    edit(Path.cwd() / "tests/a.md", "?", ", please?")
    answers["Question a, please"] = "fine"
    documents("run")
    assert rerolls(documents) == (1, 0, 1, 1)
    assert rerolls(documents, "--query", "tagged") == (0, 0, 0, 1)


def test_further_attempts_ask_again_as_well(
    echo: Any, evalstore: Evalstore, documents: Any
) -> None:
    tree(Path.cwd(), {"tests/a.md": TEST.format("a")})
    words = iter(("bad", "fine", "fine"))
    echo.reply = lambda _text: next(words)
    documents("run")
    documents("run", "-r", "3", "-j", "1")
    assert rerolls(documents) == (1, 0, 1, 1)
    documents("run", "-r", "3")
    assert rerolls(documents) == (1, 0, 1, 2)
    assert printed_words(evalstore).endswith(NOTE.replace("1 of 2", "1 of 1").replace(": 2", ": 1"))
    documents("run")  # the first answer alone counts again
    assert rerolls(documents) == (0, 0, 0, 3)
