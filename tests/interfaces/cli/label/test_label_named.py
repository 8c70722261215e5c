"""Which answers `label` is about: one case, unless `--all` says otherwise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.builders import tree
from tests.interfaces.cli.conftest import Evalstore
from tests.interfaces.cli.run.test_run import edit

LATE = "---\nsystemPrompts: [brief, friendly, null]\n---\n\n# 👤\n\nHi\n\n---\n\nE\n"
FILES = {
    "tests/late.md": LATE,
    "prompts/brief.md": "---\nid: brief\n---\n\nBe brief.\n",
    "prompts/friendly.md": "---\nid: friendly\n---\n\nBe friendly.\n",
}


@pytest.fixture
def ran(workspace: Path, evalstore: Evalstore) -> Path:
    """A workspace after a run: one file has two rows, the other three system prompts."""
    tree(workspace, FILES)
    evalstore("run", "--yes")
    return workspace


def prompts(document: Any) -> list[str | None]:
    return [label["prompt"] for label in document["labels"]]


def test_several_system_prompts_are_not_labelled_together(ran: Path, evalstore: Evalstore) -> None:
    shown = evalstore("label", "tests/late.md", "pass", "--model", "scripted/one", "--as", "Ada")
    assert (shown.exit_code, shown.stdout) == (2, "")
    assert shown.stderr == (
        "error: 'tests/late.md' was answered with 3 system prompts\n"
        "hint: name one with --prompt (brief, friendly, no prompt), or add --all\n"
    )


@pytest.mark.parametrize(
    ("case", "name"),
    [
        (("tests/late.md", "--prompt", "friendly"), "friendly"),
        (("tests/late.md", "--prompt", "no prompt"), "no prompt"),
        (("tests/late.md (brief)",), "brief"),
        (("tests/late.md::(brief)",), "brief"),
    ],
)
def test_one_system_prompt_is_named(
    ran: Path, evalstore: Evalstore, case: tuple[str, ...], name: str
) -> None:
    shown = evalstore("label", case[0], "fail", "--as", "Ada", *case[1:])
    line = f"fail  tests/late.md ({name})  scripted/one  by Ada (was pass)\n"
    assert (shown.exit_code, shown.stdout) == (0, line)


def test_a_system_prompt_is_named_by_its_id(ran: Path, documents: Any) -> None:
    cases = [case for case in documents("run")["cases"] if case["file"] == "tests/late.md"]
    id = cases[1]["prompt"]
    document = documents("label", "tests/late.md", "pass", "--prompt", id[:8], "--as", "Ada")
    assert prompts(document) == [id]


def test_a_system_prompt_that_is_not_there_is_reported(ran: Path, evalstore: Evalstore) -> None:
    shown = evalstore("label", "tests/late.md (brave)", "pass")
    assert (shown.exit_code, shown.stdout) == (2, "")
    assert shown.stderr == (
        "error: no system prompt is called 'brave'\n"
        "hint: name one with --prompt: brief, friendly, no prompt\n"
    )


def test_all_named_cases_are_labelled_with_the_option_all(ran: Path, documents: Any) -> None:
    document = documents("label", "tests/late.md", "pass", "--all", "--as", "Ada")
    assert len(set(prompts(document))) == 3
    document = documents("label", "tests", "pass", "--all", "--as", "Ada")
    assert len(document["labels"]) == 5


@pytest.mark.parametrize(
    "case", ["tests/weather.md [city=Rome]", "weather.md [city=Rome]", "tests/weather.md::Rome"]
)
def test_a_row_can_be_named_as_it_is_printed(ran: Path, evalstore: Evalstore, case: str) -> None:
    shown = evalstore("label", case, "fail", "--as", "Ada")
    line = "fail  tests/weather.md [city=Rome]  scripted/one  by Ada (was pass)\n"
    assert (shown.exit_code, shown.stdout) == (0, line)


def test_a_row_and_a_system_prompt_can_be_named_as_they_are_printed(
    ran: Path, evalstore: Evalstore
) -> None:
    edit(ran / "tests/weather.md", "tags:", "systemPrompts: [brief, null]\ntags:")
    evalstore("run", "--yes")
    shown = evalstore("label", "tests/weather.md [city=Rome] (brief)", "fail", "--as", "Ada")
    line = "fail  tests/weather.md [city=Rome] (brief)  scripted/one  by Ada (was pass)\n"
    assert (shown.exit_code, shown.stdout) == (0, line)


def test_the_error_for_several_cases_says_how_to_label_them(
    ran: Path, evalstore: Evalstore
) -> None:
    assert evalstore("label", "tests/weather.md", "pass").stderr == (
        "error: 'tests/weather.md' has 2 cases\n"
        "hint: name one (tests/weather.md::city=Oslo, tests/weather.md::city=Rome), "
        "or add --all\n"
    )


@pytest.mark.parametrize("command", [("label", "pass"), ("status",), ("run",)], ids=" ".join)
@pytest.mark.parametrize(
    ("case", "hint"),
    [
        ("tests/late.md::one", "'tests/late.md' has one row: leave out '::one'"),
        ("tests/late.md [one]", "'tests/late.md' has one row: leave out '::one'"),
        ("tests/weather.md::x", "the rows are city=Oslo, city=Rome"),
        ("tests::x", "a row is a part of one test file: 'evalstore ls cases' lists them"),
        ("tests/bad.md::x", "'tests/bad.md' has errors: 'evalstore check' lists them"),
    ],
)
def test_the_hint_of_a_row_that_is_not_there_helps(
    ran: Path, evalstore: Evalstore, command: tuple[str, ...], case: str, hint: str
) -> None:
    tree(ran, {"tests/bad.md": "---\nx: [\n---\n"})
    name, *rest = command
    shown = evalstore(name, case, *rest)
    assert shown.stderr == f"error: no row is called '{case}'\nhint: {hint}\n"


@pytest.mark.parametrize(
    "command",
    [
        ("ls", "foo"),
        ("label", "tests/late.md", "perhaps"),
        ("run", "--fail-on", "x"),
        ("--color", "x", "ls"),
    ],
    ids=" ".join,
)
def test_a_choice_that_is_not_there_is_reported_plainly(
    workspace: Path, evalstore: Evalstore, command: tuple[str, ...]
) -> None:
    shown = evalstore(*command)
    assert shown.exit_code == 2
    assert "is not a valid value\nhint: the values are " in shown.stderr
    assert "Value error" not in shown.stderr
