"""A workspace with a run, to be browsed."""

from __future__ import annotations

from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from shutil import copytree

import pytest

from evalstore.interfaces.cli.main import main
from tests.builders import tree
from tests.interfaces.cli.conftest import JUDGE, ONE, SETTINGS, WEATHER

HOSTILE = "[/] [bold red]no markup[/] [0] [unclosed \x1b[31mred\x1b[0m 漢字 שלום \u202e"
"""What a model may say: it is text and nothing else."""
GREETING = """\
---
tags: [manners]
---

# 👤

Say hello.

---

~~~checks
- contains: hello
~~~
"""


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The workspace of all tests, after its run."""
    return prepare(tmp_path_factory.mktemp("prepared"))


def prepare(folder: Path) -> Path:
    """Write the workspace of all tests into an empty folder, and run it."""
    two = ONE.replace("scripted/one", "scripted/two").replace("Cold.", "Not warm.")
    tree(
        folder,
        {
            "evalstore.yaml": SETTINGS.replace("[scripted/one]", "[scripted/one, scripted/two]")
            + "confirmAbove: 1000\n",
            "models/one.yaml": ONE,
            "models/two.yaml": two,
            "models/judge.yaml": JUDGE,
            "tests/weather.md": WEATHER,
            "tests/greeting.md": GREETING,
        },
    )
    with redirect_stdout(StringIO()):
        assert main(["-C", str(folder), "run", "--quiet"]) == 1
    return folder


@pytest.fixture
def workspace(prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two test files, two candidates, one run: Oslo fails by its judge, the greeting by a check."""
    folder = tmp_path / "w"
    copytree(prepared, folder)
    monkeypatch.chdir(folder)
    return folder


def run_with_hostile_answers(workspace: Path) -> None:
    """Ask the first candidate again; each of its answers is `HOSTILE` now."""
    answer = HOSTILE.replace("\x1b", "\\e").replace("\u202e", "\\u202e")
    model = f'id: scripted/one\nprovider: scripted\nresponses: [{{answer: "{answer}"}}]\n'
    tree(workspace, {"models/one.yaml": model})
    main(["run", "--quiet", "--refresh"])
