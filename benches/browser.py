"""Measures the browser: its start, the time from keys to paints, and its memory."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from benches import workspaces
from benches.measure import KIB, Cost, run
from benches.table import Figure, figure

if TYPE_CHECKING:
    from pathlib import Path

    from benches.benches import Setting

_MEDIAN, _MOST, _MIB = 50, 100, 220
"""The targets: milliseconds from a key to a paint, median and 95th percentile; memory."""
_COLLECTION = 50
"""The milliseconds of processor time that a collection of garbage may stop the screen."""
_MIB_OF_MILLION = 400
"""The same with a million rows."""
_FRAME_MILLISECONDS = 300
_KEYS = (
    ("move", "cursor"),
    ("page", "a page"),
    ("jump", "to the other end"),
    ("filter", "a letter of a filter"),
    ("key while reading", "a key while cases are read"),
)


def browser(setting: Setting) -> Iterator[Figure]:
    """Workspaces of one file with few and with many rows, and of many files."""
    floor, _ = _browse(setting, None)
    for count in setting.browsed:
        root = setting.asked(count)
        yield from _figures(f"{count:,} cases", floor, *_browse(setting, root))
    size = setting.sizes[1]
    title = f"{size:,} files, {size * workspaces.ROWS:,} cases"
    yield from _figures(title, floor, *_browse(setting, setting.large))


def browse_million(setting: Setting, root: Path, title: str, store: str) -> Iterator[Figure]:
    """A workspace with many stored answers, whose search index is not made yet."""
    times, cost = _browse(setting, root, store)
    yield from _figures(title, {}, times, cost, most=_MIB_OF_MILLION)


def _browse(setting: Setting, root: Path | None, store: str = "") -> tuple[dict[str, float], Cost]:
    report = setting.folder / "browsing.json"
    place, now = str(root or "-"), str(time.perf_counter())
    cost = run([sys.executable, "-m", "benches.browsing", place, now, store], report)
    return json.loads(report.read_text(encoding="utf-8")), cost


def _figures(
    of: str,
    floor: dict[str, float],
    times: dict[str, float],
    cost: Cost,
    most: int = _MIB,
) -> Iterator[Figure]:
    def line(title: str, value: float, **bounds: float | None) -> Figure:
        return figure("browser", f"{of}: {title}", value, "ms", **bounds)

    yield line("start to the first frame", times["frame"], floor=floor.get("frame"))
    yield line("start to the runs", times["history"])
    yield line("runs read to their frame", times["runs read"], most=_FRAME_MILLISECONDS)
    yield line("opening a run to its table", times["table"])
    yield line("cases read to their frame", times["cases read"], most=_FRAME_MILLISECONDS)
    for name, title in _KEYS:
        if name in times:
            yield line(title, times[name], most=_MEDIAN)
            yield line(f"{title}, 95 of 100", times[f"{name} 95"], most=_MOST)
    yield line("cursor, beside the floor", times["move"], floor=floor.get("key"))
    yield line("another order", times["sort"])
    yield line("the index of the search, anew", times["index"])
    yield line("the longest pause meanwhile", times["index pause"])
    yield line("what was typed is found in answers", times["search"])
    yield line("the longest pause while it is looked for", times["search pause"])
    yield line("the longest pause while a plan is made", times["plan pause"])
    yield line("the longest collection of garbage", times["collection"], most=_COLLECTION)
    yield figure("browser", f"{of}: memory", cost.memory / KIB**2, "MiB", most=most)
