"""Measures the HTML report of many cases: its CPU time, its size, and how soon it can be used."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from benches import workspaces
from benches.measure import KIB, compare, program, run
from benches.table import Figure, figure

if TYPE_CHECKING:
    from pathlib import Path

    from benches.benches import Setting

_CANDIDATES = 2
_SECONDS, _MEGABYTES, _INTERACTIVE = 5, 20, 2


def report(setting: Setting) -> Iterator[Figure]:
    """The report of the second of two runs, between which a tenth of the answers changed."""
    cases = setting.reported
    root = setting.folder / "reported"
    workspaces.make_reported(root, cases, 0)
    run(program(root, "run", "--yes", "--fail-on", "none"))
    workspaces.make_reported(root, cases, 1)
    run(program(root, "run", "--yes", "--fail-on", "none"))
    page, plain = root / "report.html", root / "floor.html"
    least = [sys.executable, "-m", "benches.report_floor", str(root / ".evalstore/store.db")]
    floor, cost = compare(
        [[*least, str(plain)], program(root, "report", "-o", page.name)], setting.first_times
    )
    title = f"report of {cases:,} cases x {_CANDIDATES}"
    yield figure("report", f"{title}: CPU", cost.cpu, "s", most=_SECONDS)
    yield figure("report", f"{title}: CPU beside a dump", cost.cpu, "s", floor=floor.cpu)
    yield figure("report", f"{title}: memory", cost.memory / KIB**2, "MiB")
    size = page.stat().st_size / 1e6
    yield figure("report", f"{title}: size", size, "MB", most=_MEGABYTES)
    seconds = asyncio.run(_open(page, setting.folder / "profile"))
    if seconds is None:
        setting.notes.append("report: there is no chromium, so that the page was not opened")
    else:
        yield figure("report", f"{title}: open to usable", seconds, "s", most=_INTERACTIVE)


async def _open(page: Path, profile: Path) -> float | None:
    """Seconds until a page has its table and can be filtered; None without a browser."""
    from tests.tui import chromium

    if chromium.PROGRAM is None:
        return None
    async with chromium.opened(profile) as tab:
        started = time.perf_counter()
        await tab.call("Page.navigate", url=page.as_uri())

        async def is_ready() -> bool:
            ready = await tab.value("document.documentElement.dataset.ready === 'yes'")
            return bool(ready)

        await chromium.until(is_ready, "the page")
        return time.perf_counter() - started
