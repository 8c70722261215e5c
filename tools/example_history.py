"""The example workspace with a history: runs with edits between them, for pictures."""

from __future__ import annotations

import contextlib
import io
import shutil
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

from evalstore.files.atomic_write import write_whole
from evalstore.interfaces.cli.main import main as evalstore

_EXAMPLE = Path(__file__).parent.parent / "example"
EDITS = (
    ("deposits may differ more", "deposit.md", "max: 20,", "max: 60,"),
    ("reasons required", "late.md", 'say "20 euros"', 'say "20 euros" and must give a reason'),
    ("shorter greetings", "greeting.md", "at most ten words", "at most five words"),
    ("greetings may be longer", "greeting.md", "at most five words", "at most twenty words"),
    (
        "helmets on Saturday",
        "saturday.md",
        "must we bring the bikes back",
        "must we bring the bikes back and do you rent helmets",
    ),
)
"""The runs after the first: the message, and the edit before it of a file in `tests/`."""
PENDING = ("greeting.md", "English", "Italian")
"""The edit after the last run."""


def build_history(place: Path) -> Path:
    """Create the workspace `bikes` in an empty folder: runs with edits, and a pending edit."""
    workspace = place / "bikes"
    shutil.copytree(_EXAMPLE, workspace, ignore=shutil.ignore_patterns(".evalstore"))
    _run(workspace, "first")
    for message, *change in EDITS:
        edit(workspace, *change)
        _run(workspace, message)
    edit(workspace, *PENDING)
    return workspace


def edit(workspace: Path, name: str, old: str, new: str) -> None:
    """Replace a text in a test file; it must be there."""
    path = workspace / "tests" / name
    text = path.read_text(encoding="utf-8")
    if old not in text:
        raise ValueError(f"'{old}' is not in {name}")
    write_whole(path, text.replace(old, new).encode())


@contextlib.contextmanager
def ages_are_made_up() -> Iterator[None]:
    """Let everything be of two minutes ago."""
    with (
        mock.patch("evalstore.interfaces.tui.render.verdicts.ago", return_value="2 minutes ago"),
        mock.patch("evalstore.results.answer.answer_text.ago", return_value="2 minutes ago"),
        mock.patch("evalstore.results.answer.answer_text.ago", return_value="2 minutes ago"),
    ):
        yield


def _run(workspace: Path, message: str) -> None:
    with contextlib.redirect_stdout(io.StringIO()):
        evalstore(["-C", str(workspace), "run", "--quiet", "--message", message])
