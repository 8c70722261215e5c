"""The examples of docs/applications.md run as they are."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from evalstore.core.values import OutgoingMessage, Request, Text
from evalstore.files.processes.application_calls import _KEPT
from evalstore.interfaces.cli.main import main
from evalstore.providers.applications import _KEYS, encode_call
from tests.builders import tree

PAGE = (Path(__file__).parents[2] / "docs" / "applications.md").read_text(encoding="utf-8")
EXAMPLE = re.compile(r"^```\w+\n# (\S+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
TEST = "# 👤\n\nMay I send it back?\n\n---\n\n```checks\n- contains: 30 days\n```\n"


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The workspace of the page, with the files that it only mentions."""
    monkeypatch.setenv("EVALSTORE_TRUST_FILE", str(tmp_path / "trusted"))
    files = dict(EXAMPLE.findall(PAGE))
    assert sorted(files) == [
        "apps/support_bot.py",
        "evalstore.yaml",
        "models/support_bot.yaml",
        "models/support_cli.yaml",
    ]
    folder = tree(
        tmp_path / "w",
        {
            **files,
            "apps/search.py": "def find_articles(question, articles):\n    return articles[0]\n",
            "apps/articles.json": '["Within 30 days."]',
            "bot": f"#!{sys.executable}\nimport json, sys\njson.load(sys.stdin)\n"
            "print('30 days, ', *sys.argv[1:])\n",
            "tests/refund.md": TEST,
        },
    )
    monkeypatch.chdir(folder)
    return folder


def test_the_examples_run(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "-m", "support_bot", "-m", "support_cli"]) == 3
    waiting = capsys.readouterr().out
    assert "runs 'apps/support_bot.py:answer', which is not trusted on this machine" in waiting
    assert main(["trust", "models/support_bot.yaml", "models/support_cli.yaml"]) == 0
    capsys.readouterr()
    assert main(["run", "--json", "-m", "support_bot", "-m", "support_cli"]) == 0
    spending = json.loads(capsys.readouterr().out)["spending"]
    assert [spent["cost"] for spent in spending] == [0.0004, None]


def test_an_edit_is_explained_as_on_the_page(
    desk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["trust", "models/support_bot.yaml"])
    main(["run"])
    (desk / "apps/search.py").write_text("def find_articles(question, articles): return ''\n")
    main(["trust", "models/support_bot.yaml"])
    capsys.readouterr()
    main(["status", "--explain"])
    line = next(line for line in PAGE.splitlines() if "the candidate's code changed" in line)
    assert f"    {line}\n" in capsys.readouterr().out


def test_the_document_that_a_program_reads_is_as_on_the_page() -> None:
    document = re.search(r"^```json\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    assert document
    hi = OutgoingMessage("user", (Text("Hi"),))
    assert encode_call(Request("bot", (hi,), temperature=0.5)) == json.loads(document[1])


def test_the_keys_of_an_answer_and_the_variables_are_listed() -> None:
    assert [key for key in _KEYS if f"`{key}`" not in PAGE] == []
    trust = (Path(__file__).parents[2] / "docs" / "trust.md").read_text(encoding="utf-8")
    guaranteed = trust.partition("\n## Applications\n")[2]
    assert [name for name in _KEPT if f"`{name}`" not in guaranteed] == []
