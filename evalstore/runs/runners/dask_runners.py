"""Starts runners as tasks of dask: each joins the run by the address of its store.

Dask only chooses where they run. Questions and answers go through the store, and so a worker that
is lost costs nothing, and the tasks go on when this program dies. This is the one module that
imports `distributed`.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any

from evalstore.core.display import plural
from evalstore.core.errors import EvalstoreError, RevisionError
from evalstore.core.runs import ProgressListener
from evalstore.planning.options import Location, RunOptions
from evalstore.runs.runners.join import join_run
from evalstore.store.location import DatabaseAddress, is_url, read_address

LOCAL = "local"
"""In place of an address: a cluster of processes on this machine."""
_CONNECT_SECONDS = 10
_PASSWORD_HINT = "each worker needs PGPASSWORD or ~/.pgpass"
_STORE = "EVALSTORE_STORE"
"""The variable of a worker that may have the address with its secrets."""
_OF_ALL = "all"
"""The topic of dask's scheduler that tells which workers come and go."""
_KILLED = "KilledWorker"
"""The error of a task that several workers were lost with."""
_END_WITHOUT = "its workers end within a minute"
"""What dask does with them: it waits for their tasks for half a minute."""
_SAID = "the password of the store is not sent through dask"


class DaskRunners:
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
        self._root = root
        self._store = store
        self._scheduler = scheduler
        self._count = count
        self._note = note
        self._said: set[str] = set()
        self._lock = threading.Lock()
        self._is_over = False
        self._cluster: Any = None
        self._client: Any = None
        self._tasks: list[Any] = []
        self._workers = LiveWorkers()
        self._has_lost_scheduler = False
        self.remark = ""
        """What the end of the run says when the scheduler or all workers were lost; else empty."""

    def start(self, run: str, known: Collection[str]) -> None:
        """Submit the tasks; raises `EvalstoreError` when the scheduler cannot be reached.

        `known` are warnings that were shown already.
        """
        from distributed import fire_and_forget

        self._said.update(known)
        try:
            self._connect()
            self._client.subscribe_topic(_topic(run), self._show_event)
            self._client.subscribe_topic(_OF_ALL, self._watch_workers)
            workers = [*self._client.scheduler_info(n_workers=-1)["workers"]]
            self._workers.add(workers)
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
        with self._lock:
            self._is_over = True
            self.remark = self._workers.remark
            if self._has_lost_scheduler:
                lost = f"the scheduler '{self._scheduler}' was lost: {_END_WITHOUT}"
                self.remark = f"{lost}, and this program did the rest"
        with suppress(Exception):  # the scheduler may be gone, and the run is recorded
            if self._client:
                if self._tasks:
                    self._client.unsubscribe_topic(_OF_ALL)  # else its end is told to itself
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
            if type(error).__name__ == _KILLED:
                return  # the loss of each of its workers was told
            self._show(f"a worker could not take part: {_first_line(error)}")
            if isinstance(error, ImportError):
                self._show("hint: install the same version of evalstore on all workers")
        elif self._client.status != "running":  # its tasks are cancelled here, not in the workers
            self._has_lost_scheduler = True
            self._show(
                f"the connection to the scheduler '{self._scheduler}' was lost: if it has ended, "
                f"{_END_WITHOUT}, and this program does the rest"
            )

    def _show_event(self, event: tuple[float, Any]) -> None:
        self._show(str(event[1]))

    def _watch_workers(self, event: tuple[float, Any]) -> None:
        """Show that a worker is gone which took part."""
        happened = event[1]
        if happened["action"] == "add-worker":
            self._workers.come(happened["worker"])
        elif happened["action"] == "remove-worker":
            own = {task.key for task in self._tasks}
            text = self._workers.remove(
                happened["worker"],
                took_part=not own.isdisjoint(happened["processing-tasks"]),
                is_expected=happened["expected"],
            )
            if text:
                self._show(text)

    def _show(self, text: str) -> None:
        with self._lock:
            if self._is_over or text in self._said:
                return
            self._said.add(text)
        self._note(text)


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


class LiveWorkers:
    """The workers that a scheduler has, as its events tell; they may come before the list."""

    def __init__(self) -> None:
        self._live: set[str] = set()
        self._gone: set[str] = set()
        self._lost = 0
        """How many of those that are gone took part in the run."""

    def add(self, addresses: Iterable[str]) -> None:
        """Add the workers of a list, unless they are known to be gone since it was made."""
        self._live |= {*addresses} - self._gone

    def come(self, address: str) -> None:
        """Add a worker that has just come, also where one was lost that had its address."""
        self._gone.discard(address)
        self._live.add(address)

    def remove(self, address: str, *, took_part: bool, is_expected: bool) -> str:
        """Remove a worker; returns what the user is told, which is nothing if it took no part."""
        self._live.discard(address)
        self._gone.add(address)
        if not took_part:
            return ""
        self._lost += 1
        end = "has left" if is_expected else "was lost"
        if not self._live:
            return f"the last worker of dask {end} ({address}): this program does the rest"
        left = plural(len(self._live), "worker")
        verb = "is" if len(self._live) == 1 else "are"
        return f"a worker of dask {end} ({address}): {left} {verb} left and the others do its work"

    @property
    def remark(self) -> str:
        """Return that all workers were lost; empty while there are some, or if none was lost."""
        if self._live or not self._lost:
            return ""
        return f"all workers of dask were lost ({self._lost:,}): this program did the rest"


def take_part(address: str, run: str, keys_folder: str | None) -> dict[str, str] | None:
    """Take part in a run, in a worker of dask; returns the error if that was not possible.

    `address` has no secrets; a worker of this machine has them in a variable. The error is no
    exception, which could not be read where other versions are installed.
    """
    store = find_secrets(address, os.environ.get(_STORE, ""))
    location = Location(
        Path.cwd(), store=store, keys_folder=Path(keys_folder) if keys_folder else None
    )
    listener = _TaskListener(_topic(run))
    try:
        join_run(location, run, RunOptions(), listener)
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


class _TaskListener(ProgressListener):
    """Sends messages for the user to the program that has begun the run."""

    def __init__(self, topic: str) -> None:
        self._topic = topic

    def note(self, message: str) -> None:
        """Send a message."""
        from distributed import get_worker

        with suppress(Exception):  # it is only a message
            get_worker().log_event(self._topic, message)


def _topic(run: str) -> str:
    return f"evalstore-{run}"


def _first_line(error: BaseException) -> str:
    text = str(error).strip().partition("\n")[0]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
