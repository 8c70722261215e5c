"""The benches: each function measures, and yields lines of the table."""

from __future__ import annotations

import json
import re
import sqlite3
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from benches import rows, workspaces
from benches.browser import browser
from benches.datasets import datasets
from benches.engine import engine, script
from benches.exports import exports
from benches.measure import KIB, Cost, compare, program, repeat, run
from benches.million import million
from benches.pytest_sessions import pytest_sessions
from benches.report import report
from benches.sharing import sharing
from benches.simulation import simulation
from benches.statistics import statistics
from benches.table import Figure, figure
from benches.team import team
from benches.workspaces import ROWS

if TYPE_CHECKING:
    from pathlib import Path

_TYPER = """\
import typer

app = typer.Typer(add_completion=False)


@app.command()
def hello(name: str = "you") -> None:
    typer.echo(f"Hello {name}")


app()
"""
"""The smallest program with such an interface."""
_HEAVY = (
    *("litellm", "textual", "alembic", "sqlmodel"),
    *("pydantic", "jsonschema", "jinja2", "aiohttp"),
)
"""Packages that should be imported only where they are needed."""


@dataclass
class Setting:
    """Where and how often to measure."""

    folder: Path
    """Holds all that is written; removed afterwards."""
    sizes: tuple[int, int] = (1_000, 5_000)
    """Test files of the small and the large workspace."""
    times: int = 7
    """Repetitions of commands that change nothing; short ones run three times as often."""
    first_times: int = 3
    """Repetitions of commands that start with an empty store."""
    loads: tuple[int, ...] = (1_000, 5_000)
    """Questions that the engine asks, multiples of 100."""
    largest_load: int | None = 50_000
    """Questions for the measurement of memory; None leaves it out."""
    rows: int = 100_000
    """Rows of data that are only read."""
    asked_rows: int = 20_000
    """Rows of data that are asked and judged."""
    many_rows: int = 1_000_000
    """Rows of data with stored answers."""
    many_attempts: int = 1
    """Stored answers to each of them."""
    on_server: bool = False
    """Whether they are in PostgreSQL, and not in a SQLite file."""
    browsed: tuple[int, ...] = (1_000, 100_000)
    """Cases that are browsed."""
    reported: int = 10_000
    """Cases of the HTML report, a multiple of 20."""
    draws: int = 4_000
    """Pairs of runs that are simulated for each figure of the statistics."""
    simulated: tuple[int, int] = (100, 4_000)
    """Runners that are simulated, and the cases of their run."""
    team: int = 6_000
    """Items that several runners store."""
    known_sessions: int = 1_000_000
    """Sessions in the store of a run whose queries are watched."""
    notes: list[str] = field(default_factory=list)
    """Notes that are printed below the table."""

    @cached_property
    def tiny(self) -> Path:
        """A workspace with one test file, after a run."""
        return self._ran("tiny", 1)

    @cached_property
    def small(self) -> Path:
        """The small workspace, in git, after a complete run."""
        return self._ran("small", self.sizes[0])

    @cached_property
    def large(self) -> Path:
        """The large workspace, likewise."""
        return self._ran("large", self.sizes[1])

    def fresh(self, size: int) -> Path:
        """A workspace of a size without a store."""
        root = self.folder / f"fresh-{size}"
        if not root.exists():
            workspaces.make_workspace(root, size)
        workspaces.forget(root)
        return root

    def asked(self, count: int) -> Path:
        """A workspace with this many rows of data, after a complete run."""
        root = self.folder / f"asked-{count}"
        if not root.exists():
            rows.make_rows(root, count)
            run(program(root, "run", "--yes"))
            workspaces.settle()
        return root

    def _ran(self, name: str, size: int) -> Path:
        root = self.folder / name
        workspaces.make_workspace(root, size)
        _git(root, "init", "--quiet")
        _git(root, "add", ".")
        _git(
            root,
            "-c",
            "user.name=bench",
            "-c",
            "user.email=bench@localhost",
            "commit",
            "-qm",
            "all",
        )
        for _ in range(2):  # the second run has nothing to do
            run(program(root, "run"))
            workspaces.settle()
        _git(root, "status")
        return root


def _git(root: Path, *arguments: str) -> None:
    run(["git", "-C", str(root), *arguments])


# --- the benches


def startup(setting: Setting) -> Iterator[Figure]:
    """How long commands take to start."""
    script = setting.folder / "least.py"
    script.write_text(_TYPER, encoding="utf-8")
    least = [sys.executable, str(script)]
    for name in ("--help", "status", "log", "show @", "diff @~1 @", "stats", "run"):
        command = program(setting.tiny, *name.split())
        floor, cost = compare([least, command], 3 * setting.times)
        yield figure(
            "startup",
            name if name == "--help" else f"{name}, 1 file",
            1000 * cost.cpu,
            "ms",
            floor=1000 * floor.cpu,
            most={"run": None, "--help": 3}.get(name, 2),
        )
        packages = ", ".join(imported(command, setting.folder)) or "none of these"
        setting.notes.append(f"startup: of {', '.join(_HEAVY)}, {name} imports {packages}")
    least, command = ([sys.executable, "-c", code] for code in ("pass", "import evalstore"))
    floor, cost = compare([least, command], 3 * setting.times)
    yield figure("startup", "import evalstore: adds", 1000 * (cost.cpu - floor.cpu), "ms", most=50)


def imported(command: list[str], folder: Path) -> list[str]:
    """Which of the heavy packages a command imports."""
    report = folder / "imports.txt"
    tail = command[command.index("-C") :]
    run([sys.executable, "-X", "importtime", "-m", "evalstore", *tail], report)
    text = report.read_text(encoding="utf-8")
    return [name for name in _HEAVY if re.search(rf"\| +{name}$", text, re.MULTILINE)]


def idle(setting: Setting) -> Iterator[Figure]:
    """`status` and `run` when there is nothing to do, beside git's `status` of the same tree."""
    small, large = setting.sizes
    roots = (setting.small, setting.large)
    for name in ("status", "run"):
        commands = [
            *(["git", "-C", str(root), "status"] for root in roots),
            *(program(root, name) for root in roots),
        ]
        costs = compare(commands, setting.times * (3 if name == "status" else 1))
        least, slope = (
            1e6 * (costs[index + 1].cpu - costs[index].cpu) / (large - small) for index in (0, 2)
        )
        title = f"{name}, {large:,} files"
        yield figure("idle", title, costs[3].cpu, "s", most=1.5)
        yield figure("idle", f"{title}: memory", costs[3].memory / KIB**2, "MiB", most=150)
        yield figure("idle", f"{name}: each further file", slope, "us", floor=least)


def first(setting: Setting) -> Iterator[Figure]:
    """The first `run` of a workspace: every case is asked and judged."""
    costs: list[Cost] = []
    for size in setting.sizes:
        root = setting.fresh(size)

        def prepare(root: Path = root) -> None:
            workspaces.forget(root)

        costs.append(repeat(program(root, "run"), setting.first_times, prepare))
    small, large = setting.sizes
    cases = large * ROWS
    yield figure("first", f"run, {cases:,} cases: each", 1000 * costs[1].cpu / cases, "ms", most=3)
    yield figure("first", f"run, {cases:,} cases: memory", costs[1].memory / KIB**2, "MiB")
    growth = (costs[1].memory - costs[0].memory) / ((large - small) * ROWS) / KIB
    yield figure("first", "memory for each further case", growth, "KiB", most=10)


def growth(setting: Setting) -> Iterator[Figure]:
    """How much the store grows."""
    size = setting.sizes[0]
    root = setting.fresh(size)
    cases = size * ROWS
    run(program(root, "run"))
    before = store_size(root)
    texts = workspaces.text_of_session()
    yield figure(
        "growth", f"first run, {size:,} files: each case", before / cases, "bytes", floor=texts
    )
    run(program(root, "run", "--attempts", "2"))
    after = store_size(root)
    yield figure(
        "growth",
        f"a session and its evaluation ({texts} bytes of text)",
        (after - before) / cases,
        "bytes",
        most=2 * texts + 1024,
    )
    run(program(root, "run"))
    before = store_size(root)
    runs = 20
    for _ in range(runs):
        run(program(root, "run"))
    yield figure(
        "growth",
        f"a run with nothing to do (of {runs})",
        (store_size(root) - before) / runs,
        "bytes",
        most=4096,
    )


def store_size(root: Path) -> int:
    """Bytes of the pages of a store that nobody has open, its log included."""
    store = sqlite3.connect(root / ".evalstore/store.db")
    try:
        store.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        (count,) = store.execute("PRAGMA page_count").fetchone()
        (size,) = store.execute("PRAGMA page_size").fetchone()
    finally:
        store.close()
    return int(count) * int(size)


def edit(setting: Setting) -> Iterator[Figure]:
    """`run` after an edit of one instruction: nothing is asked, one answer is judged again."""
    root, size = setting.large, setting.sizes[1]
    report = setting.folder / "report.json"
    costs = []
    asked = judged = 0
    for edition in range(setting.times + 1):
        workspaces.edit_instruction(root, size // 2, edition)
        costs.append(run(program(root, "run", "--json"), report).cpu)
        result = json.loads(report.read_text(encoding="utf-8"))
        asked, judged = max(asked, result["asked"]), max(judged, result["judged"])
    yield figure("edit", "run after one edit: asked", asked, "", most=0)
    yield figure("edit", "run after one edit: judged", judged, "", most=1)
    costs = sorted(costs[1:])
    yield figure("edit", f"run after one edit, {size:,} files", costs[len(costs) // 2], "s")


BENCHES: dict[str, Callable[[Setting], Iterator[Figure]]] = {
    "startup": startup,
    "idle": idle,
    "edit": edit,
    "first": first,
    "growth": growth,
    "script": script,
    "engine": engine,
    "datasets": datasets,
    "export": exports,
    "pytest": pytest_sessions,
    "browser": browser,
    "report": report,
    "sharing": sharing,
    "statistics": statistics,
    "million": million,
    "team": team,
    "simulation": simulation,
}
LONG = frozenset({"million"})
"""Benches that take many minutes and much room on the disk: they run only when they are named."""
