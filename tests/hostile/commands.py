"""A workspace of one test in the current folder, and commands that are run in it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from evalstore.interfaces.cli.main import main
from tests.builders import tree

SETTINGS = "candidates: [one]\n"
MODEL = "id: one\nprovider: scripted\nresponses: [{answer: Hello}]\n"
HELLO = "# 👤\n\nHello\n\n---\n\n~~~checks\n- contains: Hello\n~~~\n"

Run = Callable[..., tuple[int, str]]


@pytest.fixture
def root(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace in the current folder; there is something outside it."""
    tree(folder, {"evalstore.yaml": SETTINGS, "models/one.yaml": MODEL, "tests/a.md": HELLO})
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Run:
    """Run one command: its exit code, and all that it printed."""

    def command(*argv: str) -> tuple[int, str]:
        code = main(argv)
        printed = capfd.readouterr()
        return code, printed.out + printed.err

    return command
