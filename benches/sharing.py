"""Measures `push`, `pull` and `clone` with a remote in a folder, in CPU time, memory and bytes."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from benches import rows
from benches.measure import KIB, Cost, compare, program, run
from benches.table import Figure, figure

if TYPE_CHECKING:
    from pathlib import Path

    from benches.benches import Setting

_ROWS_OF_CASE = 4
"""A question, its answer, what it is judged by, and the judgement."""
_CHANGED = 200
_NOTHING, _COPY, _CLONE = 2, 20, 30
"""Seconds."""
_MEMORY, _FIRST, _AGAIN, _ALL = 300, 12, 1024, 64
"""MiB, MiB, KiB and MiB: an empty store reads every pack that has a row it needs."""


def sharing(setting: Setting) -> Iterator[Figure]:
    """Copy many rows, the few that a plan asks for, and none of a million."""
    yield from _copies(setting)
    yield from _for_plan(setting)
    yield from _nothing(setting)


def _copies(setting: Setting) -> Iterator[Figure]:
    folder = setting.folder / "sharing"
    ann, bob, team = (folder / name for name in ("ann", "bob", "team"))
    cases = setting.rows // _ROWS_OF_CASE
    rows.make_rows(ann, cases)
    _share(ann)
    run(program(ann, "run", "--fail-on", "none"))
    shutil.copytree(ann, bob, ignore=shutil.ignore_patterns(".evalstore"))
    floors = [
        run([sys.executable, "-m", "benches.sharing_floor", *map(str, arguments)])
        for arguments in (
            ("write", ann / ".evalstore/store.db", folder / "floor.pack"),
            ("read", folder / "floor.pack", folder / "floor.db"),
        )
    ]
    cost, report = _measure(setting, ann, "push")
    copied = f"{sum(report['records'].values()):,} rows"
    yield from _copy(f"push, {copied}", cost, floors[0])
    cost, _ = _measure(setting, bob, "pull")
    yield from _copy(f"pull, {copied}", cost, floors[1])
    cost, _ = _measure(setting, folder, "clone", str(team), "cloned")
    yield figure("sharing", f"clone, {copied}", cost.cpu, "s", most=_CLONE)
    before = _size(team)
    for name in ("push", "pull", "push"):
        _measure(setting, bob, name)
    grown = _size(team) - before
    yield figure("sharing", "growth by pushes and pulls of nothing", grown, "bytes", most=0)


def _for_plan(setting: Setting) -> Iterator[Figure]:
    """Pull a few of many cases: what others have changed, and what a machine has never had."""
    folder, cases = setting.folder / "for-plan", setting.rows
    ann, late, job = (folder / name for name in ("ann", "late", "job"))
    rows.make_rows(ann, cases)
    _share(ann)
    run(program(ann, "run", "--fail-on", "none"))
    shutil.copytree(ann, late)
    _measure(setting, ann, "push")
    for edition, (title, unit, most) in enumerate(
        (("without a cache", "MiB", _FIRST), ("again", "KiB", _AGAIN)), start=1
    ):
        for root in (ann, late):
            rows.make_rows(root, cases, _CHANGED, edition)
            _share(root)
        run(program(ann, "run", "--fail-on", "none"))
        _measure(setting, ann, "push")
        cost, report = _measure(setting, late, "pull", "--for-plan")
        title = f"pull --for-plan, {_CHANGED} changed of {cases:,} cases, {title}"
        yield from _received(title, cost, report, unit, most)
    rows.make_rows(job, _CHANGED)
    run(_allowed(setting, job, "remote", "add", "origin", "../team"))
    output = setting.folder / "sharing.json"
    cost = run(_trusting(setting, sys.executable, "-m", "benches.chosen_cases", str(job)), output)
    title = f"{_CHANGED} of {cases:,} cases for an empty store"
    yield from _received(title, cost, json.loads(output.read_text("utf-8")), "MiB", _ALL)


def _received(
    title: str, cost: Cost, report: dict[str, Any], unit: str, most: int
) -> Iterator[Figure]:
    if report["records"]["answers"] < _CHANGED:
        raise RuntimeError(f"a pull for the plan has copied only {report['records']}")
    received = report["bytesReceived"] / (KIB**2 if unit == "MiB" else KIB)
    yield figure("sharing", f"{title}: received", received, unit, most=most)
    yield figure("sharing", f"{title}: CPU", cost.cpu, "s")


def _copy(title: str, cost: Cost, floor: Cost) -> Iterator[Figure]:
    yield figure("sharing", title, cost.cpu, "s", most=_COPY)
    yield figure("sharing", f"{title}, beside the floor", cost.cpu, "s", floor=floor.cpu)
    yield figure("sharing", f"{title}: memory", cost.memory / KIB**2, "MiB", most=_MEMORY)


def _nothing(setting: Setting) -> Iterator[Figure]:
    """Push and pull where both sides have the same rows."""
    count = 10 * setting.rows
    root, team = setting.folder / "known", setting.folder / "team"
    rows.make_rows(root, 1)
    _share(root)
    run(program(root, "run", "--fail-on", "none"))
    _measure(setting, root, "push")
    store = str(root / ".evalstore/store.db")
    run([sys.executable, "-m", "benches.known_rows", store, str(team), str(count)])
    _measure(setting, root, "pull")  # reads the index once
    [cache] = (root / ".evalstore/remotes").glob("*.db")
    floor = [sys.executable, "-m", "benches.sharing_floor", "compare", store, str(cache)]
    commands = [_allowed(setting, root, name) for name in ("push", "pull")]
    least, *costs = compare([floor, *commands], setting.first_times)
    for name, cost in zip(("push", "pull"), costs, strict=True):
        title = f"{name} of nothing, {count:,} rows"
        yield figure("sharing", title, cost.cpu, "s", most=_NOTHING)
        yield figure("sharing", f"{title}, beside the floor", cost.cpu, "s", floor=least.cpu)


def _share(root: Path) -> None:
    with (root / "evalstore.yaml").open("a", encoding="utf-8") as file:
        file.write("remotes: {origin: ../team}\n")


def _measure(setting: Setting, root: Path, *arguments: str) -> tuple[Cost, dict[str, Any]]:
    """Run a command; returns its cost and its document."""
    output = setting.folder / "sharing.json"
    cost = run(_allowed(setting, root, *arguments, "--json"), output)
    text = output.read_text(encoding="utf-8")
    document, _ = json.JSONDecoder().raw_decode(text, text.index("{\n"))  # warnings may follow
    return cost, document


def _allowed(setting: Setting, root: Path, *arguments: str) -> list[str]:
    """The command line of evalstore that may use the remote; the user's own file is untouched."""
    return _trusting(setting, *program(root, "--allow-outside", "--quiet", *arguments))


def _trusting(setting: Setting, *command: str) -> list[str]:
    """The command with a file of its own for what is trusted."""
    return ["env", f"EVALSTORE_TRUST_FILE={setting.folder / 'trusted'}", *command]


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
