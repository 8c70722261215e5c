"""The command `run --join`, and the runners that a run starts: as processes, or as tasks of dask.

Each joins the run by the address of its store. Dask only chooses where tasks run: questions and
answers go through the store, and so a worker that is lost costs nothing, and the tasks go on when
this program dies. This is the one module that imports `distributed`.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any

from evalstore.core.clock import Clock
from evalstore.core.display import status_word
from evalstore.core.errors import INTERRUPTED, OK, EvalstoreError, NoWorkspaceError, RevisionError
from evalstore.core.runs import ProgressListener, Run
from evalstore.files.access import normal_path
from evalstore.planning.open_project import locate_store, open_workspace, warn_before_opening
from evalstore.planning.options import Location, RunOptions
from evalstore.runs.execution.sharing.run_share import SharedWork
from evalstore.runs.run_record import (
    FinishedRun,
    RestoredRun,
    carry_out,
    record,
    require_joinable,
    restored,
)
from evalstore.store import Store
from evalstore.store.location import DatabaseAddress, StoreLocation, is_url, read_address
from evalstore.store.revisions import find_recorded
from evalstore.store.shared_runs import SharedRun

NEWEST = "@"
"""Names the newest run in progress."""


@dataclass(frozen=True, slots=True)
class JoinReport:
    """What this program has done of a run."""

    run: str | None
    """The id of the run; None while other programs still work on it."""
    asked: int
    judged: int
    failed: int
    cost: float
    """USD"""
    status: str | None = None
    """The status of the run; None while others still work on it."""
    stopped: str | None = None
    """What has stopped this program: `interrupted`, or the limit `max-cost` or `max-time`."""

    @property
    def exit_code(self) -> int:
        """Return the exit code of the command: that of the run belongs to who has begun it."""
        return INTERRUPTED if self.stopped == "interrupted" else OK


def join_run(
    location: Location, name: str, options: RunOptions, listener: ProgressListener
) -> JoinReport:
    """Take part in a run in progress: `@` for the newest one, or the start of its id.

    Its settings, models and prompts come from the store. Of `options`, the number of calls at once
    counts. One that is named and over by now is complete for this program: launchers may start it
    late. Raises `RevisionError` if the run does not exist.
    """
    # A migration would end the runs of programs of the older version that are in progress.
    with closing(Store.open(_find_store(location), may_migrate=False)) as store:
        run = _find(store, name)
        if isinstance(run, Run):
            shown = f"'evalstore show {run.id[:8]}' shows it"
            if run.status != "complete":
                shown = f"'evalstore run' does what is left; {shown}"
            recorded = f"it is recorded as {run.id[:8]}, {status_word(run.status)}"
            listener.note(f"run {name[:8]} is over: {recorded}; {shown}")
            return JoinReport(run.id, 0, 0, 0, 0.0, run.status)
        require_joinable(run)
        if run.is_silent:
            listener.note(f"no other program is working on run {run.id[:8]}: this one continues it")
        with restored(store, location, run) as known:
            return _take_part(known, run, options, listener)


def _find_store(location: Location) -> StoreLocation:
    """Return where the store is; where it is named, no workspace is needed.

    Warns of what has no effect in `.env`, also where that is why no store is named.
    """
    if location.keys_folder is None:  # the program that has started others has warned of it
        warn_before_opening(location.directory, location.warn)
    if location.store:
        if is_url(location.store):
            return read_address(location.store)
        return normal_path(location.directory, location.store)
    try:
        workspace = open_workspace(location)
    except NoWorkspaceError as error:
        hint = "'--store' or EVALSTORE_STORE names the store of the run; then none is needed"
        raise NoWorkspaceError(str(error), hint=hint) from error
    return locate_store(workspace, location)


def _find(store: Store, name: str) -> SharedRun | Run:
    """Return the run in progress with this name, or its record if it is over by now.

    The newest one must have a live runner: who names none may also wait for the next to begin.
    """
    runs = store.find_shared_runs()
    if name == NEWEST:
        live = [run for run in runs if not run.is_silent]
        named = ([run for run in live if not run.error] or live)[:1]
    else:
        named = [run for run in runs if run.id.startswith(name)]
    if len(named) == 1:
        return named[0]
    if named:
        raise RevisionError(f"'{name}' is ambiguous: {len(named)} runs in progress begin with it")
    if name == NEWEST:
        hint = "'evalstore run' begins one"
        if left := [run for run in runs if not run.error]:
            hint = f"'--join {left[0].id[:8]}' continues an abandoned run"
        raise RevisionError(f"no run is in progress in the store '{store.path}'", hint=hint)
    if recorded := find_recorded(store, name):
        return recorded
    known = ", ".join(run.id[:8] for run in runs if not run.error)
    raise RevisionError(
        f"no run in progress is called '{name}' in the store '{store.path}'",
        hint=f"those that can be joined are {known}" if known else "'evalstore run' begins one",
    )


def _take_part(
    known: RestoredRun, run: SharedRun, options: RunOptions, listener: ProgressListener
) -> JoinReport:
    project, origin, selection, stored = known
    options = replace(
        stored, concurrency=options.concurrency or stored.concurrency, fail_on="none", yes=True
    )
    clock = Clock(origin.started)
    plans, totals = known.plan()
    survey = plans.survey(totals.add)
    if project.location.keys_folder is None:  # the program that has started others says so itself
        for file in project.code.named:
            listener.warn(
                f"{file.words}; 'evalstore trust {file.path}' in the workspace, on this machine, "
                "allows it"
            )
    shared = SharedWork(run.id, False, run.cost_limit, run.elapsed)
    totals, outcome, own, is_last = carry_out(
        project, survey, plans, totals, clock, options, listener, shared, known.plan
    )
    done = (own.asked, own.judged, own.failed, own.cost + own.judge_cost)
    stopped = None
    if outcome.interrupted:
        stopped = "interrupted"
    elif outcome.over_budget:
        stopped = "max-time" if outcome.time_is_up else "max-cost"
    if not is_last:
        return JoinReport(None, *done, stopped=stopped)
    finished = FinishedRun(selection, options, totals, outcome, origin, clock())
    recorded = record(project, finished, shared, listener.note)
    return JoinReport(recorded.id, *done, recorded.status, stopped)


class _Runners:
    """The messages of the runners that a run has started: each is shown once, until the end."""

    def __init__(self, note: Callable[[str], None]) -> None:
        """`note` shows a message to the user."""
        self._note = note
        self._said: set[str] = set()
        self._lock = threading.Lock()
        self._is_over = False

    def _show(self, text: str) -> None:
        with self._lock:
            if self._is_over or text in self._said or text.startswith(_SAID_HERE):
                return
            self._said.add(text)
        self._note(text)

    def _end_messages(self) -> None:
        with self._lock:
            self._is_over = True


LOCAL = "local"
"""In place of an address: a cluster of processes on this machine."""
_CONNECT_SECONDS = 10
_PASSWORD_HINT = "each worker needs PGPASSWORD or ~/.pgpass"
_STORE = "EVALSTORE_STORE"
"""The variable of a worker that may have the address with its secrets."""
_SAID = "the password of the store is not sent through dask"


class DaskRunners(_Runners):
    """The tasks; used as `RunnerLauncher`."""

    def __init__(
        self,
        root: Path,
        store: DatabaseAddress,
        scheduler: str,
        count: int | None,
        note: Callable[[str], None],
    ) -> None:
        """`root` is the folder of the workspace; `note` shows a message to the user."""
        super().__init__(note)
        self._root = root
        self._store = store
        self._scheduler = scheduler
        self._count = count
        self._cluster: Any = None
        self._client: Any = None
        self._tasks: list[Any] = []

    def start(self, run: str, known: Collection[str]) -> None:
        """Submit the tasks; raises `EvalstoreError` when the scheduler cannot be reached.

        `known` are warnings that were shown already.
        """
        from distributed import fire_and_forget

        self._said.update(known)
        try:
            self._connect()
            workers = [*self._client.scheduler_info(n_workers=-1)["workers"]]
            count = self._count or len(workers) or 1
            for number in range(count):
                # Tasks beyond the workers that there are wait for those that come later.
                place = {"workers": [workers[number]]} if number < len(workers) else {}
                task = self._client.submit(
                    take_part,
                    str(self._store),
                    run,
                    str(self._root) if self._cluster else None,
                    key=f"evalstore-{run[:8]}-{number}",
                    pure=False,
                    allow_other_workers=bool(place),
                    **place,
                )
                task.add_done_callback(self._show_end)
                fire_and_forget(task)
                self._tasks.append(task)
        except EvalstoreError:
            raise
        except Exception as error:
            raise EvalstoreError(
                f"the scheduler '{self._scheduler}' does not take tasks: {_first_line(error)}",
                hint="here, the scheduler and its workers need the same version of 'distributed'",
            ) from error
        if not workers:
            self._show(f"the scheduler '{self._scheduler}' has no workers yet: they may still come")
        if self._store.has_secrets and not self._cluster:
            self._show(f"{_SAID}: {_PASSWORD_HINT}")

    def stop(self) -> None:
        """Cancel the tasks; those at work end when they next look at the run, which is over."""
        self._end_messages()
        with suppress(Exception):  # the scheduler may be gone, and the run is recorded
            if self._client:
                if self._tasks:
                    self._client.cancel(self._tasks, force=True)
                self._client.close(timeout=_CONNECT_SECONDS)
        with suppress(Exception):
            if self._cluster:
                self._cluster.close(timeout=_CONNECT_SECONDS)

    def _connect(self) -> None:
        from distributed import Client, LocalCluster

        # What these say of a connection that is lost is of no use to the user of this program.
        for name in ("client", "core", "comm", "nanny", "scheduler", "worker"):
            logging.getLogger(f"distributed.{name}").setLevel(logging.CRITICAL)
        address: Any = self._scheduler
        try:
            if self._scheduler == LOCAL:
                with _without_interrupts():
                    self._cluster = LocalCluster(
                        n_workers=self._count or len(os.sched_getaffinity(0)),
                        threads_per_worker=1,
                        # Any free port: a usual one may be in use, of which dask warns.
                        scheduler_kwargs={"dashboard": False, "dashboard_address": "127.0.0.1:0"},
                        silence_logs=logging.CRITICAL,
                        # The processes of this machine get the secrets as those of `processes` do.
                        env={_STORE: self._store.with_secrets()},
                    )
                address = self._cluster
            self._client = Client(address, timeout=_CONNECT_SECONDS, set_as_default=False)
        except Exception as error:
            raise EvalstoreError(
                f"the scheduler '{self._scheduler}' cannot be reached: {_first_line(error)}",
                hint="start one with 'dask scheduler', or use '--scheduler local'",
            ) from error

    def _show_end(self, task: Any) -> None:
        """Show why a worker could not take part, or that the scheduler is not heard any more."""
        if task.status == "finished":
            problem: dict[str, str] | None = task.result()
            if problem:
                self._show(f"a worker could not take part: {problem['error']}")
                if problem["hint"]:
                    self._show(f"hint: {problem['hint']}")
        elif task.status == "error":
            error = task.exception()
            self._show(f"a worker could not take part: {_first_line(error)}")
            if isinstance(error, ImportError):
                self._show("hint: install the same version of evalstore on all workers")
        elif self._client.status != "running":  # its tasks are cancelled here, not in the workers
            self._show(
                f"the connection to the scheduler '{self._scheduler}' was lost: if it has ended, "
                "its workers end within a minute, and this program does the rest"
            )


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Let the threads and processes that are started in the block get no SIGINT of a terminal.

    Ctrl-C is for this program, which ends them; each of them would print a traceback.
    """
    resource_tracker.ensure_running()  # else it is started in the block, and unblocks the signal
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def take_part(address: str, run: str, keys_folder: str | None) -> dict[str, str] | None:
    """Take part in a run, in a worker of dask; returns the error if that was not possible.

    `address` has no secrets; a worker of this machine has them in a variable. The error is no
    exception, which could not be read where other versions are installed.
    """
    store = find_secrets(address, os.environ.get(_STORE, ""))
    location = Location(
        Path.cwd(), store=store, keys_folder=Path(keys_folder) if keys_folder else None
    )
    try:
        join_run(location, run, RunOptions(), ProgressListener())
    except RevisionError:
        return None  # it is over
    except EvalstoreError as error:
        is_refused = "password" in str(error).lower()
        hint = f"{_SAID}: {_PASSWORD_HINT}" if is_refused else error.hint
        return {"error": str(error), "hint": hint or ""}
    return None


def find_secrets(address: str, known: str) -> str:
    """Return the address that the worker knows, if it is the same with its secrets."""
    if is_url(known):
        with suppress(EvalstoreError):
            if str(read_address(known)) == address:
                return known
    return address


def _first_line(error: BaseException) -> str:
    text = str(error).strip().partition("\n")[0]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


_GRACE_SECONDS = 15.0
"""Seconds in which a process may finish what is in flight before it is killed."""
_SAID_HERE = ("interrupted", "time is up")
"""How messages begin that this program shows, too."""
_OF_THE_COMMAND = ("EVALSTORE_RUN_", "EVALSTORE_JUDGE_", "EVALSTORE_PROGRESS", "EVALSTORE_CONFIG")
"""Prefixes of variables with options of this program, which are not those of its runners."""


class RunnerProcesses(_Runners):
    """The processes; used as `RunnerLauncher`.

    Their standard input is a pipe from this program: when that ends, however it ends, they do.
    """

    def __init__(
        self,
        root: Path,
        location: Location,
        store: StoreLocation,
        count: int | None,
        note: Callable[[str], None],
    ) -> None:
        """`root` is the folder of the workspace; `note` shows a message to the user."""
        super().__init__(note)
        self._root = root
        self._location = location
        self._store = store
        self._count = count or max(1, len(os.sched_getaffinity(0)) - 1)
        self._started: list[subprocess.Popen[str]] = []
        self._readers: list[threading.Thread] = []

    def start(self, run: str, known: Collection[str]) -> None:
        """Start the processes; `known` are warnings that were shown already."""
        self._said.update(known)
        for _ in range(self._count):
            process = subprocess.Popen(
                self._command(run),
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                env=self._environment(),
                encoding="utf-8",
                errors="backslashreplace",
            )
            self._started.append(process)
            reader = threading.Thread(target=self._read, args=(process,), daemon=True)
            self._readers.append(reader)
            reader.start()

    def stop(self) -> None:
        """Close the pipes, and wait until the processes have ended; one that hangs is killed."""
        self._end_messages()
        for process in self._started:
            assert process.stdin
            with suppress(OSError):
                process.stdin.close()
        for process in self._started:
            try:
                process.wait(_GRACE_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for reader in self._readers:
            reader.join(1.0)

    def _command(self, run: str) -> list[str]:
        location = self._location
        outside = ["--allow-outside"] if location.allow_outside else []
        shown = ["--color", "never", "--progress", "none", *outside]
        # -P: no module is loaded from the current folder, which may be that of a workspace.
        program = [sys.executable, "-P", "-m", "evalstore", "-C", str(self._root), *shown]
        return [*program, "run", "--join", run, "--until-eof"]

    def _environment(self) -> dict[str, str]:
        """Return the variables of a process; its command line could be read by other users."""
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(_OF_THE_COMMAND)
        }
        store = self._store
        named = (
            store.with_secrets() if isinstance(store, DatabaseAddress) else str(store.absolute())
        )
        return {**kept, "EVALSTORE_STORE": named}

    def _read(self, process: subprocess.Popen[str]) -> None:
        """Show what a process tells the user, and how it has ended if others do its work."""
        assert process.stderr
        with process.stderr:
            for line in process.stderr:
                self._show(line.rstrip("\n"))
        code = process.wait()
        if code < 0 and -code not in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            self._show(
                f"process {process.pid} was ended by signal {-code}: the other runners do its work"
            )
