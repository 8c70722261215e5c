"""Runs commands in process, as the program does, and reads what they print."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from evalstore.core.values import Reply, Request, Usage
from evalstore.interfaces.cli import output
from evalstore.interfaces.cli.main import main
from evalstore.providers.base import ProviderError
from evalstore.runs.execution import model_calls
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
GROUP = """\
---
replacements:
  city: [Oslo, Rome]
---

# 👤

How is {{city}}?

---

~~~checks
- {allEqual: , scope: group}
~~~
"""
"""Two rows that are judged together."""
WEATHER_WORKSPACE = {
    "evalstore.yaml": SETTINGS,
    "models/one.yaml": ONE,
    "models/judge.yaml": JUDGE,
    "tests/weather.md": WEATHER,
}
"""One test of two rows, of which Oslo fails."""


@dataclass(frozen=True)
class Ran:
    """What a command did; ids and times are replaced by words."""

    exit_code: int
    stdout: str
    stderr: str


Evalstore = Callable[..., Ran]


@pytest.fixture(autouse=True)
def _short_delays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have failed calls tried again at once: a command that retries takes a second otherwise."""
    monkeypatch.setattr(model_calls, "_FIRST_DELAY", 0.001)


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace with one test of two rows: the row Oslo fails."""
    folder = tree(tmp_path / "w", WEATHER_WORKSPACE)
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def evalstore(capsys: pytest.CaptureFixture[str]) -> Evalstore:
    """Run one command."""

    def run(*argv: str) -> Ran:
        output._warned.clear()  # a process shows each warning once
        exit_code = main(argv)
        printed = capsys.readouterr()
        return Ran(exit_code, normalise(printed.out), normalise(printed.err))

    return run


def normalise(text: str) -> str:
    """The text with ids and times replaced."""
    text = re.sub(r"\b[0-9a-f]{32}\b", "<id>", text)
    text = re.sub(r"\b(?=[0-9a-f]*[a-f0-9])[0-9a-f]{8}\b", "<short>", text)
    return re.sub(
        r"\b(\d{4}-\d\d-\d\d \d\d:\d\d \()?(just now|\d+ (second|minute)s? ago)\b(?(1)\))",
        "<when>",
        text,
    )


@dataclass
class Echo:
    """A provider in memory that answers with the last message, unless `reply` says otherwise."""

    reply: Callable[[str], str] = lambda text: text
    asked: list[str] = field(default_factory=list)
    """The last message of each call, in order."""
    failing: str | None = None
    """A call that shows this text fails."""

    async def ask(self, request: Request, *, timeout: float) -> Reply:
        text = request.messages[-1].text
        if self.failing is not None and self.failing in text:
            raise ProviderError("unsupported", "nobody is there")
        self.asked.append(text)
        return Reply(self.reply(text), finish_reason="stop", usage=Usage(1, 1))

    async def close(self) -> None:
        """Nothing is open."""


@pytest.fixture
def echo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Echo]:
    """A workspace without tests in the current folder, whose only candidate is an echo."""
    model = "id: scripted/one\nprovider: scripted\nresponses: [{answer: it is not asked}]\n"
    settings = {"evalstore.yaml": "candidates: [scripted/one]\n", "models/one.yaml": model}
    monkeypatch.chdir(tree(tmp_path / "echo", settings))
    provider = Echo()
    with mock.patch("evalstore.runs.execution.key_access.open_provider", return_value=provider):
        yield provider


@pytest.fixture
def documents(capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    """Run one command with `--json` and read its document."""

    def run(*argv: str) -> Any:
        main([argv[0], "--json", *argv[1:]])
        return json.loads(capsys.readouterr().out)

    return run
