"""Measures the commands in a workspace with a million rows of data, each with stored answers.

The store is a SQLite file, and with `--server` in PostgreSQL.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from benches import rows, workspaces
from benches.browser import browse_million
from benches.measure import KIB, Cost, program, run
from benches.table import Figure, figure
from tests.postgresql_server import PostgreSQLServer, running_server, why_not

if TYPE_CHECKING:
    from benches.benches import Setting

_STATUS = (3, 300)
"""The targets in seconds of CPU and MiB: `status` when there is nothing to do,"""
_RUN = (60, 500)
"""and `run`,"""
_REPORT = (10, None)
"""and `diff` and `stats`, of which the memory is only shown."""
_UNCACHED_DIFF = (15, None)
"""`diff` on a machine that has not run it before,"""
_UNCACHED_STATS = (30, None)
"""`stats` there,"""
_HISTORY = (10, 300)
"""what shows little of the history, whose memory counts,"""
_FIRST_SEARCH = (60, 300)
"""the first search, which indexes all texts,"""
_SEARCH = (2, 300)
"""and further ones."""
_ALL_TEXTS = 130
"""The most MiB of a search that finds the answers of all rows, of which there are at most"""
_MOST_FOUND = 100_000
_ANY = (None, None)
_CHOSEN = 1.3
"""The most that the plan of chosen rows takes, compared with that of all of them."""
_CHOICES = (
    ("--lf",),
    ("--sample", "1000000000"),
    ("--shard", "1/1"),
    ("-k", "capitals or hello"),
)
"""Options that choose rows: all of them, but for the first one."""
_MOST_EDITED = 100_000
"""With more rows the edit of an instruction of all rows is not measured: it takes many minutes."""


def million(setting: Setting) -> Iterator[Figure]:
    """Each command once; several take a minute with a million rows."""
    if not setting.on_server:
        yield from _measure(setting, None)
    elif reason := why_not():
        setting.notes.append(f"million: {reason}")
    else:
        with running_server(fsync=True) as server:
            yield from _measure(setting, server)


def _measure(setting: Setting, server: PostgreSQLServer | None) -> Iterator[Figure]:
    root = setting.folder / "million"
    count, attempts = setting.many_rows, setting.many_attempts
    title = f"{count:,} rows" + (f" x {attempts}" if attempts > 1 else "")
    title += ", PostgreSQL" if server else ""
    url = server.url() if server else ""
    store = ("--store", url) if url else ()

    def measure(
        name: str, *arguments: str, most: tuple[int | None, int | None] = _ANY
    ) -> Iterator[Figure]:
        before = _server_seconds(server)
        cost = run(program(root, *store, *arguments))
        served = _server_seconds(server) - before
        words = f"{_words(cost)}, the server {served:.1f} s CPU" if server else _words(cost)
        print(f"  {name}: {words}", file=sys.stderr, flush=True)
        if server:
            yield figure("million", f"{title}: {name}: the server", served, "s")
        yield figure("million", f"{title}: {name}", cost.cpu, "s", most=most[0])
        yield figure(
            "million", f"{title}: {name}: memory", cost.memory / KIB**2, "MiB", most=most[1]
        )

    filling = run(
        [sys.executable, "-m", "benches.million_store", str(root), str(count), str(attempts), url]
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
    for name, command, most in (
        ("diff of the runs", ("diff", "@~1", "@"), _UNCACHED_DIFF),
        ("stats", ("stats",), _UNCACHED_STATS),
        ("run with nothing to do", nothing, _RUN),
    ):
        _forget(root)
        yield from measure(f"{name}, on another machine", *command, most=most)
    if count <= _MOST_EDITED:
        yield from _choose(root, store, title)
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
    if server is None:  # else the index is in the store
        yield from browse_million(setting, root, title, url)
        for path in (root / ".evalstore").glob("search.db*"):
            path.unlink()
    search = ("grep", "Paris 5000 atlas")  # one answer of those that fail
    yield from measure("grep, the first one", *search, most=_FIRST_SEARCH)
    yield from measure("grep", *search, most=_SEARCH)
    if count <= _MOST_FOUND and server is None:
        cost = run([sys.executable, "-m", "benches.found_texts", str(root), "question"])
        print(f"  search that finds all answers: {_words(cost)}", file=sys.stderr, flush=True)
        name = f"{title}: search that finds all answers"
        yield figure("million", name, cost.cpu, "s")
        yield figure("million", f"{name}: memory", cost.memory / KIB**2, "MiB", most=_ALL_TEXTS)
    if server is not None:
        yield from browse_million(setting, root, title, url)
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


def _choose(root: Path, store: tuple[str, ...], title: str) -> Iterator[Figure]:
    """Compare the plans of chosen rows with the plan of all rows."""
    plan = ("run", "--dry-run")
    of_all: Cost | None = None
    for choice in ((), *_CHOICES):
        _forget(root)
        cost = run(program(root, *store, *plan, *choice))
        print(f"  {' '.join((*plan, *choice))}: {_words(cost)}", file=sys.stderr, flush=True)
        if of_all is None:
            of_all = cost
        else:
            name = f"{title}: {' '.join((*plan, *choice))}"
            yield figure("million", name, cost.cpu, "s", floor=of_all.cpu, most=_CHOSEN)


def _forget(root: Path) -> None:
    """Remove what is kept for this machine only, apart from the index of the files."""
    for path in (root / ".evalstore").iterdir():
        if not path.name.startswith(("index.", "store.db")):
            path.unlink()


def _server_seconds(server: PostgreSQLServer | None) -> float:
    """Return the CPU time of a server for connections that have ended, as Linux counts it."""
    if server is None:
        return 0.0
    pid = (server.folder / "data/postmaster.pid").read_text(encoding="utf-8").split()[0]
    values = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return sum(map(int, values[13:15])) / os.sysconf("SC_CLK_TCK")


def _words(cost: Cost) -> str:
    return f"{cost.cpu:.1f} s CPU, {cost.memory / KIB**2:,.0f} MiB, {cost.wall:.1f} s"
