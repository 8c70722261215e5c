"""Runs commands in process, as the program does, and reads what they print."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from evalstore.cli.main import main
from tests.builders import tree

SETTINGS = """\
candidates: [scripted/one]
evaluators: [scripted/judge]
"""
ONE = """\
id: scripted/one
provider: scripted
responses:
  - {when: Oslo, answer: Cold., usage: {inputTokens: 10, outputTokens: 2}}
  - {answer: Warm., usage: {inputTokens: 10, outputTokens: 2}}
costs: [{costPerPromptToken: 0.001, costPerCompletionToken: 0.01}]
"""
JUDGE = """\
id: scripted/judge
provider: scripted
responses:
  - {when: 'must be warm.*Cold', answer: {pass: false, feedback: It is cold there.}}
  - {answer: {pass: true, feedback: ""}}
"""
WEATHER = """\
---
tags: [weather]
replacements:
  city: [Oslo, Rome]
---

# 👤

How is {{city}}?

---

The answer must be warm.
"""


@dataclass(frozen=True)
class Ran:
    """What a command did; ids and times are replaced by words."""

    exit_code: int
    stdout: str
    stderr: str


Evalstore = Callable[..., Ran]


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace with one test of two rows: the row Oslo fails."""
    folder = tree(
        tmp_path / "w",
        {
            "evalstore.yaml": SETTINGS,
            "models/one.yaml": ONE,
            "models/judge.yaml": JUDGE,
            "tests/weather.md": WEATHER,
        },
    )
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def evalstore(capsys: pytest.CaptureFixture[str]) -> Evalstore:
    """Run one command."""

    def run(*argv: str) -> Ran:
        exit_code = main(argv)
        printed = capsys.readouterr()
        return Ran(exit_code, normalise(printed.out), normalise(printed.err))

    return run


def normalise(text: str) -> str:
    """The text with ids and times replaced."""
    text = re.sub(r"\b[0-9a-f]{32}\b", "<id>", text)
    text = re.sub(r"\b(?=[0-9a-f]*[0-9])(?=[0-9a-f]*[a-f0-9])[0-9a-f]{8}\b", "<short>", text)
    return re.sub(r"\bjust now\b|\b\d+ seconds ago\b", "<when>", text)


@pytest.fixture
def documents(capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    """Run one command with `--json` and read its document."""

    def run(*argv: str) -> Any:
        main([argv[0], "--json", *argv[1:]])
        return json.loads(capsys.readouterr().out)

    return run
