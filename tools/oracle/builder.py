"""A workspace that is being made: its files are edited, and the program runs between the edits."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from evalstore.core.errors import EvalstoreError
from tests.builders import tree
from tools.oracle.commands import WIDTHS

if TYPE_CHECKING:
    from pathlib import Path

    from tools.oracle.programs import Place, Program

BEGIN = 1_893_844_800_000_000_000
"""When the first command of a workspace runs, in nanoseconds since 1970: a day in 2030.

Files are never newer than that, so nothing depends on when they are written.
"""
_PAUSE = 5 * 3600 * 1_000_000_000 + 1_000_000
"""Nanoseconds between two commands, so that their ages differ."""
_EXPECTED = frozenset({0, 1, 3, 4, 5})
"""Exit codes of a command that has done its work, or had nothing to do."""


class Builder:
    """A workspace and the program that works in it."""

    def __init__(self, program: Program, place: Place) -> None:
        self.program = program
        self.place = place
        self.now = BEGIN
        self.widths: Sequence[int] = WIDTHS
        """Columns in which its texts are compared."""

    @property
    def folder(self) -> Path:
        """The folder of the workspace."""
        return self.place.workspace

    def write(self, files: Mapping[str, str | bytes]) -> None:
        """Write files, with the folders they need."""
        tree(self.folder, files)

    def edit(self, path: str, old: str, new: str) -> None:
        """Replace a text of a file; it must be there."""
        text = (self.folder / path).read_text(encoding="utf-8")
        if old not in text:
            raise ValueError(f"'{old}' is not in {path}")
        self.write({path: text.replace(old, new)})

    def remove(self, path: str) -> None:
        """Remove a file."""
        (self.folder / path).unlink()

    def rename(self, old: str, new: str) -> None:
        """Rename a file."""
        (self.folder / new).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / old).rename(self.folder / new)

    def copy(self, old: str, new: str) -> None:
        """Copy a file."""
        shutil.copyfile(self.folder / old, self.folder / new)

    def commit(self) -> None:
        """Commit all files with git."""
        day = f"{self.now // 1_000_000_000} +0000"
        git = ("git", "-c", "user.name=Ada", "-c", "user.email=ada@example.org")
        for words in (("init", "-q"), ("add", "-A"), ("commit", "-q", "--allow-empty", "-m", day)):
            environment = {"PATH": os.environ["PATH"], "HOME": str(self.place.home)}
            environment |= {"GIT_AUTHOR_DATE": day, "GIT_COMMITTER_DATE": day}
            subprocess.run([*git, *words], cwd=self.folder, env=environment, check=True)

    def call(self, *arguments: str) -> None:
        """Run a command of the program; raises `EvalstoreError` when it cannot do its work."""
        code, out, err = self.program.run(self.place, arguments, now=self.now)
        self.now += _PAUSE
        if code not in _EXPECTED:
            said = (out + err).decode(errors="replace")
            raise EvalstoreError(f"evalstore {' '.join(arguments)}: exit code {code}\n{said}")

    def run(self, *arguments: str) -> None:
        """Run the tests, or some of them, whether or not they pass."""
        self.call("run", "--quiet", "--yes", "--fail-on", "none", *arguments)


Build = Callable[[Builder], None]
