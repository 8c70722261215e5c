"""The example workspace with a history: runs with edits between them, for pictures."""

from __future__ import annotations

import contextlib
import io
import shutil
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

from evalstore.cli.main import main as evalstore
from evalstore.files.atomic_write import write_whole

_EXAMPLE = Path(__file__).parent.parent / "example"


def build_history(place: Path) -> Path:
    """Create the workspace `bikes` in an empty folder: two runs, and an edit after them."""
    workspace = place / "bikes"
    shutil.copytree(_EXAMPLE, workspace, ignore=shutil.ignore_patterns(".evalstore"))
    _run(workspace, "first")
    edit(workspace, "tests/late.md", 'say "20 euros"', 'say "20 euros" and must give a reason')
    _run(workspace, "reasons are wanted")
    edit(workspace, "tests/greeting.md", "English", "Italian")
    return workspace


def edit(workspace: Path, file: str, old: str, new: str) -> None:
    """Replace a text of a file."""
    text = (workspace / file).read_text(encoding="utf-8")
    write_whole(workspace / file, text.replace(old, new).encode())


@contextlib.contextmanager
def ages_are_made_up() -> Iterator[None]:
    """Let everything be of two minutes ago."""
    with (
        mock.patch("evalstore.tui.render.verdicts.ago", return_value="2 minutes ago"),
        mock.patch("evalstore.operations.views.answer_text.ago", return_value="2 minutes ago"),
    ):
        yield


def _run(workspace: Path, message: str) -> None:
    with contextlib.redirect_stdout(io.StringIO()):
        evalstore(["-C", str(workspace), "run", "--quiet", "--message", message])
