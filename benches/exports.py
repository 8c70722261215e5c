"""Measures `export`: how long it takes, and whether its memory grows with the results."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING

from benches import rows
from benches.measure import KIB, compare, program, run
from benches.table import Figure, figure

if TYPE_CHECKING:
    from benches.benches import Setting

_SECONDS = 5
_GROWTH = 40
"""The target of memory in MiB, above that of a tenth: 32 MiB are the pages that SQLite keeps."""


def exports(setting: Setting) -> Iterator[Figure]:
    """Export all results of a run to each format."""
    many, few = setting.folder / "exported", setting.folder / "exported-few"
    for root, count in ((many, setting.rows), (few, setting.rows // 10)):
        rows.make_rows(root, count)
        run(program(root, "run", "--fail-on", "none"))
    store = str(many / ".evalstore/store.db")
    floor = [sys.executable, "-m", "benches.export_floor", store, str(setting.folder / "floor")]
    formats = ["jsonl", "csv", "junit.xml"]
    formats += ["parquet"] if find_spec("pyarrow") else []
    for name in formats:
        target = str(setting.folder / f"export.{name}")
        commands = [floor] if name == "jsonl" else []
        commands += [program(root, "export", "-o", target) for root in (many, few)]
        *floors, cost, small = compare(commands, setting.first_times)
        title = f"{name}, {setting.rows:,} results"
        is_target = name in ("jsonl", "parquet")
        yield figure("export", title, cost.cpu, "s", most=_SECONDS if is_target else None)
        for least in floors:
            yield figure("export", f"{title}, beside the floor", cost.cpu, "s", floor=least.cpu)
        if name != "junit.xml":
            growth = (cost.memory - small.memory) / KIB**2
            yield figure("export", f"{title}: growth of memory", growth, "MiB", most=_GROWTH)
