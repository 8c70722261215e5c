"""A corpus: workspaces with their stores, and what a program says about each; one file for each.

The file of a workspace is a zip archive: `workspace.tar` has the workspace and the home of its
user, `commands.json` the command lines and the time at which they run, and `said/NUMBER` what the
program said.
"""

from __future__ import annotations

import io
import json
import queue
import shutil
import tarfile
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from evalstore.files.atomic_write import write_whole
from tools.oracle.builder import Build, Builder
from tools.oracle.commands import Command, commands_for
from tools.oracle.masks import masked, stored_ids
from tools.oracle.programs import Place, Program, place_in

if TYPE_CHECKING:
    import re
    from pathlib import Path

_TREE = "workspace.tar"
_COMMANDS = "commands.json"
_HOUR = 3600 * 1_000_000_000


@dataclass(frozen=True, slots=True)
class Difference:
    """A command of which two programs say something else."""

    workspace: str
    command: Command
    before: str
    after: str


class Programs:
    """Several processes of a program, each with a place of its own."""

    def __init__(self, path: Path, folder: Path, count: int) -> None:
        self._stack = ExitStack()
        self._count = count
        self._idle: queue.Queue[tuple[Program, Place]] = queue.Queue()
        for number in range(count):
            program = self._stack.enter_context(Program(path))
            self._idle.put((program, place_in(folder, f"place{number}")))

    def __enter__(self) -> Programs:
        """Return them."""
        return self

    def __exit__(self, *_error: object) -> None:
        """End all."""
        self._stack.close()

    @contextmanager
    def one(self) -> Iterator[tuple[Program, Place]]:
        """A process that is idle, and its place."""
        taken = self._idle.get()
        try:
            yield taken
        finally:
            self._idle.put(taken)

    def ask(
        self, source: Place, commands: list[Command], now: int, stored: frozenset[str]
    ) -> Iterator[str]:
        """What the program says about a copy of a workspace, to each command."""
        with ThreadPoolExecutor(self._count) as pool:
            yield from pool.map(lambda command: self._said(source, command, now, stored), commands)

    def _said(self, source: Place, command: Command, now: int, stored: frozenset[str]) -> str:
        with self.one() as (program, place):
            shutil.rmtree(place.base)
            shutil.copytree(source.base, place.base)
            parts = []
            for words in command.words(place):
                code, out, err = program.run(place, words, now=now, columns=command.columns)
                parts += [("exit code", b"%d" % code), ("output", out), ("error output", err)]
            parts += _files(place.out)
            return "".join(
                f"--- {name}\n{masked(command.line, part, place, stored)}\n"
                for name, part in parts
                if part
            )


def _files(folder: Path) -> Iterator[tuple[str, bytes]]:
    """The files below a folder, and those in archives."""
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        name = path.relative_to(folder).as_posix()
        if not zipfile.is_zipfile(path):
            yield name, path.read_bytes()
            continue
        with zipfile.ZipFile(path) as archive:
            for entry in sorted(archive.namelist()):
                yield f"{name}: {entry}", archive.read(entry)


def make(programs: Programs, path: Path, build: Build, work: Path, wanted: re.Pattern[str]) -> int:
    """Make a workspace and record what a program says about it; returns to how many commands."""
    with programs.one() as (program, place):
        shutil.rmtree(place.base)
        builder = Builder(program, place.make())
        build(builder)
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as tar:
            for part in (place.workspace, place.home):
                tar.add(part, part.name)
        now = builder.now + _HOUR
        source = _unpacked(packed.getvalue(), work)
        commands = [
            command
            for command in commands_for(program, source, now, builder.widths)
            if wanted.search(str(command))
        ]
    source = _unpacked(packed.getvalue(), work)
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(_TREE, packed.getvalue())
        lines = {
            "now": now,
            "commands": [asdict(command) for command in commands],
            "ids": (ids := stored_ids(source.workspace / ".evalstore/store.db")),
        }
        archive.writestr(_COMMANDS, json.dumps(lines, indent=1))
        for number, said in enumerate(programs.ask(source, commands, now, frozenset(ids))):
            archive.writestr(f"said/{number}", said)
    write_whole(path, written.getvalue())
    return len(commands)


def compare(
    programs: Programs, path: Path, work: Path, wanted: re.Pattern[str]
) -> Iterator[Difference | None]:
    """Yield for each command what a program says otherwise about a workspace."""
    with zipfile.ZipFile(path) as archive:
        recorded = json.loads(archive.read(_COMMANDS))
        source = _unpacked(archive.read(_TREE), work)
        commands = {
            number: command
            for number, fields in enumerate(recorded["commands"])
            if wanted.search(str(command := Command(**fields)))
        }
        ids = frozenset(recorded["ids"])
        said = programs.ask(source, list(commands.values()), recorded["now"], ids)
        for (number, command), after in zip(commands.items(), said, strict=True):
            before = archive.read(f"said/{number}").decode()
            same = before == after
            yield None if same else Difference(path.stem, command, before, after)


def _unpacked(packed: bytes, work: Path) -> Place:
    """A place with a workspace that was packed."""
    place = place_in(work, "kept")
    shutil.rmtree(place.base)
    place.make()
    with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
        tar.extractall(place.base, filter="data")
    return place
