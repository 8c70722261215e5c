"""Leases, by which runs that share a store divide the work instead of doing it twice.

A runner takes a lease before it starts an item, and releases it in the transaction that stores the
result. The leases of a dead runner are free. Whether one is alive does not depend on clocks, which
jump and differ: on the same machine its process is checked, on others a counter that it increments
every few seconds. A process that is stopped (by SIGSTOP, or Ctrl-Z) counts as dead after two
minutes: when it continues, it goes on as a new runner.

The items of a batch are rows, too: the first runner offers them, and all of them take the next ones
that are free. The leases decide who does an item; these rows only keep runners from asking for the
same leases.
"""

from __future__ import annotations

import json
import math
import os
import platform
import secrets
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from evalstore.store.contents import as_any_digits, as_bytes, as_digits, as_id
from evalstore.store.database import Database, select_each
from evalstore.store.driver import Connection
from evalstore.store.run_documents import as_text, read_accounts
from evalstore.store.schema.table_definitions import (
    LEASES,
    RUN_SHARES,
    RUNNER_ACCOUNTS,
    RUNNERS,
    WORK,
)

BEAT_SECONDS = 3.0
"""Seconds between two beats of a runner."""
SILENT_SECONDS = 15.0
"""A runner on another machine counts as dead after so long without a beat."""
HUNG_SECONDS = 120.0
"""A runner on this machine whose process hangs or is stopped counts as dead after so long."""

_COLUMNS = ("runners.id", "place", "pid", "born")


class LeaseHolder(NamedTuple):
    """A program that executes a run."""

    id: str
    place: str
    pid: int
    born: str
    beat: int


def this_program() -> LeaseHolder:
    """Return this process as a new runner."""
    pid = os.getpid()
    return LeaseHolder(secrets.token_hex(16), machine_id(), pid, start_time(pid), 0)


class _SeenBeat(NamedTuple):
    """The beat of another runner, when it was first seen, and whether one before it was seen."""

    beat: int
    since: float
    has_changed: bool


class Leases:
    """The leases of one run."""

    def __init__(
        self,
        store: Database,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        runner: LeaseHolder | None = None,
    ) -> None:
        """`runner` is this program unless given."""
        self._store = store
        self._monotonic = monotonic
        self.runner = runner or this_program()
        self.accounts: frozenset[str] = frozenset()
        """The accounts with limits a minute whose calls this run makes."""
        self.sharers: dict[str, int] = {}
        """How many live runners used each of these accounts at the last beat."""
        self._joined = False
        self._last_contact = monotonic()
        self._seen: dict[str, _SeenBeat] = {}
        self.others: dict[str, LeaseHolder] = {}
        """The live runners that held keys of the last `claim`, by id."""

    def claim(self, keys: Collection[str], *, wait: bool = True) -> set[str]:
        """Take leases on these keys; returns the keys that this run holds now.

        Without `wait`, `StoreLockedError` is raised at once while another program writes.
        """
        holders, self.others = self._store.write(partial(self._claim, keys), wait=wait)
        return set(keys) - {key for key, runner in holders.items() if runner != self.runner.id}

    def _claim(
        self, keys: Collection[str], connection: Connection
    ) -> tuple[dict[str, str], dict[str, LeaseHolder]]:
        """Take the free leases; returns the holder of each key, and the other live holders."""
        self.join(connection)
        if insert_free_leases(connection, self.runner.id, keys) == len(keys):
            return dict.fromkeys(keys, self.runner.id), {}
        holders = _find_holders(connection, keys)
        others = set(holders.values()) - {self.runner.id}
        alive = self.remove_dead(connection, others)
        if freed := [key for key, runner in holders.items() if runner in others - alive.keys()]:
            insert_free_leases(connection, self.runner.id, freed)
            holders |= _find_holders(connection, freed)
            # Another runner may have been faster.
            alive |= self.remove_dead(connection, {holders[key] for key in freed} - others)
        return holders, alive

    def join(self, connection: Connection) -> None:
        """Add this runner; the first time also remove dead runners."""
        if not self._joined:
            self.remove_dead(connection)
        # Each time, because another process that considered this one dead may have removed it.
        is_new = connection.insert(RUNNERS, [(as_bytes(self.runner.id), *self.runner[1:])])
        if self.accounts and (is_new or not self._joined):
            accounts = json.dumps(sorted(self.accounts))
            connection.insert(RUNNER_ACCOUNTS, [(as_bytes(self.runner.id), accounts)])
        self._joined = True

    def register(self) -> None:
        """Add this runner before its first lease, so that others know of it."""
        self._store.write(self.join)

    def has_others(self) -> bool:
        """Return whether other live runners are at work."""

        def write(connection: Connection) -> bool:
            self.join(connection)
            return bool(self.remove_dead(connection))

        return self._store.write(write)

    def find_alive(self, runners: Collection[str]) -> dict[str, float]:
        """Return those of these runners that are not known to be dead, without this one.

        Each with the time at which it certainly was alive: now on this machine, else when its beat
        was seen to change; minus infinity until then.
        """

        def write(connection: Connection) -> dict[str, float]:
            times = dict[str, float]()
            for id, runner in self.remove_dead(connection, set(runners)).items():
                times[id] = self._seen[id].since if self._seen[id].has_changed else -math.inf
                if runner.place == self.runner.place:
                    times[id] = self._monotonic()
            return times

        return self._store.write(write)

    def remove_dead(
        self, connection: Connection, runners: set[str] | None = None
    ) -> dict[str, LeaseHolder]:
        """Remove the dead of these runners, or of all, with their leases; returns the live ones."""
        query = f"SELECT {_columns(connection)} FROM runners"
        if runners is None:
            rows: Iterable[Sequence[Any]] = connection.execute(query).fetchall()
        else:
            rows = select_each(connection, f"{query} WHERE id IN", runners)
        holders = dict(map(_as_holder, rows))
        return self._remove_dead(connection, holders if runners is None else runners, holders)

    def _remove_dead(
        self, connection: Connection, runners: Iterable[str], holders: dict[str, LeaseHolder]
    ) -> dict[str, LeaseHolder]:
        """Remove the dead of these runners; `holders` are those that the store knows."""
        self._note_contact()
        runners = {*runners} - {self.runner.id}
        holders.pop(self.runner.id, None)
        alive = {id: holder for id, holder in holders.items() if self._is_alive(holder)}
        for id in sorted(runners - alive.keys()):
            # One that beats at this very moment is not dead, and has asked for its leases.
            if id not in holders or _delete_silent(connection, holders[id]):
                remove_runner(connection, id)
        return alive

    def _note_contact(self) -> None:
        """Note that the store is reached; after a long time without, others get their time anew.

        While this process slept, or the server was away, their beats could not be seen.
        """
        now = self._monotonic()
        if now - self._last_contact > SILENT_SECONDS / 2:
            self._seen.clear()
        self._last_contact = now

    def _is_alive(self, runner: LeaseHolder) -> bool:
        silence = self._silence(runner)
        if runner.place != self.runner.place:
            return silence < SILENT_SECONDS
        began = start_time(runner.pid)
        if not began or began != runner.born:
            return False
        return silence < HUNG_SECONDS

    def _silence(self, runner: LeaseHolder) -> float:
        """Return for how many seconds the beat of a runner has not changed."""
        now = self._monotonic()
        seen = self._seen.get(runner.id)
        if seen is None or seen.beat != runner.beat:
            seen = self._seen[runner.id] = _SeenBeat(runner.beat, now, seen is not None)
        return now - seen.since

    def has(self, key: str) -> bool:
        """Return whether this run holds the lease on a key; others see that it is alive."""

        def write(connection: Connection) -> bool:
            # Without the beat, another runner might remove the lease the moment after.
            is_known = self._beat(connection)
            return is_known and _find_holders(connection, [key]).get(key) == self.runner.id

        return self._store.write(write)

    def beat(self) -> bool:
        """Show that this runner is alive, and remove dead ones; returns False if it was removed."""

        def write(connection: Connection) -> bool:
            is_known = self._beat(connection)
            self.sharers = self._count_sharers(connection)
            return is_known

        return self._store.write(write) if self._joined else True

    def _beat(self, connection: Connection) -> bool:
        self.runner = self.runner._replace(beat=self.runner.beat + 1)
        values = (self.runner.beat, as_bytes(self.runner.id))
        is_known: bool = (
            connection.execute("UPDATE runners SET beat = ? WHERE id = ?", values).rowcount > 0
        )
        if not is_known:
            self.join(connection)
        return is_known

    def count_sharers(self) -> dict[str, int]:
        """Return how many live runners use each account of this run, itself included."""

        def write(connection: Connection) -> dict[str, int]:
            self.join(connection)
            return self._count_sharers(connection)

        return self._store.write(write)

    def _count_sharers(self, connection: Connection) -> dict[str, int]:
        accounts = connection.dialect.as_stored("accounts")
        columns = f"{_columns(connection)}, {accounts}"
        query = f"SELECT {columns} FROM runners LEFT JOIN runner_accounts USING (id)"
        rows = connection.execute(query).fetchall()
        holders = dict(_as_holder(row[:-1]) for row in rows)
        alive = self._remove_dead(connection, list(holders), holders)
        counts = dict.fromkeys(self.accounts, 1)
        for id, *_, accounts in rows:
            if accounts and as_any_digits(id) in alive:
                for account in self.accounts.intersection(read_accounts(accounts) or ()):
                    counts[account] += 1
        return counts

    def leave(self, *, stays: bool = False) -> None:
        """Release all leases; with `stays`, others see this runner until its run is recorded."""

        def write(connection: Connection) -> None:
            self.remove_dead(connection)  # one may have died before it took anything
            (release_items if stays else remove_runner)(connection, self.runner.id)

        if self._joined:
            self._store.write(write)
            self._joined = False


def _as_holder(row: Sequence[Any]) -> tuple[str, LeaseHolder]:
    """Return a runner with its id."""
    id = as_any_digits(row[0])
    place, pid, born, beat = row[1:]
    return id, LeaseHolder(id, as_text(place), pid, as_text(born), beat)


def _columns(connection: Connection) -> str:
    return ", ".join([*map(connection.dialect.as_stored, _COLUMNS), "beat"])


def _find_holders(connection: Connection, keys: Iterable[str]) -> dict[str, str]:
    """Return the runners that hold these keys, by key."""
    rows = select_each(connection, "SELECT id, runner FROM leases WHERE id IN", keys)
    # A lease whose runner is not bytes could not be removed, and a run would wait for it forever.
    return {
        as_any_digits(id): (runner if isinstance(runner, bytes) else as_id(runner)).hex()
        for id, runner in rows
    }


def insert_free_leases(connection: Connection, runner: str, keys: Iterable[str]) -> int:
    """Insert leases on those of these keys that no runner holds; returns how many these are."""
    # All runners take them in one order: so none waits for one that waits for it.
    rows = [(as_bytes(key), as_bytes(runner)) for key in sorted(set(keys))]
    return connection.insert(LEASES, rows) if rows else 0


def take_leases(connection: Connection, runner: str, keys: Iterable[str]) -> None:
    """Insert leases on keys, also on those that a dead runner holds."""
    rows = [(as_bytes(key), as_bytes(runner)) for key in sorted(set(keys))]
    if rows and connection.insert(LEASES, rows) < len(rows):
        ids = [id for id, _ in rows]
        connection.change_in(
            "DELETE FROM leases WHERE runner <> ? AND id IN", ids, as_bytes(runner)
        )
        connection.insert(LEASES, rows)


def delete_leases(connection: Connection, runner: str, keys: Iterable[str]) -> None:
    """Release leases, unless another runner holds them by now."""
    ids = [as_bytes(key) for key in sorted(keys)]
    if ids:
        connection.change_in("DELETE FROM leases WHERE runner = ? AND id IN", ids, as_bytes(runner))


def _delete_silent(connection: Connection, runner: LeaseHolder) -> bool:
    """Delete a runner unless its beat has changed; returns whether it is deleted."""
    statement = "DELETE FROM runners WHERE id = ? AND beat = ?"
    deleted: int = connection.execute(statement, (as_bytes(runner.id), runner.beat)).rowcount
    return deleted > 0


def release_items(connection: Connection, runner: str) -> None:
    """Release all that a runner has taken; what its calls in flight may cost counts as spent."""
    for statement in (
        "DELETE FROM leases WHERE runner = ?",
        "UPDATE work SET runner = NULL WHERE runner = ?",
        "UPDATE run_shares SET spent = spent + reserved, reserved = 0 WHERE id = ?",
    ):
        connection.execute(statement, (as_bytes(runner),))


def remove_runner(connection: Connection, runner: str) -> None:
    """Remove a runner, and release all that it has taken."""
    release_items(connection, runner)
    for table in (RUNNER_ACCOUNTS, RUNNERS):
        connection.execute(f"DELETE FROM {table.name} WHERE id = ?", (as_bytes(runner),))


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


# --- what runners have done of plans and shared runs, in the transactions of their facts


def delete_work(connection: Connection, keys: Sequence[str]) -> None:
    """Delete items that are done, or that have failed."""
    if keys:
        connection.change_in(
            "DELETE FROM work WHERE id IN", [as_bytes(key) for key in sorted(keys)]
        )


def write_counts(connection: Connection, runner: str, counts: str) -> None:
    """Note what a runner has done of its shared run; without a share, nothing is noted."""
    connection.execute(
        f"UPDATE {RUN_SHARES.name} SET counts = ? WHERE id = ?", (counts, as_bytes(runner))
    )


class OfferedItem(NamedTuple):
    """An item of a batch, in the order of its plan."""

    key: str
    """The key of its lease."""
    account: str
    """The account that its calls are counted for, by the same name on all machines."""


class WorkRows:
    """The items of one batch."""

    def __init__(self, store: Database, leases: Leases, batch: str) -> None:
        """`batch` is an id that all runners of the same part of the same plan compute."""
        self._store = store
        self._leases = leases
        self._batch = as_bytes(batch)

    def offer(self, items: Sequence[OfferedItem]) -> None:
        """Add the items that no runner has offered yet."""
        rows = [
            (as_bytes(item.key), self._batch, item.account, place, None)
            for place, item in enumerate(items)
        ]

        def write(connection: Connection) -> None:
            self._leases.join(connection)
            if rows:
                connection.insert(WORK, rows)

        self._store.write(write)

    def take(self, account: str, count: int) -> list[str]:
        """Take up to `count` items of an account that are free; returns their keys, in order."""
        runner = as_bytes(self._leases.runner.id)

        def write(connection: Connection) -> list[str]:
            rows = connection.execute(
                "WITH free AS (SELECT id FROM work "
                "WHERE batch = ? AND account = ? AND runner IS NULL "
                f"ORDER BY place LIMIT ? {connection.dialect.skip_locked}) "
                "UPDATE work SET runner = ? WHERE id IN (SELECT id FROM free) RETURNING place, id",
                (self._batch, account, count, runner),
            ).fetchall()
            return [as_digits(id) for _, id in sorted(rows)]

        return self._store.write(write)

    def delete(self, keys: Sequence[str]) -> None:
        """Delete items that are done already."""
        self._store.write(lambda connection: delete_work(connection, keys))

    def is_left(self, account: str) -> bool:
        """Return whether other runners still work on items of an account; frees those of dead ones.

        Also true when items were freed just now.
        """
        query = "SELECT DISTINCT runner FROM work WHERE batch = ? AND account = ?"

        def write(connection: Connection) -> bool:
            rows = connection.execute(query, (self._batch, account)).fetchall()
            holders = {None if id is None else as_digits(id) for (id,) in rows}
            others = {id for id in holders if id is not None} - {self._leases.runner.id}
            self._leases.remove_dead(connection, others)
            return bool(others) or None in holders

        return self._store.write(write)
