"""The program without its start: forked from a process that has loaded everything.

`Popen` is that of `subprocess`, and what it starts is a child like any other; but where it is
`python -m evalstore`, a second of loading is saved. `shell_program` is for scripts. `python -m
tests.zygote SOCKET` is the process.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

from tests.hostile.campaign.launcher import PRELOADED

ROOT = Path(__file__).parents[1]
"""The checkout."""
PROGRAMS = {
    "evalstore": ("evalstore.__main__", "run"),
    "benches.simulated_runners": ("benches.simulated_runners", "print_outcome"),
    "distributed.cli.dask_scheduler": ("distributed.cli.dask_scheduler", "main"),
    "distributed.cli.dask_worker": ("distributed.cli.dask_worker", "main"),
}
"""Programs that are forked, as `python -m` names them, each with the function that runs it."""
_ADOPT = 36
"""`PR_SET_CHILD_SUBREAPER`, of Linux: whose parents have ended are children of this process."""
_LONGEST = 1 << 20
"""Bytes of an order."""
_STUB = """#!{python} -IS
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as connection:
    connection.connect({socket!r})
    order = dict(module="evalstore", argv=sys.argv[1:], cwd=os.getcwd(), waits=True)
    order["env"] = dict(os.environ)
    socket.send_fds(connection, [json.dumps(order).encode()], [0, 1, 2])
    with connection.makefile() as lines:
        lines.readline()
        code = int(lines.readline() or 70)
if code < 0:
    os.kill(os.getpid(), -code)
sys.exit(code)
"""


class Popen(subprocess.Popen[Any]):
    """Starts a program; one of `PROGRAMS` as a fork."""

    if sys.platform == "linux":

        def _execute_child(self, args: Any, *rest: Any) -> None:
            _, _, _, pass_fds, cwd, env, _, _, shell, *more = rest
            pipes, (_, _, _, _, umask, session, group) = more[:6], more[6:]
            command = [] if shell or isinstance(args, str | bytes) else list(map(os.fspath, args))
            if command[:1] == [sys.executable]:
                command = [word for word in command if word != "-P"]
            is_plain = not pass_fds and umask < 0 and group < 0
            is_known = command[:2] == [sys.executable, "-m"] and command[2] in PROGRAMS
            if not (is_plain and is_known):
                super()._execute_child(args, *rest)  # type: ignore[misc]
                return
            order = {
                "module": command[2],
                "argv": command[3:],
                "cwd": os.fspath(cwd or Path.cwd()),
                "env": dict(os.environ if env is None else env),
                "session": session,
            }
            streams = [pipes[0], pipes[3], pipes[5]]
            streams = [own if given < 0 else given for own, given in enumerate(streams)]
            self.pid = _fork(order, streams)
            self._child_created = True
            self._close_pipe_fds(*pipes)  # type: ignore[attr-defined]


class _Zygote:
    """The process that this one forks programs from."""

    path = ""
    """Where it listens; empty before it is started."""
    lock = threading.Lock()


def _socket() -> str:
    """Where the zygote listens; starts it."""
    with _Zygote.lock:
        if not _Zygote.path:
            folder = tempfile.mkdtemp(prefix="evalstore-zygote-")
            path = f"{folder}/socket"
            process = subprocess.Popen(
                [sys.executable, "-m", "tests.zygote", path],
                cwd=ROOT,
                env={**os.environ, "PYTHONHASHSEED": "0"},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                start_new_session=True,  # Ctrl-C is for the tests
            )
            atexit.register(_end, process, Path(path))
            assert process.stdout
            assert process.stdout.readline(), "it does not start"
            _Zygote.path = path
        return _Zygote.path


def _end(process: subprocess.Popen[bytes], path: Path) -> None:
    process.kill()
    process.communicate()
    path.unlink()
    path.parent.rmdir()


def shell_program(path: Path) -> Path:
    """Write a program for scripts that is evalstore; returns its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(_STUB.format(python=sys.executable, socket=_socket()), encoding="utf-8")
    path.chmod(0o755)
    return path


def _fork(order: dict[str, Any], streams: list[int]) -> int:
    """Start a program; returns the id of the process, a child of this one."""
    path = _socket()
    with _Zygote.lock, socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        _adopt(yes=True)
        try:
            socket.send_fds(connection, [json.dumps(order).encode()], streams)
            with connection.makefile() as lines:
                return int(lines.readline())
        finally:
            _adopt(yes=False)


def _adopt(*, yes: bool) -> None:
    ctypes.CDLL(None).prctl(_ADOPT, int(yes), 0, 0, 0)


def main() -> int:
    """Serve orders until the parent process is gone."""
    for name in PRELOADED:
        import_module(name)
    with suppress(ImportError):  # it is a package of an extra
        for name, _ in PROGRAMS.values():
            import_module(name)
    import_module("tests.hostile.forking").do_once()
    gc.collect()
    gc.freeze()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(sys.argv[1])
        listener.listen(64)
        os.write(1, b"listening\n")
        _serve(listener, os.getppid())
    return 0


def _serve(listener: socket.socket, parent: int) -> None:
    listener.settimeout(1)
    while os.getppid() == parent:
        with suppress(TimeoutError):
            connection, _ = listener.accept()
            connection.settimeout(None)
            with connection:
                _start(connection, listener)
        with suppress(ChildProcessError):
            os.waitpid(-1, os.WNOHANG)


def _start(connection: socket.socket, listener: socket.socket) -> None:
    """Fork a program, and say its id when nobody stands between it and who has ordered it."""
    data, streams, _, _ = socket.recv_fds(connection, _LONGEST, 3)
    if not data:
        return
    while data[-1:] != b"}" or not (order := _read(data)):
        data += connection.recv(_LONGEST)
    reading, writing = os.pipe()
    keeper = os.fork()
    if not keeper:
        listener.close()
        os.close(reading)
        program = os.fork()
        if not program:
            os.close(writing)
            connection.close()
            _become(order, streams)
        for stream in streams:
            os.close(stream)
        if order.get("waits"):
            os.close(writing)
            _wait(program, connection)
        os.write(writing, str(program).encode())
        os._exit(0)
    os.close(writing)
    for stream in streams:
        os.close(stream)
    said = os.read(reading, 64)
    os.close(reading)
    if said:
        os.waitpid(keeper, 0)
        connection.sendall(said + b"\n")


def _read(data: bytes) -> dict[str, Any]:
    """An order; empty while it is not whole."""
    try:
        read: dict[str, Any] = json.loads(data)
    except ValueError:
        return {}
    return read


def _wait(program: int, connection: socket.socket) -> NoReturn:
    """Say how a program has ended; kill it when nobody listens any more."""
    ended = os.pidfd_open(program)
    connection.sendall(f"{program}\n".encode())
    ready, _, _ = select.select([ended, connection.fileno()], [], [])
    if ended not in ready:
        os.kill(program, signal.SIGKILL)
    _, status = os.waitpid(program, 0)
    with suppress(OSError):
        connection.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())
    os._exit(0)


def _become(order: dict[str, Any], streams: list[int]) -> NoReturn:
    """Turn this process into the ordered program."""
    code = 70
    try:
        if order.get("session"):
            os.setsid()
        os.chdir(order["cwd"])
        os.environ.clear()
        os.environ.update(order["env"])
        time.tzset()
        for target, stream in enumerate(streams):
            os.dup2(stream, target)
        for stream in streams:
            os.close(stream)
        if "processes" in order["argv"]:
            _become_parent()
        sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
        sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
        sys.stderr = os.fdopen(2, "w", 1, "utf-8", "backslashreplace", closefd=False)
        sys.argv = [order["module"], *order["argv"]]
        module, function = PROGRAMS[order["module"]]
        code = getattr(import_module(module), function)() or 0
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    except KeyboardInterrupt:  # it came before the program could hear it
        code = 130
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException:  # noqa: BLE001 - a forked process must never go on as its parent
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(code)


def _become_parent() -> None:
    """Let the programs that this one starts be forks, too: of a copy that has no threads yet."""
    folder = tempfile.mkdtemp(prefix="evalstore-zygote-")
    path = f"{folder}/socket"
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(64)
    parent = os.getpid()
    if not os.fork():
        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(nowhere, stream)
        os.close(nowhere)
        try:
            _serve(listener, parent)
        finally:
            Path(path).unlink()
            Path(folder).rmdir()
            os._exit(0)
    listener.close()
    _Zygote.path = path
    subprocess.Popen = Popen  # type: ignore[misc]


if __name__ == "__main__":
    sys.exit(main())
