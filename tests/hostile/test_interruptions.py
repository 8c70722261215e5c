"""An interruption ends the program with 130 and one line, whatever it is doing just then."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
AT_IMPORT = """
import os, signal, sys

class Interrupting:
    def __init__(self, number):
        self.left = number

    def find_spec(self, name, path=None, target=None):
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGINT)

from evalstore.__main__ import run
finder = Interrupting(int(sys.argv.pop(1)))
sys.meta_path.insert(0, finder)
exit_code = run()
print(f"imports: {-finder.left}", file=sys.stderr)
sys.exit(exit_code)
"""
"""Interrupts itself when the program imports its n-th module; says how many it imports."""
AT_START = """
import os, sys

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == "signal":
            os.kill(os.getpid(), 2)

sys.modules.pop("signal", None)
sys.meta_path.insert(0, Interrupting())
from evalstore.__main__ import run
sys.exit(run())
"""
"""Interrupts itself before the program can install an answer."""
AT_EXIT = """
import atexit, os, signal, sys, threading
from evalstore.__main__ import run

class Late:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)

def interrupt_late(main=threading.main_thread()):
    main.join()  # until the interpreter waits for its threads
    os.kill(os.getpid(), signal.SIGINT)
    threading.Event().wait(1)  # it is not waited for

how = sys.argv.pop(1)
if how == "threads":
    threading.Thread(target=interrupt_late).start()
elif how == "atexit":
    atexit.register(os.kill, os.getpid(), signal.SIGINT)
else:
    sys.kept = Late()
sys.exit(run())
"""


AT_CLOSE = """
import os, signal, sys
from evalstore.__main__ import run
from {} as Connections

def close(connections, close_all=Connections.close):
    os.kill(os.getpid(), signal.SIGINT)
    close_all(connections)

Connections.close = close
sys.exit(run())
"""
"""Interrupts itself when it closes the connections of the store."""
CONNECTIONS = {
    "sqlite": "evalstore.store.sqlite.driver import SQLiteDriver",
    "postgresql": "evalstore.store.postgresql.driver import PostgreSQLDriver",
}
"""What has the connections, by the name of the database."""


LOOP = """
import os, signal, sys
from asyncio.selector_events import BaseSelectorEventLoop as Loop
from evalstore.__main__ import run

def close(loop, close_pipe=Loop._close_self_pipe):
    {}

Loop._close_self_pipe = close
sys.exit(run())
"""
"""A run whose event loop is closed with these statements."""


AT_LOOP_CLOSE = LOOP.format(
    "close_pipe(loop); signal.signal(signal.SIGINT, lambda *_: None);"
    " os.kill(os.getpid(), signal.SIGINT)"
)
"""Is interrupted when a run has ended and its event loop is closed; nothing handles that."""


AT_LOOP_END = LOOP.format("os.kill(os.getpid(), signal.SIGINT); close_pipe(loop)")
"""Interrupts itself when a run has ended and its event loop is about to be closed."""


def started(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


@cache
def imports_of(*arguments: str) -> int:
    """How many modules a command imports."""
    output = started(AT_IMPORT, "0", *arguments).stderr
    return int(output.rpartition("imports: ")[2])


@pytest.mark.opens_no_store
@pytest.mark.xdist_group("imports")
@pytest.mark.parametrize("part", [0.0, 0.3, 0.7, 1.0])
def test_while_modules_are_imported(workspace: Path, part: float) -> None:
    number = round(part * imports_of("check")) if part else 1
    ran = started(AT_IMPORT, str(number), "check")
    assert (ran.returncode, ran.stderr.partition("imports: ")[0]) == (130, "interrupted\n")


@pytest.mark.opens_no_store
def test_before_anything_can_answer(workspace: Path) -> None:
    ran = started(AT_START, "check")
    assert (ran.returncode, ran.stdout, ran.stderr) == (130, "", "interrupted\n")


@pytest.mark.slow
def test_at_any_import(workspace: Path) -> None:
    for number in range(1, imports_of("run") + 1, 5):
        shutil.rmtree(workspace / ".evalstore", ignore_errors=True)
        ran = started(AT_IMPORT, str(number), "run")
        assert ran.returncode == 130, (number, ran.stderr)
        assert "Traceback" not in ran.stderr, (number, ran.stderr)


@pytest.mark.opens_no_store
@pytest.mark.parametrize("how", ["threads", "atexit", "modules"])
def test_once_the_command_is_done_its_exit_code_stays(workspace: Path, how: str) -> None:
    ran = started(AT_EXIT, how, "check")
    assert (ran.returncode, ran.stdout, ran.stderr) == (
        0,
        "1 test file, 2 cases: no errors\n",
        "",
    )


def test_while_the_store_is_closed(workspace: Path, database: str) -> None:
    ran = started(AT_CLOSE.format(CONNECTIONS[database]), "fsck")
    assert (ran.returncode, ran.stderr) == (130, "interrupted\n")


def test_while_the_event_loop_is_closed(workspace: Path) -> None:
    ran = started(AT_LOOP_CLOSE, "run", "--yes", "--fail-on", "none")
    assert ran.returncode == 0, ran.stderr
    assert "Exception ignored" not in ran.stderr


def test_before_the_event_loop_is_closed_it_is_kept_until_then(workspace: Path) -> None:
    ran = started(AT_LOOP_END, "run", "--yes", "--fail-on", "none")
    assert (ran.returncode, "Exception ignored" in ran.stderr) == (130, False), ran.stderr
    assert "interrupted: 2 new answers, 2 new verdicts" in ran.stdout
    assert "    interrupted: 2 new answers" in started(AT_LOOP_END, "log").stdout


@pytest.mark.opens_no_store
def test_a_program_in_the_background_ignores_it(workspace: Path) -> None:
    ignoring = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
    ran = started(ignoring + AT_IMPORT, "100", "check")
    assert (ran.returncode, ran.stdout) == (0, "1 test file, 2 cases: no errors\n")


@pytest.mark.opens_no_store
def test_in_the_midst_of_a_command_it_is_one_line(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from evalstore.interfaces.cli.main import main

    def interrupt(*_arguments: object, **_options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("evalstore.runs.workspace_checks.doctor.check", interrupt)
    assert main(["check"]) == 130
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("", "interrupted\n")


def test_a_termination_while_modules_are_imported_is_quiet(workspace: Path) -> None:
    ran = started(AT_IMPORT.replace("SIGINT", "SIGTERM"), "50", "status")
    assert (ran.returncode, ran.stdout, ran.stderr) == (-signal.SIGTERM, "", "")
