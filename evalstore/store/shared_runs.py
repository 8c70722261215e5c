"""Queries for runs in progress that several runners carry out: their description and shares."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from evalstore.core import hashing
from evalstore.core.errors import RevisionError, StoreError
from evalstore.core.runs import Run, describe_run
from evalstore.core.values import Json
from evalstore.store.contents import as_any_digits, as_bytes
from evalstore.store.driver import Connection
from evalstore.store.leases import (
    LEFT,
    NOTED,
    UnreadableError,
    as_text,
    explain,
    has_process,
    is_amount,
    is_time,
    read_counts,
    read_description,
    remove_runner,
    require_amounts,
)
from evalstore.store.records import Database, ensure, make_rows
from evalstore.store.schema.table_definitions import (
    RUN_SHARES,
    RUNNER_ACCOUNTS,
    RUNNERS,
    RUNS,
    SHARED_RUNS,
    WORK,
)

_ID_DIGITS = 32
_ROUNDING = 1e-9
"""USD; allows for the rounding errors of floats."""
SILENT_SECONDS = 60.0
"""Nobody joins the newest run by chance when none of its runners was heard of for so long."""
ABANDONED_SECONDS = 600.0
"""A run is abandoned when none of its runners was heard of for so long.

That is longer than a server is waited for, and than a large run is planned again at its end."""


class RunShare(NamedTuple):
    """What one runner has done of a run."""

    runner: str
    reserved: float
    """The most that its calls in flight may cost, in USD."""
    spent: float
    """USD"""
    counts: Json
    """What it has asked and judged; empty if that cannot be read."""
    text: str
    """The same as it is stored."""
    is_registered: bool
    """Whether the store still knows the runner; one that has ended or died is removed."""
    has_process: bool | None
    """Whether its process is on this machine; None if it may be on another one."""
    is_own: bool
    """Whether this process is the runner."""
    problem: str
    """Why it cannot be read; empty if it can."""


class SharedRun(NamedTuple):
    """A run in progress."""

    id: str
    description: Json
    """Its settings, snapshot and selection; empty if they cannot be read."""
    elapsed: float
    """Seconds since it started, by the clock of the database."""
    cost_limit: float | None
    """The most that all its runners together may spend, in USD."""
    silence: float
    """Seconds since one of its runners was last heard of, by the clock of the database."""
    has_process: bool | None
    """Whether the process of a runner is on this machine; None if some may be on others."""
    shares: Sequence[RunShare]
    """In no order."""
    error: StoreError | None = None
    """Why it cannot be read, with its name; None if it can."""

    @property
    def is_own(self) -> bool | None:
        """Return whether this process carries it out; None as long as nobody has noted anything."""
        return any(share.is_own for share in self.shares) if self.shares else None

    @property
    def is_silent(self) -> bool:
        """Return whether probably no runner carries it out."""
        return self._has_no_runner_for(SILENT_SECONDS)

    @property
    def is_abandoned(self) -> bool:
        """Return whether no runner will record it."""
        return self._has_no_runner_for(ABANDONED_SECONDS)

    def _has_no_runner_for(self, seconds: float) -> bool:
        if self.has_process is None:
            return self.silence >= seconds
        return not self.has_process


class ShareState(NamedTuple):
    """The state of a shared run when a runner has written its share."""

    is_open: bool
    """Whether the run is still in progress."""
    is_within: bool
    """Whether the share, with what was to be reserved, is within the limit of the run."""
    reserved: float
    """What calls in flight of other runners may cost, in USD."""
    spent: float
    """What the others have spent, in USD."""
    noted: int = 0
    """The time of the database, in microseconds since 1970."""
    reserving: frozenset[str] = frozenset()
    """The other runners that have calls in flight that may cost something."""


class SharedRunQueries(Database):
    """The queries for runs in progress."""

    def add_shared_run(self, id: str, description: Json, cost_limit: float | None) -> None:
        """Add a run in progress; `id` is unpredictable."""
        text = json.dumps(description, ensure_ascii=False)

        def write(connection: Connection) -> None:
            # Each database has one clock, whatever those of the runners show.
            (row,) = connection.execute(f"SELECT {connection.dialect.clock}").fetchall()
            connection.insert(SHARED_RUNS, [(as_bytes(id), text, row[0], cost_limit)])

        self.write(write)

    def find_shared_runs(self) -> list[SharedRun]:
        """Return the runs in progress, and those whose runners have died; newest first.

        Those that cannot be read have an error.
        """
        with self._reading() as connection:
            dialect = self.dialect
            id, text, *numbers = map(
                dialect.as_stored, ("id", "description", "started", "cost_limit")
            )
            columns = ", ".join([id, text, dialect.clock, *numbers])
            rows = connection.execute(
                f"SELECT {columns} FROM shared_runs ORDER BY started DESC, id"
            ).fetchall()
            return [_describe(connection, as_any_digits(row[0]), *row[1:]) for row in rows]

    def find_shares(self, run: str) -> list[RunShare]:
        """Return what each runner has done of a run, in no order."""
        with self._reading() as connection:
            return _find_shares(connection, as_bytes(run))

    def write_share(
        self,
        run: str,
        runner: str,
        reserved: float,
        spent: float,
        counts: Json,
        *,
        more: float = 0.0,
        own_limit: float | None = None,
    ) -> ShareState:
        """Note what a runner has spent, and what its calls in flight may cost.

        `more` is reserved, too, unless it would exceed the limit of the run, or the `own_limit` by
        which the runner knows it. After the run has been recorded, nothing is noted. Raises
        `StoreError` if others have noted what cannot be an amount.
        """

        def write(connection: Connection) -> ShareState:
            dialect = connection.dialect
            rows = connection.execute(
                f"SELECT cost_limit, {dialect.clock} FROM shared_runs WHERE id = ? "
                f"{dialect.for_update}",
                (as_bytes(run),),
            ).fetchall()
            if not rows:
                return ShareState(is_open=False, is_within=False, reserved=0.0, spent=0.0)
            limit, now = _lower(rows[0][0], own_limit), rows[0][1]
            text = json.dumps({**counts, NOTED: now}, ensure_ascii=False)
            others_reserved, others_spent, reserving = 0.0, 0.0, set()
            amounts = ", ".join(map(dialect.as_stored, ("id", "reserved", "spent")))
            for id, was_reserved, was_spent in connection.execute(
                f"SELECT {amounts} FROM run_shares WHERE run = ?", (as_bytes(run),)
            ).fetchall():
                if as_any_digits(id) != runner:
                    _refuse_wrong(run, was_reserved, was_spent)
                    others_reserved += was_reserved
                    others_spent += was_spent
                    if was_reserved:
                        reserving.add(as_any_digits(id))
            total = others_reserved + others_spent + reserved + spent + more
            is_within = limit is None or total <= limit + _ROUNDING
            # What others have counted as spent when they considered this runner dead may be due.
            kept = reserved + more if is_within else reserved
            connection.execute(
                "INSERT INTO run_shares (id, run, reserved, spent, counts) VALUES (?, ?, ?, ?, ?) "
                "ON CONFLICT (id) DO UPDATE SET reserved = excluded.reserved, "
                "spent = excluded.spent, counts = excluded.counts",
                (as_bytes(runner), as_bytes(run), kept, spent, text),
            )
            others = others_reserved, others_spent, now, frozenset(reserving)
            return ShareState(True, is_within, *others)

        return self.write(write)

    def record_shared_run(self, id: str, run: Run) -> Run | None:
        """Record a run that was in progress; None if another runner has done so.

        Returns it with its id.
        """
        run_id, content = hashing.identify(describe_run(run))
        rows = make_rows({run_id: content})

        def write(connection: Connection) -> bool:
            if not _remove(connection, id):
                # This very transaction may have been carried out before its answer was lost.
                return _is_recorded(connection, run_id)
            ensure(connection, RUNS, rows)
            return True

        return replace(run, id=run_id) if self.write(write) else None

    def record_abandoned_run(self, seen: SharedRun, run: Run | None) -> bool:
        """Record a run in progress that was found abandoned, or remove it without a record.

        Returns False, and does nothing, if one of its runners was heard of since.
        """
        key = as_bytes(seen.id)
        rows = make_rows(dict([hashing.identify(describe_run(run))] if run else []))

        def write(connection: Connection) -> bool:
            lock = connection.dialect.for_update
            query = f"SELECT id FROM {SHARED_RUNS.name} WHERE id = ? {lock}"
            if not connection.execute(query, (key,)).fetchall():
                return any(_is_recorded(connection, id) for id in rows)
            columns = ", ".join(map(connection.dialect.as_stored, ("id", "counts")))
            query = f"SELECT {columns} FROM {RUN_SHARES.name} WHERE run = ? {lock}"
            noted = connection.execute(query, (key,)).fetchall()
            counts = {as_any_digits(id): as_text(text) for id, text in noted}
            if counts != {share.runner: share.text for share in seen.shares}:
                return False
            for runner in counts:
                remove_runner(connection, runner)
            _remove(connection, seen.id)
            ensure(connection, RUNS, rows)
            return True

        return self.write(write)

    def remove_shared_runs(self, ids: Iterable[str]) -> None:
        """Remove runs in progress that nobody will record."""
        for id in ids:
            self.write(lambda connection, id=id: _remove(connection, id))  # type: ignore[misc]


def _describe(
    connection: Connection, id: str, text: Any, now: int, started: Any, limit: float | None
) -> SharedRun:
    """Return a run in progress, with what is known of its runners."""
    text, is_started = as_text(text), is_time(started)
    if not is_started:
        started = now
    shares = _find_shares(connection, as_bytes(id))
    heard = [share.counts.get(NOTED, started) for share in shares]
    # One that is silent for so long does not come back, or notices that it is too late.
    processes = [
        False
        if share.counts.get(LEFT)
        or (share.has_process is None and now - noted >= 1e6 * ABANDONED_SECONDS)
        else share.has_process
        for share, noted in zip(shares, heard, strict=True)
    ]
    known: bool | None = True in processes
    if not known and (None in processes or not processes):
        known = None
    problems = [share.problem for share in shares if share.problem]
    description: Json = {}
    try:
        description = read_description(text)
        if not is_started or not (limit is None or is_amount(limit)):
            raise UnreadableError("its start or its limit of cost is not valid")
        if len(id) != _ID_DIGITS:
            raise UnreadableError("its id is not valid")
    except UnreadableError as wrong:
        problems.insert(0, str(wrong))
    unreadable = explain(id, problems[0], text) if problems else None
    elapsed, silence = (max(now - time, 0) / 1e6 for time in (started, max([started, *heard])))
    return SharedRun(id, description, elapsed, limit, silence, known, shares, unreadable)


def _find_shares(connection: Connection, run: bytes | None) -> list[RunShare]:
    names = (f"{RUN_SHARES.name}.id", "reserved", "spent", "counts", "place", "pid", "born")
    query = (
        f"SELECT {', '.join(map(connection.dialect.as_stored, names))}, runners.id IS NOT NULL "
        "FROM run_shares LEFT JOIN runners ON runners.id = run_shares.id WHERE run = ?"
    )
    shares = []
    for row in connection.execute(query, (run,)).fetchall():
        id, reserved, spent, text, *process, is_registered = row
        place, pid, born = map(as_text, process)
        is_here = has_process(place, pid, born) if place is not None else None
        is_own = bool(is_here) and pid == os.getpid()
        text, counts, problem = as_text(text), dict[str, Json](), ""
        try:
            counts = read_counts(text)
            require_amounts(reserved, spent)
        except UnreadableError as error:
            problem = str(error)
        state = (bool(is_registered), is_here, is_own, problem)
        shares.append(RunShare(as_any_digits(id), reserved, spent, counts, text, *state))
    return shares


def _lower(stored: float | None, own: float | None) -> float | None:
    """Return the lower of two limits; one that cannot be an amount allows nothing."""
    limits = [limit for limit in (stored, own) if limit is not None]
    return min((limit if is_amount(limit) else 0.0 for limit in limits), default=None)


def _refuse_wrong(run: str, reserved: float, spent: float) -> None:
    """Raise `StoreError` for amounts with which what the run costs cannot be known."""
    try:
        require_amounts(reserved, spent)
    except UnreadableError as error:
        raise StoreError(
            f"run {run[:8]} cannot go on, as its cost is not known: {error}",
            hint="run again: what was answered until now is stored; 'evalstore fsck' names the row",
        ) from error


def _is_recorded(connection: Connection, run: str) -> bool:
    query = f"SELECT count(*) FROM {RUNS.name} WHERE id = ?"
    return bool(connection.execute(query, (as_bytes(run),)).fetchall()[0][0])


def _remove(connection: Connection, id: str) -> bool:
    key = (as_bytes(id),)
    # The runner that has begun the run stays until here, so that no other one records it.
    leader = f"SELECT id FROM {RUN_SHARES.name} WHERE run = ? AND counts LIKE '%\"leads\": true%'"
    for table in (RUNNER_ACCOUNTS, RUNNERS):
        connection.execute(f"DELETE FROM {table.name} WHERE id IN ({leader})", key)
    connection.execute(f"DELETE FROM {RUN_SHARES.name} WHERE run = ?", key)
    removed: int = connection.execute(f"DELETE FROM {SHARED_RUNS.name} WHERE id = ?", key).rowcount
    if not connection.execute(f"SELECT id FROM {SHARED_RUNS.name} LIMIT 1").fetchall():
        connection.execute(f"DELETE FROM {WORK.name}")  # what a run that was stopped has left
    return removed > 0


class RunInProgress(NamedTuple):
    """A run that is not recorded yet."""

    run: str
    """The id of the run in progress, which `run --join` takes; its record has another one."""
    author: str | None
    seconds: int
    """Since it began, by the clock of the database."""
    programs: int
    """How many programs carry it out; 0 when nothing was heard of any for some time."""
    asked: int
    """Answers so far."""
    judged: int
    """Judgements so far."""
    joinable: bool
    """Whether other programs can take part in it."""
    to_ask: int | None = None
    """How many answers were missing when it began; None if that is not described."""
    to_judge: int | None = None
    """The same of judgements, at most."""


def find_runs_in_progress(
    store: SharedRunQueries,
) -> tuple[tuple[RunInProgress, ...], tuple[str, ...]]:
    """Return the runs in progress that can be read, newest first, and warnings about the others."""
    found = store.find_shared_runs()
    return (
        tuple(_in_progress(run) for run in found if not run.error),
        tuple(describe_unreadable(run.error) for run in found if run.error),
    )


def describe_unreadable(error: StoreError) -> str:
    """Return the warning about a run in progress that is left out."""
    return f"{error}; {error.hint}"


def find_runs_of_others(store: SharedRunQueries, *, is_running: bool) -> tuple[RunInProgress, ...]:
    """Return those of other programs; with `is_running`, this program carries one out, too.

    Then those of which no program is known yet are left out, as one of them may be its own. So are
    those that cannot be read.
    """
    left_out = (True, None) if is_running else (True,)
    runs = store.find_shared_runs()
    others = (run for run in runs if run.is_own not in left_out and not run.error)
    return tuple(_in_progress(run) for run in others)


def load_run_in_progress(store: SharedRunQueries, id: str) -> tuple[RunInProgress, SharedRun]:
    """Return a run in progress by its full id; raises `RevisionError` if it is over by now.

    Raises `StoreError` if it cannot be read.
    """
    for run in store.find_shared_runs():
        if run.id == id:
            if run.error:
                raise run.error
            return _in_progress(run), run
    raise RevisionError(
        f"run {id[:8]} has just ended", hint="'evalstore show' shows the newest run"
    )


def _in_progress(run: SharedRun) -> RunInProgress:
    shares = run.shares
    at_work = [share for share in shares if share.is_registered and not share.counts.get("ended")]
    planned = run.description.get("planned", {})
    return RunInProgress(
        run=run.id,
        author=run.description.get("author"),
        seconds=int(run.elapsed),
        programs=0 if run.is_silent else max(len(at_work), 1),
        asked=sum(share.counts.get("asked", 0) for share in shares),
        judged=sum(share.counts.get("judged", 0) for share in shares),
        joinable=not run.description.get("problem"),
        to_ask=planned.get("ask"),
        to_judge=planned.get("judge"),
    )
