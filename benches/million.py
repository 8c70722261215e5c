"""Measures the commands in a workspace with a million rows of data, each with stored answers."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from benches import rows, workspaces
from benches.measure import KIB, Cost, program, run
from benches.table import Figure, figure

if TYPE_CHECKING:
    from benches.benches import Setting

_STATUS = (3, 300)
"""The targets in seconds of CPU and MiB: `status` when there is nothing to do,"""
_RUN = (60, 500)
"""and `run`,"""
_REPORT = (10, None)
"""and `diff` and `stats`; the memory of these is only shown,"""
_HISTORY = (10, 300)
"""but not that of what shows little of the history."""
_ANY = (None, None)
_MOST_EDITED = 100_000
"""With more rows the edit of an instruction of all rows is not measured: it takes many minutes."""


def million(setting: Setting) -> Iterator[Figure]:
    """Each command once; several take a minute with a million rows."""
    root = setting.folder / "million"
    count, attempts = setting.many_rows, setting.many_attempts
    title = f"{count:,} rows" + (f" x {attempts}" if attempts > 1 else "")

    def measure(
        name: str, *arguments: str, most: tuple[int | None, int | None] = _ANY
    ) -> Iterator[Figure]:
        cost = run(program(root, *arguments))
        print(f"  {name}: {_words(cost)}", file=sys.stderr, flush=True)
        yield figure("million", f"{title}: {name}", cost.cpu, "s", most=most[0])
        yield figure(
            "million", f"{title}: {name}: memory", cost.memory / KIB**2, "MiB", most=most[1]
        )

    filling = run(
        [sys.executable, "-m", "benches.million_store", str(root), str(count), str(attempts)]
    )
    setting.notes.append(f"million: the store was filled in {_words(filling)}")
    print(f"  filled: {_words(filling)}", file=sys.stderr, flush=True)
    workspaces.settle()
    nothing = ("run", "--fail-on", "none", "--yes")
    yield from measure("check", "check")
    yield from measure("status before the first run", "status")
    yield from measure("the first run, without calls", *nothing)
    workspaces.settle()
    yield from measure("status after the run", "status", most=_STATUS)
    yield from measure("status again", "status", most=_STATUS)
    yield from measure("run with nothing to do", *nothing, most=_RUN)
    yield from measure("diff of the runs", "diff", "@~1", "@", most=_REPORT)
    yield from measure("diff with the workspace", "diff", most=_REPORT)
    rows.write_question(root, 1)
    workspaces.settle()
    yield from measure("status, one instruction edited", "status")
    yield from measure("run, one instruction edited", *nothing, most=_RUN)
    yield from measure("diff of the runs, one instruction edited", "diff", "@~1", "@", most=_REPORT)
    yield from measure("stats", "stats", most=_REPORT)
    yield from measure(
        "stats by tag and file", "stats", "--by", "tag", "--by", "file", most=_REPORT
    )
    yield from measure("log", "log", most=_REPORT)
    yield from measure("log of the file", "log", "tests/capitals.md", most=_HISTORY)
    yield from measure("show of the run", "show", "@", most=_HISTORY)
    rows.make_rows(root, count, changed=1, edition=1)
    rows.write_settings(root, attempts)
    yield from measure("check, one row edited", "check")
    yield from measure("run, one row edited", *nothing)
    yield from measure("diff of the runs, one row edited", "diff", "@~1", "@", most=_HISTORY)
    if count > _MOST_EDITED:
        return
    rows.write_check(root, 1)
    workspaces.settle()
    yield from measure("check, the instruction of all rows edited", "check")
    yield from measure("status, the instruction of all rows edited", "status")


def _words(cost: Cost) -> str:
    return f"{cost.cpu:.1f} s CPU, {cost.memory / KIB**2:,.0f} MiB, {cost.wall:.1f} s"
