"""Reasons have the names of their judges, and equal reasons of many cases are printed once."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalstore.interfaces.cli import output
from tests.builders import tree
from tests.interfaces.cli.conftest import Evalstore

JUDGE = """\
id: scripted/{name}
provider: scripted
responses:
  - {{when: Late, answer: {{pass: {late}, feedback: "{feedback}"}}}}
  - {{answer: {{pass: true, feedback: Fine.}}}}
"""
FILES = {
    "evalstore.yaml": "candidates: [one]\nevaluators: [scripted/strict, scripted/lenient]\n"
    "verdict: all\n",
    "models/one.yaml": "id: one\nprovider: scripted\n"
    "responses: [{when: 'ship [0-9]*[5-9]', answer: Late.}, {answer: In time.}]\n",
    "models/strict.yaml": JUDGE.format(name="strict", late="false", feedback="It is late."),
    "models/lenient.yaml": JUDGE.format(name="lenient", late="false", feedback="Late but kind."),
    "tests/ships.md": "---\nreplacements: {ship: [1, 2, 3, 4, 5, 6, 7, 8, 9]}\n---\n\n# 👤\n\n"
    "When comes ship {{ship}}?\n\n---\n\nIt must be in time.\n",
}


@pytest.fixture
def ships(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Nine cases, of which five fail: two judges say why."""
    monkeypatch.chdir(tree(tmp_path / "w", FILES))
    return Path.cwd()


NAMED = "           scripted/strict: It is late.\n           scripted/lenient: Late but kind.\n"


def test_equal_reasons_are_printed_once_with_the_name_of_each_judge(
    ships: Path, evalstore: Evalstore
) -> None:
    assert evalstore("run").stdout.startswith(
        "".join(f"fail  tests/ships.md [ship={n}]  one  <short>\n" for n in (5, 6, 7)).replace(
            "fail  ", "fail       "
        )
        + f"{NAMED}           … and 2 more with the same reason\n\n"
    )


def test_all_lists_each_result_with_its_reasons(ships: Path, evalstore: Evalstore) -> None:
    assert evalstore("run", "--all").stdout.count(NAMED) == 5


def test_at_least_so_many_have_an_equal_reason_where_results_are_left_out(
    ships: Path, evalstore: Evalstore
) -> None:
    rows = ", ".join(str(10 * row + 5) for row in range(30))
    tree(
        ships,
        {"tests/ships.md": FILES["tests/ships.md"].replace("1, 2, 3, 4, 5, 6, 7, 8, 9", rows)},
    )
    lines = evalstore("run").stdout.splitlines()
    assert "           … and at least 17 more with the same reason" in lines
    assert "not listed: 10 more results of the kinds above (--all lists them)" in lines


def test_diff_names_the_judges_and_prints_equal_reasons_once(
    ships: Path, evalstore: Evalstore
) -> None:
    evalstore("run", "-q")
    tree(ships, {"models/one.yaml": FILES["models/one.yaml"].replace("5-9", "1-9")})
    evalstore("run", "-q", "--refresh")
    shown = evalstore("diff", "@~1", "@").stdout
    assert shown.splitlines()[1] == "4 broke, 5 unchanged"
    assert (
        "[ship=3]  one  pass -> fail  (asked again)  <short> -> <short>\n"
        "        was: scripted/strict, scripted/lenient: Fine.\n"
        "        now: scripted/strict: It is late.\n"
        "             scripted/lenient: Late but kind.\n"
        "        … and 1 more with the same reason\n"
    ) in shown
    assert "[ship=4]" in evalstore("diff", "@~1", "@", "-v").stdout


def test_the_ids_of_both_answers_stay_on_one_line(
    ships: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    evalstore("run", "-q")
    tree(ships, {"models/one.yaml": FILES["models/one.yaml"].replace("5-9", "1-9")})
    evalstore("run", "-q", "--refresh")
    for columns in range(60, 130):
        monkeypatch.setattr(output, "table_width", lambda columns=columns: columns)
        shown = evalstore("diff", "@~1", "@").stdout
        assert not [line for line in shown.splitlines() if line.endswith(" ->")]
        assert shown.count("<short> -> <short>") == 3


def test_status_shows_one_edit_of_many_files_once(ships: Path, evalstore: Evalstore) -> None:
    text = FILES["tests/ships.md"].replace("---\nrep", "---\nsystemPrompts: [kind, short]\nrep", 1)
    tree(
        ships,
        {f"tests/{number}.md": text.replace("comes", f"comes {number}") for number in range(5)},
    )
    tree(ships, {"prompts/kind.md": "Be kind.\n", "prompts/short.md": "Be short.\n"})
    evalstore("run", "-q")
    tree(ships, {"prompts/kind.md": "Be kind and short.\n"})
    again = evalstore("status", "--refresh").stdout
    assert "5 files  45 cases asked again: system prompt kind changed: " in again
    assert " (45 cases); at your request (45 cases)\n" in again
    status = evalstore("status").stdout
    assert "    M.  5 files  45 cases asked again: system prompt kind changed: " in status
    assert "tests/0.md" not in status
    listed = evalstore("status", "-v").stdout
    assert listed.count("system prompt kind changed: ") == 1
    assert listed.count("        tests/3.md  9 cases asked again\n") == 1


@pytest.mark.parametrize(
    ("path", "text", "cause"),
    [
        ("prompts/kind.md", "Be kind.\n", "system prompt kind"),
        ("tests/terms.txt", "The terms.\n", "file terms.txt"),
    ],
)
def test_what_is_reverted_after_a_partial_run_is_listed_once_for_all_files(
    ships: Path, evalstore: Evalstore, path: str, text: str, cause: str
) -> None:
    start = "---\nsystemPrompts: [kind]\n---\n\n# 👤\n\n{{_file:terms.txt}}\n\nWhen comes ship "
    files = {f"tests/{n}.md": f"{start}{n}?\n\n---\n\nIn time?\n" for n in range(5)}
    tree(ships, {**files, "prompts/kind.md": "Be kind.\n", "tests/terms.txt": "The terms.\n"})
    evalstore("run", "-q")
    tree(ships, {path: f"Edited. {text}"})
    evalstore("run", "-q", "tests/1.md")
    tree(ships, {path: text})
    for options in ([], ["-v"]):
        printed = evalstore("status", *options).stdout
        assert printed.count(f"    =   5 files  {cause} reverted to a stored version") == 1
        assert printed.count("        tests/3.md  reverted to a stored version\n") == len(options)
