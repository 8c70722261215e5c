"""Leases, by which runs that share a store divide the work instead of doing it twice.

A runner takes a lease before it starts an item, and releases it in the transaction that stores the
result. The leases of a dead runner are free. Whether one is alive does not depend on clocks, which
jump and differ: on the same machine its process is checked, on others a counter that it increments
every few seconds. A process that is stopped (by SIGSTOP, or Ctrl-Z) counts as dead after two
minutes: when it continues, it goes on as a new runner.

The items of a batch are rows, too: the first runner offers them, and all of them take the next ones
that are free. The leases decide who does an item; these rows only keep runners from asking for the
same leases.

Whoever may write to a shared store can write any text, as can a program of another version. So the
JSON texts with which programs describe runs in progress are read here: what is returned has the
fields and types that others rely on.
"""

from __future__ import annotations

import json
import math
import os
import platform
import secrets
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pydantic_core import CoreConfig, SchemaValidator, ValidationError
from pydantic_core import core_schema as shape

from evalstore import __version__
from evalstore.core.display import safe
from evalstore.core.errors import NewerError, StoreError
from evalstore.core.values import Json
from evalstore.store.contents import as_any_digits, as_bytes, as_digits, as_id
from evalstore.store.driver import Connection
from evalstore.store.records import Database, select_each
from evalstore.store.schema.table_definitions import (
    LEASES,
    RUN_SHARES,
    RUNNER_ACCOUNTS,
    RUNNERS,
    WORK,
)

FORMAT = 1
"""The format of descriptions. Increase this number when they change."""
LARGEST = 8 * 2**20
"""The most characters of a description."""
NOTED = "noted"
"""The field with the time at which a runner was last heard of, by the clock of the database."""
LEFT = "left"
"""The field that is true when a runner takes no part any more, and will not record the run."""
LEADS = "leads"
"""The field that is true for the runner that has begun the run."""
ENDED = "ended"
"""The field that is true when a runner has nothing left to do."""
RECORDS = "records"
"""The field that is true when the runner that has begun the run begins to record it."""
FACTS = ("asked", "recorded", "judged", "judged_by_checks")
"""The numbers of what is stored."""
NUMBERS = (*FACTS, "failed", "permanent_failures")
COSTS = ("cost", "judge_cost")
ENDS = ("interrupted", "over_budget", "time_is_up", "stopped_at_failure")
CALLS = (
    *("calls", "input_tokens", "output_tokens", "cached_tokens"),
    *("unpriced", "simulated", "local"),
)
"""The numbers of the calls of one model; their cost is `cost`."""
_LATEST = 2**53
"""The last time that is believed, in microseconds since 1970: in the year 2255."""


class UnreadableError(ValueError):
    """A text cannot be read; says in words what is wrong."""


def explain(run: str, problem: str, description: Any = "") -> StoreError:
    """Return the error for a run in progress that cannot be read.

    A run of another version is not damaged. `run` is its id.
    """
    name = f"run {run[:8]}, which is in progress,"
    described: Mapping[str, Json] = {}
    with suppress(UnreadableError):
        described = _read(_MADE_BY, description, "")
    if described.get("format", 0) > FORMAT:
        form = described["format"]
        return NewerError(name, f"the format {form} of its description is not known")
    if (version := described.get("version", __version__)) != __version__:
        return StoreError(
            f"{name} cannot be read: {problem}; it was begun by evalstore {quoted(version)}, and "
            f"this is {__version__}",
            hint="use the same version on all machines",
        )
    return StoreError(
        f"{name} cannot be read: {problem}",
        hint="whoever began it can run again; once no program works on it, the owner of the store "
        f"can delete the row {run} of the table 'shared_runs'",
    )


def quoted(text: str, most: int = 100) -> str:
    """Return a stored text as a message repeats it: in one line, and not too long."""
    return safe(text[:most]) + ("…" if len(text) > most else "")


def as_text(value: Any) -> Any:
    """Return a text of the database that is read as its bytes; other values as they are."""
    try:
        return value.decode() if isinstance(value, bytes) else value
    except UnicodeDecodeError:
        return value


def read_description(text: Any) -> Json:
    """Return the description of a run, with the known fields alone; raises `UnreadableError`.

    One with a `problem` may lack all that is necessary to join it.
    """
    found = _read(_DESCRIPTION, text, "its description")
    if not found.get("problem"):
        found = _read(_JOINABLE, text, "its description")
        if found["config"] not in found["files"]:
            raise UnreadableError("the field 'config' of its description is not valid")
    return found


def read_counts(text: Any) -> dict[str, Json]:
    """Return what a runner has noted, with the known fields alone; raises `UnreadableError`."""
    noted: dict[str, Json] = _read(_COUNTS, text, "what one of its programs has noted")
    return noted


def read_accounts(text: Any) -> list[str] | None:
    """Return the accounts of a runner; None if they cannot be read."""
    try:
        return list(_read(_ACCOUNTS, as_text(text), ""))
    except UnreadableError:
        return None


def _read(form: SchemaValidator, text: Any, place: str) -> Any:
    """Return a JSON text of a form, without fields that are not known.

    Raises `UnreadableError`, which calls the text `place`.
    """
    try:
        if text.__class__ is str and len(text) <= 2 * LARGEST:
            return form.validate_json(text)
    except (ValidationError, UnicodeEncodeError) as error:
        if isinstance(error, ValidationError) and (field := error.errors()[0]["loc"]):
            raise UnreadableError(f"the field '{field[0]}' of {place} is not valid") from None
    raise UnreadableError(f"{place} is not a JSON object")


def require_amounts(reserved: Any, spent: Any) -> None:
    """Raise `UnreadableError` for amounts that no runner has written."""
    for name, amount in (("reserved", reserved), ("spent", spent)):
        if not is_amount(amount):
            raise UnreadableError(
                f"what one of its programs has {name}, {amount!r:.40} USD, is not an amount"
            )


_STRICT = CoreConfig(strict=True)
"""Nothing is converted."""


def _object_of(
    fields: Mapping[str, Any],
    *always: str,
    others: Literal["forbid", "ignore"] = "forbid",
) -> Any:
    """Return the schema of an object with some of these fields, and `always` with some."""
    members = {
        name: shape.typed_dict_field(field, required=name in always)
        for name, field in fields.items()
    }
    return shape.typed_dict_schema(members, extra_behavior=others, config=_STRICT)


def _list_of(*items: Any) -> Any:
    """Return the schema of a list with exactly these items."""
    return shape.tuple_schema([*items], strict=False)


_TEXT, _FLAG = shape.str_schema(), shape.bool_schema()
_COUNT = shape.int_schema(ge=0, lt=2**63)
_POSITIVE = shape.int_schema(gt=0, lt=2**63)
_ID = shape.str_schema(pattern="^[0-9a-f]{32}$")
_TEXTS = shape.list_schema(_TEXT)
_AMOUNT = shape.float_schema(ge=0, lt=2**63)
_TIME = shape.int_schema(ge=0, le=_LATEST)
_OR_NONE = shape.nullable_schema
is_amount = SchemaValidator(_AMOUNT, _STRICT).isinstance_python
"""Returns whether a value is a number that an amount of money or seconds can be."""
is_time = SchemaValidator(_TIME, _STRICT).isinstance_python
"""Returns whether a value is a time that a clock may show, in microseconds since 1970."""
_ACCOUNTS = SchemaValidator(_TEXTS, _STRICT)
SELECTION = {
    **dict.fromkeys(("name", "shard", "maxAge"), _OR_NONE(_TEXT)),
    **dict.fromkeys(("paths", "tags", "excludeTags", "models", "evaluators"), _TEXTS),
    **dict.fromkeys(("attempts", "sample", "limit"), _OR_NONE(_POSITIVE)),
    "seed": _OR_NONE(shape.int_schema()),
    **dict.fromkeys(
        ("changed", "lastFailed", "refresh", "retryErrors", "offline", "keepGoing"), _FLAG
    ),
}
"""The options that select cases, with their forms."""
_TO_JOIN = {
    "files": shape.dict_schema(_TEXT, _TEXT),
    "config": _TEXT,
    "overrides": _TEXTS,
    "cases": _ID,
    "started": _TIME,
    "selection": _object_of(SELECTION),
    "message": _OR_NONE(_TEXT),
    "git": _OR_NONE(_list_of(_TEXT, _OR_NONE(_FLAG))),
    "options": _object_of(
        {
            "concurrency": _OR_NONE(_POSITIVE),
            "timeout": _OR_NONE(shape.float_schema(gt=0, lt=2**63)),
            "retries": _OR_NONE(_COUNT),
            "judge_only": _FLAG,
            "max_time": _OR_NONE(_AMOUNT),
            "exit_first": _FLAG,
        }
    ),
}
"""The fields that a program needs to take part."""
_MADE_BY = SchemaValidator(
    _object_of({"format": _COUNT, "version": _TEXT}, others="ignore"), _STRICT
)
_FIELDS = {
    "format": shape.int_schema(ge=FORMAT, le=FORMAT),
    "version": _TEXT,
    **_TO_JOIN,
    "author": _OR_NONE(_TEXT),
    "sources": _OR_NONE(_ID),
    "planned": _object_of(dict.fromkeys(("ask", "judge"), _COUNT), others="ignore"),
    "problem": _TEXT,
}
_DESCRIPTION, _JOINABLE = (
    SchemaValidator(_object_of(_FIELDS, "format", "version", *more, others="ignore"), _STRICT)
    for more in ((), _TO_JOIN)
)
_SPENT = _object_of({**dict.fromkeys(CALLS, _COUNT), "cost": _AMOUNT}, others="ignore")
_ROLE = shape.literal_schema(["candidate", "evaluator"])
_COUNTS = SchemaValidator(
    _object_of(
        {
            **dict.fromkeys(NUMBERS, _COUNT),
            **dict.fromkeys(COSTS, _AMOUNT),
            **dict.fromkeys((*ENDS, "priced", LEADS, ENDED, RECORDS, LEFT), _FLAG),
            "failures": shape.dict_schema(_TEXT, _COUNT),
            "spending": shape.list_schema(_list_of(_TEXT, _ROLE, _SPENT)),
            NOTED: _TIME,
        },
        others="ignore",
    ),
    _STRICT,
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
        now = self._monotonic()
        if now - self._last_contact > SILENT_SECONDS / 2:
            # While this process slept, or the server was away, the beats of others were not seen.
            self._seen.clear()
        self._last_contact = now
        runners = {*runners} - {self.runner.id}
        holders.pop(self.runner.id, None)
        alive = {id: holder for id, holder in holders.items() if self._is_alive(holder)}
        for id in sorted(runners - alive.keys()):
            # One that beats at this very moment is not dead, and has asked for its leases.
            if id not in holders or _delete_silent(connection, holders[id]):
                remove_runner(connection, id)
        return alive

    def _is_alive(self, runner: LeaseHolder) -> bool:
        now, seen = self._monotonic(), self._seen.get(runner.id)
        if seen is None or seen.beat != runner.beat:
            seen = self._seen[runner.id] = _SeenBeat(runner.beat, now, seen is not None)
        silence = now - seen.since
        if runner.place != self.runner.place:
            return silence < SILENT_SECONDS
        began = start_time(runner.pid)
        if not began or began != runner.born:
            return False
        return silence < HUNG_SECONDS

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
