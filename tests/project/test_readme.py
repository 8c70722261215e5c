"""The shell sessions of README.md are real.

`python tests/project/test_readme.py` writes their output into it again. A block after
`<!-- run -->` continues where the one before it ended; `<!-- run fresh -->` starts with a new
copy of the example. The block after `<!-- write PATH -->` becomes a file of that copy.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from unittest import mock

from evalstore.cli.main import main

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
BLOCK = re.compile(r"(<!-- run( fresh)? -->\n```console\n)(.*?)(?=^```$)", re.DOTALL | re.MULTILINE)
FILE = re.compile(r"<!-- write (\S+) -->\n(`{3,})\w*\n(.*?)^\2$", re.DOTALL | re.MULTILINE)
ID = re.compile(r"\b(?:[0-9a-f]{32}|[0-9a-f]{8})\b")
AGO = re.compile(r"just now|\b\d+ (?:second|minute|hour|day)s? ago|\byesterday\b")
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
    """Runs commands in a copy of the example."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.workspace = folder
        self.copies = 0
        self.environment = {"HOME": str(folder), "LANG": "C.UTF-8"}

    def start_anew(self) -> None:
        """Go on in a new copy of the example."""
        self.copies += 1
        self.workspace = self.folder / f"example{self.copies}"
        shutil.copytree(
            ROOT / "example", self.workspace, ignore=shutil.ignore_patterns(".evalstore")
        )

    def run(self, command: str) -> Step:
        """Run one command; what it says on stderr stands in its output too.

        `evalstore` runs in this process, which saves its start; all else in a shell.
        """
        ours, pipe, rest = command.partition(" | ")
        name, *arguments = shlex.split(ours)
        if name != "evalstore":
            return Step(command, self._in_shell(command))
        messages = io.StringIO()
        with (
            contextlib.chdir(self.workspace),
            mock.patch.dict(os.environ, self.environment),
            contextlib.redirect_stdout(messages),
            contextlib.redirect_stderr(messages),
        ):
            main(arguments)
        return Step(
            command, self._in_shell(rest, messages.getvalue()) if pipe else messages.getvalue()
        )

    def _in_shell(self, command: str, given: str = "") -> str:
        done = subprocess.run(
            ["sh", "-c", command],
            input=given,
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

    def renew(found: re.Match[str]) -> str:
        if found[2]:
            shell.start_anew()
        return found[1] + show([shell.run(step.command) for step in steps_of(found[3])])

    parts, end = [], 0
    for block in sorted((*BLOCK.finditer(text), *FILE.finditer(text)), key=re.Match.start):
        parts.append(text[end : block.start()])
        if block.re is FILE:
            (shell.workspace / block[1]).write_text(block[3], encoding="utf-8")
            parts.append(block[0])
        else:
            parts.append(renew(block))
        end = block.end()
    return "".join(parts) + text[end:]


def normalised(text: str) -> str:
    """The sessions of a text; ids become numbers in the order in which they appear."""
    numbers: dict[str, int] = {}

    def name(found: re.Match[str]) -> str:
        return f"<id {numbers.setdefault(found[0][:8], len(numbers) + 1)}>"

    sessions = "\n".join(found[3] for found in BLOCK.finditer(text))
    return DURATION.sub("<duration>", AGO.sub("<ago>", ID.sub(name, sessions)))


def test_the_sessions_of_the_readme_print_what_it_says(tmp_path: Path) -> None:
    written = README.read_text(encoding="utf-8")

    assert len(BLOCK.findall(written)) == written.count("<!-- run") > 0
    assert len(FILE.findall(written)) == written.count("<!-- write") > 0
    assert normalised(replay(written, tmp_path)) == normalised(written)


def test_every_file_the_readmes_link_to_is_there() -> None:
    for readme in (README, ROOT / "example" / "README.md"):
        links = re.findall(r"\]\(([^)#:]+)\)", readme.read_text(encoding="utf-8"))
        missing = [link for link in links if not (readme.parent / link).exists()]
        assert not missing, f"{readme}: {missing}"


def write_again() -> None:
    """Bring the sessions in README.md up to date."""
    with tempfile.TemporaryDirectory() as folder:
        text = replay(README.read_text(encoding="utf-8"), Path(folder))
    README.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write_again()
