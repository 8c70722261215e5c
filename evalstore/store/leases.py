"""Leases: runs that share a store divide the work instead of doing it twice.

A runner takes a lease before it starts on something, and gives it back in the transaction
that stores the result. The leases of a runner that has died are free. Whether one lives is
not a matter of clocks, which jump and differ: on the same machine its process says so, and
elsewhere a count that it raises every few seconds. A process that is stopped (by SIGSTOP, or
Ctrl-Z) keeps its leases: it may have been answered, and reads that when it is continued.
"""

from __future__ import annotations

import os
import platform
import secrets
import sqlite3
import time
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from evalstore.store.database import select_each
from evalstore.store.ids import as_bytes, as_digits

if TYPE_CHECKING:
    from evalstore.store.database import Database

BEAT_SECONDS = 3.0
"""How often a runner shows that it lives."""
SILENT_SECONDS = 15.0
"""A runner that we cannot look at is dead after so long without a beat."""
HUNG_SECONDS = 120.0
"""And one whose process is there, but does nothing, unless it is stopped: then it may go on."""


class LeaseHolder(NamedTuple):
    """A program that executes a run."""

    id: str
    place: str
    pid: int
    born: str
    beat: int


class Leases:
    """The leases of one run."""

    def __init__(self, store: Database, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._monotonic = monotonic
        self.runner = LeaseHolder(
            secrets.token_hex(16), _place(), os.getpid(), _born(os.getpid()), 0
        )
        self._joined = False
        self._seen: dict[str, tuple[int, float]] = {}
        """Other runner -> its beat, and when we first saw that one."""
        self.others: dict[str, LeaseHolder] = {}
        """Living runners that hold what we wanted at the last `claim`."""
        self.stopped: dict[str, LeaseHolder] = {}
        """Key -> who has it, of those whose process has been stopped for `HUNG_SECONDS`."""

    def claim(self, keys: Collection[str], *, wait: bool = True) -> set[str]:
        """Take leases on these keys; returns those that were free and are ours now.

        Without `wait`, `StoreLockedError` is raised at once while another program writes.
        """
        statement = "SELECT id, runner FROM leases WHERE id IN"
        with self._store.writing(wait=wait) as connection:
            self._join(connection)
            held = {
                as_digits(id): as_digits(runner)
                for id, runner in select_each(connection, statement, keys)
            }
            alive = self._bury(connection, set(held.values()) - {self.runner.id})
            taken = {key for key, runner in held.items() if runner in alive}
            own = {key for key, runner in held.items() if runner == self.runner.id}
            granted = set(keys) - taken
            insert_leases(connection, self.runner.id, granted - own)
        self.others = alive
        self.stopped = {
            key: alive[held[key]]
            for key in taken
            if self._silence(alive[held[key]]) >= HUNG_SECONDS
        }
        return granted

    def _join(self, connection: sqlite3.Connection) -> None:
        """Enter ourselves, and the first time clear away the dead of this machine."""
        if not self._joined:
            rows = connection.execute("SELECT id FROM runners").fetchall()
            self._bury(connection, {as_digits(row[0]) for row in rows})
            self._joined = True
        # Repeated each time: a process that considered this one dead has removed it.
        id, *rest = self.runner
        statement = "INSERT OR IGNORE INTO runners (id, place, pid, born, beat)"
        connection.execute(f"{statement} VALUES (?, ?, ?, ?, ?)", (as_bytes(id), *rest))

    def _bury(self, connection: sqlite3.Connection, runners: set[str]) -> dict[str, LeaseHolder]:
        """Those of these runners that live; the leases of the others are gone."""
        alive: dict[str, LeaseHolder] = {}
        if not runners:
            return alive
        statement = "SELECT id, place, pid, born, beat FROM runners WHERE id IN"
        for id, place, pid, born, beat in select_each(connection, statement, runners):
            runner = LeaseHolder(as_digits(id), place, pid, born, beat)
            if self._lives(runner):
                alive[runner.id] = runner
        for dead in runners - alive.keys():
            _remove(connection, dead)
        return alive

    def _lives(self, runner: LeaseHolder) -> bool:
        silence = self._silence(runner)
        if runner.place != self.runner.place:
            return silence < SILENT_SECONDS
        if _born(runner.pid) != runner.born:
            return False
        return silence < HUNG_SECONDS or _is_stopped(runner.pid)

    def _silence(self, runner: LeaseHolder) -> float:
        """For how many seconds we have seen this beat of a runner."""
        now = self._monotonic()
        beat, since = self._seen.get(runner.id, (-1, now))
        if beat != runner.beat:
            self._seen[runner.id] = (runner.beat, now)
            since = now
        return now - since

    def has(self, key: str) -> bool:
        """Whether the lease on a key is ours."""
        with self._store.writing() as connection:
            rows = select_each(connection, "SELECT runner FROM leases WHERE id IN", [key])
            return [as_digits(row[0]) for row in rows] == [self.runner.id]

    def beat(self) -> None:
        """Show that we live."""
        if not self._joined:
            return
        self.runner = self.runner._replace(beat=self.runner.beat + 1)
        with self._store.writing() as connection:
            connection.execute(
                "UPDATE runners SET beat = ? WHERE id = ?",
                (self.runner.beat, as_bytes(self.runner.id)),
            )

    def leave(self) -> None:
        """Give back everything."""
        if self._joined:
            with self._store.writing() as connection:
                _remove(connection, self.runner.id)
            self._joined = False


def insert_leases(connection: sqlite3.Connection, runner: str, keys: Iterable[str]) -> None:
    """Enter leases on free keys."""
    rows = [(as_bytes(key), as_bytes(runner)) for key in keys]
    if rows:
        statement = "INSERT OR REPLACE INTO leases (id, runner) VALUES (?, ?)"
        connection.executemany(statement, rows)


def delete_leases(connection: sqlite3.Connection, runner: str, keys: Iterable[str]) -> None:
    """Give back leases, unless somebody else has them by now."""
    rows = [(as_bytes(key), as_bytes(runner)) for key in keys]
    if rows:
        connection.executemany("DELETE FROM leases WHERE id = ? AND runner = ?", rows)


def _remove(connection: sqlite3.Connection, runner: str) -> None:
    connection.execute("DELETE FROM leases WHERE runner = ?", (as_bytes(runner),))
    connection.execute("DELETE FROM runners WHERE id = ?", (as_bytes(runner),))


def _place() -> str:
    """Names the machine, its start, and the namespace that numbers of processes belong to."""
    boot = Path("/proc/sys/kernel/random/boot_id")
    space = Path("/proc/self/ns/pid")
    try:
        return f"{platform.node()} {boot.read_text().strip()} {os.readlink(space)}"  # noqa: PTH115
    except OSError:
        return platform.node()


def _born(pid: int) -> str:
    """When a process began; empty when there is none, `?` when the system does not tell."""
    try:
        state, *rest = _stat(pid)
        return "" if state in "ZX" else rest[18]  # a zombie process is dead, too
    except FileNotFoundError:
        if Path("/proc/self/stat").exists():
            return ""
    except (OSError, IndexError):
        return "?"
    if os.name != "posix":
        return "?"  # there, os.kill would end the process; its beat must do
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return ""
    except OSError:
        return "?"
    return "?"


def _is_stopped(pid: int) -> bool:
    """Whether a process is stopped by a signal or a debugger; False when the system is silent."""
    try:
        return _stat(pid)[0] in "Tt"
    except (OSError, IndexError):
        return False


def _stat(pid: int) -> list[str]:
    """What Linux tells of a process, from its state on."""
    stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    return stat.rpartition(")")[2].split()
