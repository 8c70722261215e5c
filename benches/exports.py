"""Measures `export`: how long it takes, and whether its memory grows with the results."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING

from benches.measure import KIB, compare, compare_once, program
from benches.table import Figure, figure

if TYPE_CHECKING:
    from benches.benches import Setting

_SECONDS = 5
_GROWTH = 40
"""The target of memory in MiB, above that of a tenth: 32 MiB are the pages that SQLite keeps."""


def exports(setting: Setting) -> Iterator[Figure]:
    """Export all results of a run to each format; those without a target are measured once."""
    many, few = setting.asked(setting.rows), setting.asked(setting.rows // 10)
    store = str(many / ".evalstore/store.db")
    floor = [sys.executable, "-m", "benches.export_floor", store, str(setting.folder / "floor")]
    targets = ["jsonl", *(["parquet"] if find_spec("pyarrow") else [])]
    for name in (*targets, "csv", "junit.xml"):
        target = str(setting.folder / f"export.{name}")
        commands = [floor] if name == "jsonl" else []
        commands += [program(root, "export", "-o", target) for root in (many, few)]
        is_target = name in targets
        times = setting.first_times
        *floors, cost, small = compare(commands, times) if is_target else compare_once(commands)
        title = f"{name}, {setting.rows:,} results"
        yield figure("export", title, cost.cpu, "s", most=_SECONDS if is_target else None)
        for least in floors:
            yield figure("export", f"{title}, beside the floor", cost.cpu, "s", floor=least.cpu)
        if name != "junit.xml":
            growth = (cost.memory - small.memory) / KIB**2
            yield figure("export", f"{title}: growth of memory", growth, "MiB", most=_GROWTH)
