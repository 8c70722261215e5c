"""A process of the program that is compared: it loads the program once and forks for each command.

`PYTHON -P server.py PROGRAM` reads orders, each a line of JSON (see `programs.Order`), and answers
each with the exit code. It runs with the Python of the program, which may have nothing of this
project: so it imports only what Python has.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
import tempfile
import time
import traceback
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from types import CodeType

_LONGEST = 600
"""Seconds after which a command is killed."""
_STARTS_THREADS = frozenset({"__main__", "litellm", "pyarrow"})
"""Packages that are not loaded before a fork."""


def main() -> int:
    """Answer orders until there are no more."""
    script = compile(Path(sys.argv[1]).read_bytes(), sys.argv[1], "exec")
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "loaded.json")
        for line in sys.stdin:
            pid = os.fork()
            if pid == 0:
                _become(script, json.loads(line), report)
            _, status = os.waitpid(pid, 0)
            sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
            sys.stdout.flush()
            _load(report)
    return 0


def _load(report: Path) -> None:
    """Load what the last command has loaded, from the same folders, for the next ones."""
    if not report.exists():
        return
    loaded = json.loads(report.read_text(encoding="utf-8"))
    report.unlink()
    sys.path[:] = loaded["path"]
    for name in loaded["modules"]:
        if name not in sys.modules and name.split(".")[0] not in _STARTS_THREADS:
            with suppress(Exception):
                import_module(name)
    gc.freeze()


def _become(script: CodeType, order: dict[str, Any], report: Path) -> NoReturn:
    """Turn this process into the program with its arguments, folder, streams and clock."""
    code: object = 70
    known = set(sys.modules)
    try:
        os.setsid()
        signal.alarm(_LONGEST)
        os.chdir(order["folder"])
        os.environ.clear()
        os.environ.update(order["environment"])
        for number, path in enumerate((os.devnull, order["stdout"], order["stderr"])):
            opened = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
            os.dup2(opened, number)
            os.close(opened)
        now: int = order["now"]
        time.time = lambda: now / 1e9
        time.time_ns = lambda: now
        sys.argv = [sys.argv[1], *order["arguments"]]
        exec(script, {"__name__": "__main__", "__file__": sys.argv[0]})
        code = 0
    except SystemExit as end:
        code = end.code or 0
    except BaseException:  # noqa: BLE001 - a forked process must never go on as its parent
        traceback.print_exc()
    finally:
        _leave(code, known, report)


def _leave(code: object, known: set[str], report: Path) -> NoReturn:
    """Say what was loaded, and end at once."""
    try:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        new = [name for name in sys.modules if name not in known]
        if new:
            loaded = {"path": sys.path, "modules": new}
            report.write_text(json.dumps(loaded), encoding="utf-8")
    finally:
        os._exit(code if isinstance(code, int) else 1)


if __name__ == "__main__":
    sys.exit(main())
