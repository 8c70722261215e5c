"""A process that imports evalstore once and then forks a program for each order.

`python -m tests.hostile.campaign.launcher SOCKET` listens on a Unix socket. An order is one
line of JSON (see `processes.Order`); the answers are two lines: the process id, and, when the
program has ended, what it used. The launcher ends when its parent does.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import signal
import socket
import sys
import time
import traceback
from importlib import import_module
from typing import Any, NoReturn, TextIO

from tests import work_sizes

PRELOADED = (
    "alembic.command",
    "jsonschema",
    "evalstore.interfaces.cli.main",
    "evalstore.exchange.importers.base",
    "evalstore.exchange.import_tests",
    "evalstore.runs.run",
    "evalstore.runs.status.status",
    "evalstore.providers.openai_compatible",
    "evalstore.providers.script",
    "tests.hostile.campaign.fuzz_targets",
)


def main() -> int:
    """Serve orders until the parent process is gone."""
    parent = os.getppid()
    for name in PRELOADED:
        import_module(name)
    work_sizes.load()
    import_module("tests.hostile.forking").do_once()
    # A program that may only write short files would cut off bytecode that all others read.
    sys.dont_write_bytecode = True
    gc.collect()
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the keepers
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(sys.argv[1])
        listener.listen(64)
        listener.settimeout(1)
        os.write(1, b"listening\n")
        while os.getppid() == parent:
            try:
                connection, _ = listener.accept()
            except TimeoutError:
                continue
            if os.fork() == 0:
                listener.close()
                _keep(connection)
            connection.close()
    return 0


def _keep(connection: socket.socket) -> NoReturn:
    """Start the program of one order, wait for its end, and report both."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    connection.settimeout(None)
    with connection.makefile("rw", encoding="utf-8") as lines:
        order = json.loads(lines.readline())
        began = time.monotonic()
        pid = os.fork()
        if pid == 0:
            connection.detach()
            _become(order)
        _send(lines, pid)
        _, status, used = os.wait4(pid, 0)
        report = {
            "code": os.waitstatus_to_exitcode(status),
            "wall": time.monotonic() - began,
            "cpu": used.ru_utime + used.ru_stime,
            "peak": used.ru_maxrss * (1 if sys.platform == "darwin" else 1024),
        }
        _send(lines, report)
    os._exit(0)


def _send(lines: TextIO, report: Any) -> None:
    lines.write(json.dumps(report) + "\n")
    lines.flush()


def _become(order: dict[str, Any]) -> NoReturn:
    """Turn this process into the ordered program, with its limits, folder and streams."""
    code = 70
    try:
        os.setsid()
        os.chdir(order["folder"])
        os.environ.clear()
        os.environ.update(order["environment"])
        _redirect(order["streams"])
        for name, value in order["limits"].items():
            resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (value, value))
        if order["execute"]:
            os.execv(order["execute"][0], order["execute"])
        if order["clock"]:
            _shift_clock(order["clock"])
        work_sizes.put(order["sizes"])
        sys.argv = ["evalstore", *order["argv"]]
        code = import_module(order["module"]).main(order["argv"])
        sys.stdout.flush()
        sys.stderr.flush()
    except KeyboardInterrupt:  # it came before the program could hear it
        code = 130
    except BaseException:  # noqa: BLE001 - a forked process must never go on as its parent
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(code)


def _redirect(streams: dict[str, str | None]) -> None:
    for number, path in streams.items():
        target = int(number)
        if path is None:
            os.close(target)
            continue
        flags = os.O_RDONLY if target == 0 else os.O_WRONLY | os.O_CREAT | os.O_APPEND
        opened = os.open(path, flags, 0o600)
        os.dup2(opened, target)
        os.close(opened)


def _shift_clock(seconds: float) -> None:
    """Let the wall clock be so many seconds ahead."""
    now, now_ns = time.time, time.time_ns
    time.time = lambda: now() + seconds
    time.time_ns = lambda: now_ns() + int(seconds * 1e9)


if __name__ == "__main__":
    sys.exit(main())
