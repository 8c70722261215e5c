"""Measures a hundred simulated runners of one run: what they pay, spend, and ask in a minute."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from benches.measure import run
from benches.table import Figure, figure
from tests.postgresql_server import find_programs, running_server

if TYPE_CHECKING:
    from benches.benches import Setting

_BUSIEST = 1.0
"""The calls in any minute, of the limit."""
_SHARE_OF_RATE = 0.7
"""The least part of the account's limit that is used, from the first runner to the last call."""


def simulation(setting: Setting) -> Iterator[Figure]:
    """Runners that come and go, are killed, sleep and lose their network, in virtual time.

    They are real executors over a real store. The calls of each killed or silent runner that were
    in flight may be made again by others; no other call may, and the limits hold all the same.
    """
    if find_programs() is None:
        setting.notes.append("simulation: no PostgreSQL server is installed")
    else:
        runners, cases = setting.simulated
        with running_server() as server:
            title = f"{runners} runners, {cases:,} cases"
            yield from _simulate(setting, title, server.url(), runners, cases)
            limit = round(0.6 * cases * 0.0016, 2)
            title = f"{title}, at most ${limit}"
            yield from _simulate(setting, title, server.url(), runners, cases, limit)
            runners, cases = runners // 5, cases // 5
            title = f"{runners} runners, {cases:,} cases with a judge"
            yield from _simulate(setting, title, server.url(), runners, cases, is_judged=True)
            limit = round(0.6 * cases * 0.004, 2)
            title = f"{title}, at most ${limit}"
            yield from _simulate(
                setting, title, server.url(), runners, cases, limit, is_judged=True
            )
    path = str(setting.folder / "simulated.db")
    yield from _simulate(setting, "8 runners, 800 cases, SQLite", path, 8, 800)


def _simulate(
    setting: Setting,
    title: str,
    store: str,
    runners: int,
    cases: int,
    limit: float | None = None,
    *,
    is_judged: bool = False,
) -> Iterator[Figure]:
    per_minute = 30 * runners
    judged_per_minute = 20 * runners if is_judged else 0
    some = max(runners // 10, 1)
    options: dict[str, Any] = {
        "runners": runners,
        "cases": cases,
        "per-minute": per_minute,
        "judged-per-minute": judged_per_minute,
        "killed": 2 * some,
        "stopped": some,
        "asleep": 2 * some,
        "offline": some,
        **({} if limit is None else {"limit": limit}),
    }
    words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    # With the hashes of Python's strings, the order of its sets would be another one each time.
    start = ["env", "PYTHONHASHSEED=0", sys.executable, "-m", "benches.simulated_runners"]
    output = setting.folder / "simulation.json"
    cost = run([*start, store, *words], output)
    came = json.loads(output.read_text(encoding="utf-8").splitlines()[-1])
    if came["problems"]:
        raise RuntimeError(f"{title}: {came['problems']}")

    def line(name: str, value: float, unit: str = "", **bounds: float) -> Figure:
        return figure("simulation", f"{title}: {name}", value, unit, **bounds)

    yield line("paid twice, without those in flight", came["paid_again"], most=0)
    yield line("paid twice, in flight when a runner was lost", came["lost"])
    if limit is None:
        yield line("questions left, or answers not judged", came["left"], most=0)
    else:
        yield line("spent above the limit", max(came["spent"] - limit, 0.0), "$", most=0)
        yield line("counted above the limit", max(came["known"] - limit, 0.0), "$", most=0)
        yield line("of the limit spent", came["spent"], "$", floor=limit)
    yield line("answers that the summary leaves out", came["uncounted"], most=0)
    if store.startswith("postgresql:"):
        yield line("runs without a record", not came["is_recorded"], most=0)
    busiest = came["peak"] * per_minute
    yield line("calls in the busiest minute", busiest, "", floor=per_minute, most=_BUSIEST)
    if is_judged:
        busiest = came["judged_peak"] * judged_per_minute
        bounds = {"floor": judged_per_minute, "most": _BUSIEST}
        yield line("judgements in the busiest minute", busiest, "", **bounds)
        yield line("judgements paid", came["judged"])
    elif limit is None:
        used = 60 * came["calls"] / came["answered"]
        yield line("calls a minute", used, "", floor=per_minute, least=_SHARE_OF_RATE)
    setting.notes.append(
        f"simulation: {title}: {came['seconds']:.0f} virtual seconds in {cost.wall:.0f} s, "
        f"{cost.cpu:.0f} s of them CPU; {came['transactions']:,} transactions; "
        f"{came['states'].get('killed', 0)} runners killed"
    )
