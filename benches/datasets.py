"""Measures rows of data: reading them, reading them again, and judging stored answers."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from statistics import median
from typing import TYPE_CHECKING

from benches import rows, workspaces
from benches.measure import KIB, Cost, compare, program, repeat, run
from benches.table import Figure, figure

if TYPE_CHECKING:
    from pathlib import Path

    from benches.benches import Setting

_SECONDS, _MIB = 3, 300
"""The targets of a command when nothing has changed: time and memory."""
_ROW, _JUDGEMENT = 50, 100
"""The targets in microseconds of one core: 20,000 rows and 10,000 verdicts in a second."""
_ROW_TO_FLOOR = 6


def datasets(setting: Setting) -> Iterator[Figure]:
    """Rows of data, each with a check."""
    yield from _new(setting)
    yield from _again(setting)
    yield from _judging(setting)
    yield from _langbite(setting)


def _new(setting: Setting) -> Iterator[Figure]:
    """`check` without a store: every row is read, filled and hashed, but not stored."""
    many, single = setting.folder / "rows", setting.folder / "row"
    rows.make_rows(many, setting.rows)
    rows.make_rows(single, 1)
    floor = [sys.executable, "-m", "benches.rows_floor"]
    data = [str(root / "tests/data/capitals.jsonl") for root in (many, single)]
    commands = [[*floor, path] for path in data] + [
        program(root, "check") for root in (many, single)
    ]
    costs = compare(commands, setting.first_times)
    least, each = (
        1e6 * (costs[index].cpu - costs[index + 1].cpu) / (setting.rows - 1) for index in (0, 2)
    )
    title = f"check, {setting.rows:,} new rows: each"
    yield figure("datasets", title, each, "us", most=_ROW)
    yield figure(
        "datasets", f"{title}, beside the floor", each, "us", floor=least, most=_ROW_TO_FLOOR
    )
    setting.notes.append(f"datasets: {1e6 / each:,.0f} new rows in a second of one core")


def _again(setting: Setting) -> Iterator[Figure]:
    """`check` with a store, which has the file from the second time on."""
    root = setting.folder / "rows"
    first, started = (_first_check(setting.folder / name) for name in ("rows", "row"))
    each = 1e6 * (first.cpu - started.cpu) / (setting.rows - 1)
    workspaces.settle()
    yield figure("datasets", f"check, {setting.rows:,} new rows, stored: each", each, "us")
    cost = repeat(program(root, "check"), setting.times)
    yield from _quiet(f"check again, {setting.rows:,} rows", cost)
    run(program(root, "status"))
    cost = repeat(program(root, "status"), setting.times)
    yield from _quiet(f"status again, {setting.rows:,} rows that nobody was asked", cost)


def _first_check(root: Path) -> Cost:
    """The cost of reading and storing a workspace."""
    run(program(root, "init"))
    return run(program(root, "check"))


def _quiet(title: str, cost: Cost) -> Iterator[Figure]:
    yield figure("datasets", title, cost.cpu, "s", most=_SECONDS)
    yield figure("datasets", f"{title}: memory", cost.memory / KIB**2, "MiB", most=_MIB)


def _judging(setting: Setting) -> Iterator[Figure]:
    """`status` with nothing to do, and `run` after an edit of the check of all rows.

    The cost of a run that judges one answer is subtracted: reading, planning and reporting.
    """
    count = setting.asked_rows
    root = setting.folder / "asked-rows"
    rows.make_rows(root, count)
    rows.write_question(root)
    run(program(root, "run"))
    workspaces.settle()
    first = run(program(root, "status"))  # caches its answer
    yield from _quiet(f"status after the run, {count:,} rows", first)
    yield from _quiet(
        f"status again, {count:,} rows", repeat(program(root, "status"), setting.times)
    )
    judging, started = [], []
    for edition in range(1, setting.first_times + 1):
        rows.write_check(root, edition)
        judging.append(_run(root, setting, judged=count))
        rows.write_question(root, edition)
        started.append(_run(root, setting, judged=1))
    rest = median(started)
    each = median(cpu - rest for cpu in judging) / (count - 1)
    title = f"run after an edit of the check, {count:,} rows"
    yield figure("datasets", f"{title}: each judgement", 1e6 * each, "us", most=_JUDGEMENT)
    yield figure("datasets", f"{title}: all else", 1e6 * rest / count, "us")
    setting.notes.append(f"datasets: {1 / each:,.0f} verdicts in a second of one core")


def _run(root: Path, setting: Setting, *, judged: int) -> float:
    """The CPU of a run that must judge so many stored answers."""
    report = setting.folder / "report.json"
    run(program(root, "check"))  # reads and stores what is new
    cost = run(program(root, "run", "--json"), report)
    result = json.loads(report.read_text(encoding="utf-8"))
    if (result["asked"], result["judged"]) != (0, judged):
        raise RuntimeError(f"not just {judged} stored answers were judged")
    return cost.cpu


def _langbite(setting: Setting) -> Iterator[Figure]:
    """`import` of a whole library, and `check` of the imported tests."""
    library = [str(path) for path in rows.make_library(setting.folder / "library")]
    report = setting.folder / "report.json"
    costs = []
    for number in range(setting.first_times):
        root = setting.folder / f"langbite-{number}"
        rows.make_rows(root, 1)
        imported = run(program(root, "import", "langbite", *library))
        costs.append(imported.cpu + run(program(root, "check", "--json"), report).cpu)
    result = json.loads(report.read_text(encoding="utf-8"))
    title = f"LangBiTe, {result['files'] - 1:,} templates, {result['cases'] - 1:,} instances"
    yield figure("datasets", f"{title}: import and check", median(costs), "s", most=_SECONDS)
