"""`ls checks` and `ls checks NAME` show what a check does, with its settings and an example."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from evalstore.checks import parser as check_registry
from evalstore.checks.base import (
    COUNT,
    CheckDescription,
    CheckExample,
    CheckFinding,
    CheckSetting,
    CheckType,
)
from evalstore.checks.parser import known_kinds
from tests.interfaces.cli.conftest import Evalstore, Ran
from tests.interfaces.cli.test_documents import schema_of


def test_a_check_is_explained(
    evalstore: Evalstore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # no workspace is needed
    assert evalstore("ls", "checks", "levenshtein") == Ran(0, LEVENSHTEIN, "")


LEVENSHTEIN = """\
levenshtein passes if the answer is at most this many edits from one of the texts.
An edit inserts, deletes or replaces one character.

Settings:
  expected  the text, or alternatives (text or list of texts; required; or written as the value of
            the check)
  max       the maximum number of edits (whole number; required)

Settings of every check:
  not         the opposite must hold (true or false; default false)
  actual      what is checked, such as "{{ sample.output_json.city }}"; else the last answer (any
              value)
  ignoreCase  ignore case (true or false; default false)
  normalize   steps for both sides, in this order, of 'trim', 'casefold', 'nfc', 'squad', 'spaces',
              'quotes', 'markdown' ('squad': ignores case, punctuation, articles and spaces, as
              SQuAD does) (step or list of steps)
  pass        the bound of the score, such as ">= 0.8"; required where a score lies between 0 and 1
              (bound)
  weight      its weight in a mean of scores (number above 0; default 1)
  name        its name in feedback (text)
  scope       whether it looks at each answer, at all answers of a row, or at those of all rows
              (answer, case or group; default answer)
  allowEmpty  an empty value is intended; else it is an error (true or false; default false)

Example:
  - levenshtein: {expected: Reykjavik, max: 1}
      pass  Reykjavík
      fail  Reykjav
"""


@pytest.mark.parametrize("name", sorted(known_kinds()))
def test_every_check_is_explained(evalstore: Evalstore, documents: Any, name: str) -> None:
    ran = evalstore("ls", "checks", name)
    assert (ran.exit_code, ran.stderr) == (0, "")
    assert ran.stdout.startswith(f"{name} passes if ")
    assert max(map(len, ran.stdout.splitlines())) <= 120
    document = documents("ls", "checks", name)
    jsonschema.Draft202012Validator(schema_of(["ls", "checks", name])).validate(document)
    assert document["type"] == name


@pytest.mark.parametrize(
    ("width", "columns"),
    [
        (60, ["TYPE", "DESCRIPTION"]),
        (80, ["TYPE", "DESCRIPTION", "SETTINGS"]),
        (120, ["TYPE", "DESCRIPTION", "SETTINGS", "EXAMPLE"]),
    ],
)
def test_settings_and_an_example_of_checks_are_listed_where_they_fit(
    evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch, width: int, columns: list[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    lines = evalstore("ls", "checks").stdout.splitlines()
    assert lines[0].split() == columns
    (row,) = (line for line in lines if line.startswith("jsonPath "))
    assert ("path, check, fenced" in row) == (width > 60)
    assert ("jsonPath: city" in row) == (width == 120)
    (cut,) = (line for line in lines if line.startswith("endsWith "))
    assert re.match(r"endsWith +the answer ends with the text,.*…", cut)


def test_an_unknown_check_is_an_error_with_the_nearest_name(evalstore: Evalstore) -> None:
    assert evalstore("ls", "checks", "contain") == Ran(
        2, "", "error: unknown check 'contain'\nhint: did you mean 'contains'?\n"
    )


def test_checks_are_listed_with_a_description_and_an_example(
    workspace: Path, documents: Any, evalstore: Evalstore
) -> None:
    ran = evalstore("ls", "checks")
    assert ran.stderr == (
        "'evalstore ls checks NAME' shows settings and examples.\n"
        "'not: true' reverses a check: {contains: Paris, not: true}\n"
    )
    lines = ran.stdout.splitlines()
    assert lines[0].split() == ["TYPE", "DESCRIPTION", "SETTINGS", "EXAMPLE"]
    assert [line.split()[:4] for line in lines if line.startswith("contains ")] == [
        ["contains", "the", "text", "is"]
    ]
    assert len(lines) == 1 + len(known_kinds())
    document = documents("ls", "checks")
    jsonschema.Draft202012Validator(schema_of(["ls", "checks"])).validate(document)
    row = next(row for row in document["checks"] if row["type"] == "f1")
    assert [setting["name"] for setting in row["settings"]] == ["expected"]
    assert [
        common_setting["name"]
        for common_setting in row["commonSettings"]
        if common_setting["required"]
    ] == ["pass"]


def test_a_check_of_a_plugin_is_explained_by_what_it_declares(
    evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    description = CheckDescription(
        "it rhymes",
        (CheckSetting("lines", COUNT, "how many", 2),),
        (CheckExample("rhymes: {lines: 2}", "a\na", "a\nb"),),
    )
    kinds = {
        "rhymes": CheckType(
            1, lambda _: {}, lambda _check, _subject: CheckFinding(1.0), description=description
        )
    }
    monkeypatch.setattr(check_registry, "_plugged_in", lambda: kinds)
    shown = evalstore("ls", "checks", "rhymes").stdout
    assert shown.startswith("rhymes passes if it rhymes.\n\nSettings:\n  lines  how many (whole")
    assert "  - rhymes: {lines: 2}\n      pass  a\\na\n" in shown
    assert "it rhymes" in evalstore("ls", "checks").stdout


@pytest.mark.parametrize("words", ["contains f1", "contains -o csv"])
def test_one_check_is_explained_as_text_or_json(evalstore: Evalstore, words: str) -> None:
    assert evalstore("ls", "checks", *words.split()) == Ran(
        2,
        "",
        "error: 'ls checks' explains one check, as text or JSON\n"
        "hint: evalstore ls checks contains --json\n",
    )
