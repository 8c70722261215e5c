"""Measures whole processes with the operating system's own accounting.

It measures the CPU time of a process and its children and its peak memory, because other
programs affect these less than the elapsed time.
"""

from __future__ import annotations

import os
import sys
import sysconfig
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

KIB = 1024
_KEPT = ("PATH", "HOME", "LANG", "PYTHONPATH")
"""The variables that processes get; with PYTHONPATH another checkout can be measured."""


@dataclass(frozen=True, slots=True)
class Cost:
    """The CPU, memory and time that a process used."""

    cpu: float
    """Seconds, user and system, its children included."""
    memory: int
    """The most bytes that were resident at once."""
    wall: float
    """Seconds from its start to its end."""


def program(root: Path, *arguments: str) -> list[str]:
    """The command line of evalstore in a workspace."""
    script = Path(sysconfig.get_path("scripts")) / "evalstore"
    start = [str(script)] if script.exists() else [sys.executable, "-m", "evalstore"]
    return [*start, "-C", str(root), *arguments]


def run(command: Sequence[str], output: Path | None = None) -> Cost:
    """Run a command to its end; raises RuntimeError when it fails.

    Linux counts the memory of the caller before `exec` as that of the new process, so this
    program imports nothing large.
    """
    target = str(output or os.devnull)
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    actions = [(os.POSIX_SPAWN_OPEN, descriptor, target, flags, 0o600) for descriptor in (1, 2)]
    started = time.perf_counter()
    pid = os.posix_spawnp(command[0], list(command), environment(), file_actions=actions)
    _, status, used = os.wait4(pid, 0)
    wall = time.perf_counter() - started
    code = os.waitstatus_to_exitcode(status)
    if code:
        raise RuntimeError(f"'{' '.join(command)}' ended with {code}")
    unit = 1 if sys.platform == "darwin" else KIB
    return Cost(used.ru_utime + used.ru_stime, used.ru_maxrss * unit, wall)


def environment() -> dict[str, str]:
    """The environment of the processes, without the settings of the caller and of git."""
    kept = {name: value for name, value in os.environ.items() if name in _KEPT}
    return kept | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull, "TZ": "UTC"}


def repeat(command: Sequence[str], times: int, prepare: Callable[[], None] | None = None) -> Cost:
    """The median cost of several runs; `prepare` is called before each."""
    costs = []
    for _ in range(times):
        if prepare:
            prepare()
        costs.append(run(command))
    return _median(costs)


def compare(commands: Sequence[Sequence[str]], times: int) -> list[Cost]:
    """The median costs of several commands, run in turn after a first round that does not count.

    So a machine that is slow for a while slows all of them.
    """
    rounds = [[run(command) for command in commands] for _ in range(times + 1)][1:]
    return [_median(costs) for costs in zip(*rounds, strict=True)]


def compare_once(
    commands: Sequence[Sequence[str]], prepare: Callable[[], None] | None = None
) -> list[Cost]:
    """The costs of several commands, run in turn; `prepare` is called before them."""
    if prepare:
        prepare()
    return [run(command) for command in commands]


def _median(costs: Sequence[Cost]) -> Cost:
    return Cost(
        median(cost.cpu for cost in costs),
        int(median(cost.memory for cost in costs)),
        median(cost.wall for cost in costs),
    )
