"""Identifies the processes of this machine, and tells whether one is there, or stopped."""

from __future__ import annotations

import os
import platform
from pathlib import Path


def machine_id() -> str:
    """Return an id of the machine, its boot, and the namespace of process ids."""
    boot = Path("/proc/sys/kernel/random/boot_id")
    space = Path("/proc/self/ns/pid")
    try:
        return f"{platform.node()} {boot.read_text().strip()} {os.readlink(space)}"  # noqa: PTH115
    except OSError:
        return platform.node()


def start_time(pid: int) -> str:
    """Return when a process began; empty if there is none, `?` if it cannot be determined."""
    if pid.__class__ is not int:  # a file of SQLite may have anything in its place
        return ""
    try:
        state, *rest = _stat(pid)
        return "" if state in "ZX" else rest[18]  # a zombie process is dead, too
    except FileNotFoundError:
        if Path("/proc/self/stat").exists():
            return ""
    except (OSError, IndexError):
        return "?"
    if os.name != "posix":
        return "?"  # there, os.kill would end the process, so only its beat counts
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return ""
    except OSError:
        return "?"
    return "?"


def is_stopped(pid: int) -> bool:
    """Return whether a process is stopped by a signal or a debugger; False when it is unknown."""
    try:
        return _stat(pid)[0] in "Tt"
    except (OSError, IndexError):
        return False


def _stat(pid: int) -> list[str]:
    """Return the fields of `/proc/PID/stat` from the state on."""
    stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    return stat.rpartition(")")[2].split()


def has_process(place: str, pid: int, born: str) -> bool | None:
    """Return whether the process of a runner is there; None for one of another machine."""
    if place != machine_id():
        return None
    began = start_time(pid)
    return began == born and began != ""
