"""The examples of docs/formats are files that can be used."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from evalstore.core.values import Json
from evalstore.interfaces.cli.main import main

PAGES = sorted((Path(__file__).parents[2] / "docs" / "formats").glob("*.md"))
PAGE = "\n".join(path.read_text(encoding="utf-8") for path in PAGES)
CHECKS = (PAGES[0].parents[1] / "checks.md").read_text(encoding="utf-8")
EXAMPLE = re.compile(r"^<!-- file: (\S+) -->\n(`{3,})\w+\n(.*?)^\2$", re.DOTALL | re.MULTILINE)
HELLO = "# 👤\n\nHello\n\n---\n\nExpect a greeting.\n"


def sections() -> dict[str, dict[str, str]]:
    """The files of each section, by its heading."""
    parts = re.split(r"^## (.*)\n", PAGE, flags=re.MULTILINE)[1:]
    actual = {
        heading: {path: text for path, _, text in EXAMPLE.findall(body)}
        for heading, body in zip(parts[::2], parts[1::2], strict=True)
    }
    return {heading: files for heading, files in actual.items() if files}


@pytest.mark.parametrize("heading", sections())
def test_check_finds_nothing_wrong_with_the_examples(
    heading: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {"evalstore.yaml": "", **sections()[heading]}
    if not any(path.endswith(".md") and not path.startswith("prompts/") for path in files):
        files["tests/hello.md"] = HELLO
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text, encoding="utf-8")

    runs = ("provider: python\n", "provider: command\n")
    applications = [path for path, text in files.items() if any(line in text for line in runs)]
    checks = [path for path in files if path.endswith(".py") and not applications]
    if applications or checks:
        assert main(["-C", str(tmp_path), "trust", *applications, *checks]) == 0
        capsys.readouterr()

    code = main(["-C", str(tmp_path), "check", "--json"])

    printed, output = capsys.readouterr()
    assert (code, output) == (0, "")
    problems = [problem["message"] for problem in json.loads(printed)["problems"]]
    # The examples name hosted models, whose keys no test has.
    assert [message for message in problems if not message.endswith("_KEY is not set")] == []


def test_every_example_is_marked() -> None:
    fenced = re.findall(r"^(?:<!-- file: \S+ -->\n)?```(?:yaml|markdown)$", PAGE, re.MULTILINE)

    assert fenced
    assert [item for item in fenced if not item.startswith("<!--")] == []


def test_every_setting_is_described() -> None:
    from evalstore.workspace.settings.settings import SETTING_NAMES

    settings = PAGE.partition("\n## Settings\n")[2].partition("\n## ")[0]
    missing = [name for name in SETTING_NAMES if f"`{name}`" not in settings]
    assert missing == []


def test_every_field_of_a_test_is_described() -> None:
    from evalstore.workspace.testfiles.parser import TEST_FIELDS

    tests = PAGE.partition("\n## Test files\n")[2].partition("\n## ")[0]
    assert [name for name in TEST_FIELDS if f"`{name}`" not in tests] == []


def test_every_check_is_described() -> None:
    from evalstore.checks.parser import known_kinds

    assert [name for name in known_kinds() if f"\n## {name}\n" not in CHECKS] == []


@pytest.mark.parametrize(
    "check",
    [
        {"regex": "a"},
        {"length": {"max": 1}},
        {"levenshtein": "a", "max": 1},
        {"rouge": "a", "pass": 1},
        {"number": 1},
        "json",
        {"jsonSchema": "a"},
        {"jsonEquals": 1},
        {"jsonPath": "a"},
        {"toolCalls": ["a"]},
        {"tokens": 1},
        {"allSame": "a", "scope": "case"},
        {"monotonic": "increasing", "scope": "case"},
    ],
    ids=str,
)
def test_every_setting_of_a_check_is_described(check: Json) -> None:
    from evalstore.checks.base import CheckArguments
    from evalstore.checks.parser import find_kind, split

    name, settings = split(check, None)
    kind = find_kind(name)
    assert kind
    arguments = CheckArguments(settings)
    kind.read(arguments)
    section = CHECKS.partition(f"\n## {name}\n")[2].partition("\n## ")[0].replace("**", "")
    assert [name for name in arguments._known if f"- `{name}` (" not in section] == []


def rows_of_expressions() -> list[tuple[str, str]]:
    """What the table of expressions says means the same, in texts and in `expr`."""
    table = PAGE.partition("| in texts and `where` |")[2].partition("\n\n")[0]
    rows = [line.replace("\\|", "¦").split("|")[2:4] for line in table.splitlines()[2:]]
    code = [[re.findall("`([^`]+)`", cell.replace("¦", "|")) for cell in row] for row in rows]
    return [(left, code[n][1][-1]) for n, item in enumerate(code) for left in item[0]]


@pytest.mark.parametrize(("jinja", "expr"), rows_of_expressions())
def test_both_languages_of_the_table_say_the_same(jinja: str, expr: str) -> None:
    from evalstore.checks.base import CheckInput
    from evalstore.checks.check_verdict import run_check
    from evalstore.checks.parser import read_check
    from evalstore.core.values import Reply
    from evalstore.files.jinja_sandbox import evaluate_expression

    row = {"level": "4", "Question Text": "x", "words": ["a"], "city": "Oman"}
    scope = {**row, "item": row}
    same = read_check({"expr": f"({expr}) == {evaluate_expression(jinja, 1, scope)!r}"})
    outcome = run_check(same, CheckInput(Reply(""), "", names=scope))
    assert outcome.verdict == "pass", outcome.feedback


def test_every_function_of_expressions_is_described() -> None:
    from evalstore.checks.types.expression import FUNCTIONS, METHODS

    section = PAGE.partition("\n### Expressions\n")[2].partition("\n##")[0]
    assert [name for name in (*FUNCTIONS, *METHODS) if f"`{name}`" not in section] == []


def test_every_field_of_a_dataset_is_described() -> None:
    from evalstore.files.datasets import FIELDS

    datasets = PAGE.partition("\n## Datasets\n")[2].partition("\n## ")[0]
    assert [name for name in FIELDS if f"`{name}`" not in datasets] == []
