"""Measures the HTML report of many cases: its CPU time, its size, and how soon it can be used.

Frames while it scrolls are measured beside those of an empty page.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from benches import workspaces
from benches.measure import KIB, compare, program, run
from benches.table import Figure, figure

if TYPE_CHECKING:
    from pathlib import Path

    from benches.benches import Setting
    from tests.interfaces.tui.chromium import Tab

_CANDIDATES = 2
_SECONDS, _MEGABYTES, _INTERACTIVE = 5, 20, 2
_SEARCH = 100
"""The most milliseconds in which the page answers a letter."""
_FRAME = 1.5
"""How many times longer than on an empty page a frame may take until one is lost."""
_ROUNDS = 3
"""How often each page is scrolled."""
_SEARCH_SCRIPT = """\
new Promise(resolve => {
  const search = document.getElementById('search');
  const start = performance.now();
  search.value = 'a';
  search.dispatchEvent(new Event('input', {bubbles: true}));
  requestAnimationFrame(() => setTimeout(() => resolve(performance.now() - start)));
})"""
_SCROLL_SCRIPT = """\
new Promise(resolve => {
  const gaps = [], most = 120, end = document.documentElement.scrollHeight - innerHeight;
  let last = 0;
  const step = (now) => {
    if (last) gaps.push(now - last);
    last = now;
    if (gaps.length === most) { resolve(gaps); return; }
    scrollTo(0, end * (1 - Math.abs(1 - 2 * gaps.length / most)));
    requestAnimationFrame(step);
  };
  requestIdleCallback(() => requestAnimationFrame(step));
})"""
"""Scrolls to the end and back, and measures the time between frames."""


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
    opened = asyncio.run(_browse(page, setting.folder / "profile"))
    if opened is None:
        setting.notes.append("report: there is no chromium, so that the page was not opened")
        return
    yield figure("report", f"{title}: open to usable", opened.seconds, "s", most=_INTERACTIVE)
    yield figure("report", f"{title}: a letter of the search", opened.search, "ms", most=_SEARCH)
    late, usual = _late(opened.scrolled), _late(opened.empty)
    yield figure(
        "report", f"{title}: frame while scrolling, 95 of 100", late, "ms", floor=usual, most=_FRAME
    )
    lost, unavoidable = (_lost(gaps, opened.empty) for gaps in (opened.scrolled, opened.empty))
    frames = len(opened.scrolled)
    most = unavoidable + frames // 100
    yield figure("report", f"{title}: frames lost of {frames}", lost, "", most=most)


def _late(gaps: Sequence[float]) -> float:
    """Return the time between frames that 5 of 100 exceed."""
    return sorted(gaps)[int(0.95 * len(gaps))]


def _lost(gaps: Sequence[float], empty: Sequence[float]) -> int:
    """Return how many frames did not come when they would on an empty page."""
    usual = statistics.median(empty)
    return sum(round(gap / usual) - 1 for gap in gaps if gap > _FRAME * usual)


@dataclass(frozen=True, slots=True)
class _Opened:
    """How a page behaves in a web browser."""

    seconds: float
    """From its address until it has its table and can be filtered."""
    search: float
    """Milliseconds in which the page answers a letter of the search."""
    scrolled: list[float]
    """Milliseconds between its frames while it scrolls."""
    empty: list[float]
    """Those of a page of the same height that shows nothing."""


async def _browse(page: Path, profile: Path) -> _Opened | None:
    """Open a page, search and scroll it; None without a browser."""
    from tests.interfaces.tui import chromium

    if chromium.PROGRAM is None:
        return None
    async with chromium.opened(profile) as tab:
        seconds = await _open(tab, page)
        search = await _evaluate(tab, _SEARCH_SCRIPT)
        height = await tab.value("document.documentElement.scrollHeight")
        scrolled, empty = [], []
        for _ in range(_ROUNDS):  # in turn, so that a machine that is slow for a while slows both
            await tab.call("Page.navigate", url="about:blank")
            await tab.value(f"document.body.style.height = '{height}px'")
            empty += await _evaluate(tab, _SCROLL_SCRIPT)
            await _open(tab, page)
            scrolled += await _evaluate(tab, _SCROLL_SCRIPT)
        return _Opened(seconds, search, scrolled, empty)


async def _open(tab: Tab, page: Path) -> float:
    """Open a page; returns the seconds until it can be used."""
    from tests.interfaces.tui import chromium

    started = time.perf_counter()
    await tab.call("Page.navigate", url=page.as_uri())

    async def is_ready() -> bool:
        ready = await tab.value("document.documentElement.dataset.ready === 'yes'")
        return bool(ready)

    await chromium.until(is_ready, "the page")
    return time.perf_counter() - started


async def _evaluate(tab: Tab, script: str) -> Any:
    """Return what the promise of a script becomes."""
    reply = await tab.call(
        "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
    )
    return reply["result"]["value"]
