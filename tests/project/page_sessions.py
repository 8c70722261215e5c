"""Runs the shell sessions of a page and shows what they print now.

`<!-- start -->` goes on in a new empty folder, `<!-- start example -->` in a new copy of the
example. A block after `<!-- run -->` continues where the one before it ended; `<!-- run fresh -->`
means both. The block after `<!-- write PATH -->` becomes a file of the folder. After
`<!-- DAYS days later -->` evalstore's clock is ahead.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from unittest import mock

from evalstore.core import clock
from evalstore.interfaces.cli.main import main

ROOT = Path(__file__).parents[2]
PAGES = (
    ROOT / "README.md",
    ROOT / "docs/example.md",
    ROOT / "docs/tutorial.md",
    ROOT / "docs/export.md",
    ROOT / "docs/questions.md",
    ROOT / "docs/reports.md",
    ROOT / "docs/scripting.md",
    ROOT / "docs/sharing.md",
    ROOT / "docs/troubleshooting.md",
    *sorted((ROOT / "docs/recipes").glob("*.md")),
)
"""The pages whose sessions are run."""
BLOCK = re.compile(r"(<!-- run( fresh)? -->\n```console\n)(.*?)(?=^```$)", re.DOTALL | re.MULTILINE)
FILE = re.compile(r"<!-- write (\S+) -->\n(`{3,})\w*\n(.*?)^\2$", re.DOTALL | re.MULTILINE)
LATER = re.compile(r"^<!-- (\d+) days later -->$", re.MULTILINE)
START = re.compile(r"^<!-- start( example)? -->$", re.MULTILINE)
ID = re.compile(r"\b(?:[0-9a-f]{32}|[0-9a-f]{8})\b")
AGO = re.compile(
    r"just now|\b\d+ (?:second|minute|hour|day)s? ago|\byesterday\b|\d{4}-\d\d-\d\d \d\d:\d\d UTC"
)
SIZE = re.compile(r"\b\d[\d.,]* (?:bytes|kB|MB)(?= *$| -> |\) are)", re.MULTILINE)
"""What was sent: ids and times are compressed better or worse."""
DURATION = re.compile(r"\b\d+(?:\.\d+)? ?(?:ms|s)\b")


class Step(NamedTuple):
    """A command and what it printed."""

    command: str
    output: str


def steps_of(block: str) -> Iterator[Step]:
    """The commands of a session, with the lines up to the next one."""
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        yield Step(command, output)


def show(steps: list[Step]) -> str:
    """A session as it is written."""
    return "".join(f"$ {command}\n{output}" for command, output in steps)


class Shell:
    """Runs commands in the workspace of a page."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.workspace = folder
        self.folders = 0
        self.days = 0
        programs = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        self.environment = {
            "COLUMNS": "80",  # the width of the code blocks of the site
            "HOME": str(folder),
            "LANG": "C.UTF-8",
            "PATH": programs,
        }

    def start(self, *, with_example: bool) -> None:
        """Go on in a new folder: an empty one, or a copy of the example."""
        self.folders += 1
        self.workspace = self.folder / f"workspace{self.folders}"
        if with_example:
            stored = shutil.ignore_patterns(".evalstore")
            shutil.copytree(ROOT / "example", self.workspace, ignore=stored)
        else:
            self.workspace.mkdir()

    def write(self, path: str, text: str) -> None:
        """Write a file of the workspace."""
        target = self.workspace / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")

    def run(self, command: str) -> Step:
        """Run one command; its output includes what it prints to stderr.

        `evalstore` runs in this process, which saves its start; all else in a shell.
        """
        program, pipe, rest = command.partition(" | ")
        name, *arguments = shlex.split(program, comments=True)
        if name == "evalstore" and ">" in arguments:
            raise ValueError(f"'{command}': what evalstore prints is only piped, not redirected")
        if name == "cd":
            self.workspace = (self.workspace / arguments[0]).resolve()
            return Step(command, "")
        if name != "evalstore":
            return Step(command, self._in_shell(command))
        printed = io.StringIO()
        with (
            mock.patch.object(clock, "now", self._now),
            contextlib.chdir(self.workspace),
            mock.patch.dict(os.environ, self.environment),
            contextlib.redirect_stdout(printed),
            contextlib.redirect_stderr(printed),
        ):
            code = main(arguments)
        if pipe:
            return Step(command, self._in_shell(rest, printed.getvalue()))
        self.environment["LAST"] = str(code)
        return Step(command, printed.getvalue())

    def _now(self) -> int:
        return time.time_ns() // 1000 + self.days * 86_400_000_000

    def _in_shell(self, command: str, standard_input: str = "") -> str:
        done = subprocess.run(
            ["sh", "-c", command.replace("$?", "$LAST")],
            input=standard_input,
            cwd=self.workspace,
            env=os.environ | self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            timeout=60,
            check=False,
        )
        return done.stdout


def replay(text: str, folder: Path) -> str:
    """The text with the output of every session as it is now."""
    shell = Shell(folder)
    parts, end = [], 0
    blocks = (match for pattern in (BLOCK, FILE, LATER, START) for match in pattern.finditer(text))
    for block in sorted(blocks, key=re.Match.start):
        parts.append(text[end : block.start()])
        end = block.end()
        if block.re is BLOCK:
            if block[2]:
                shell.start(with_example=True)
            parts.append(block[1] + show([shell.run(step.command) for step in steps_of(block[3])]))
            continue
        parts.append(block[0])
        if block.re is LATER:
            shell.days += int(block[1])
        elif block.re is START:
            shell.start(with_example=bool(block[1]))
        else:
            shell.write(block[1], block[3])
    return "".join(parts) + text[end:]


def normalised(text: str) -> str:
    """The sessions of a text; ids become numbers in the order in which they appear."""
    numbers: dict[str, int] = {}

    def name(match: re.Match[str]) -> str:
        return f"<id {numbers.setdefault(match[0][:8], len(numbers) + 1)}>"

    sessions = "\n".join(match[3] for match in BLOCK.finditer(text))
    named = SIZE.sub("<size>", ID.sub(name, sessions))
    return DURATION.sub("<duration>", AGO.sub("<ago>", named))
