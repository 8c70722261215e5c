"""A workspace in which every command has something to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.builders import tree
from tests.cli.conftest import JUDGE, ONE, SETTINGS, WEATHER

CALLS = {
    "grep": ("warm",),
    "import": ("openai-evals", "source/capitals.jsonl"),
    "label": ("tests/weather.md::city=Rome", "pass"),
    "trust": ("check.py",),
}
"""What each command is called with, if it needs anything."""


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace with one test of two rows, something to import and something to trust."""
    folder = tree(
        tmp_path / "w",
        {
            "evalstore.yaml": SETTINGS,
            "models/one.yaml": ONE,
            "models/judge.yaml": JUDGE,
            "tests/weather.md": WEATHER,
            "source/capitals.jsonl": '{"input": "Capital of Norway?", "ideal": "Oslo"}\n',
            "check.py": "def check(answer):\n    return True\n",
        },
    )
    monkeypatch.chdir(folder)
    return folder
