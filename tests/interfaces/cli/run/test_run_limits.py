"""Under limits of the shell or the machine nothing false is stored: what could not run waits."""

from __future__ import annotations

import errno
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from evalstore.core.errors import INCOMPLETE, STORE_UNUSABLE, NotRunError
from evalstore.files.processes import pool
from evalstore.files.processes.pool import Code, CodeError, Workers
from tests.builders import tree
from tests.forked_programs import Starter
from tests.interfaces.cli.conftest import Evalstore
from tests.interfaces.cli.run.test_run_checks import verdicts, with_checks

pytestmark = pytest.mark.extended

resource = pytest.importorskip("resource")

FILE = "tests/checks/mine.py"
SOURCE = """\
def judge(given):
    return "Warm" in given["answer"]
"""
MIB = 2**20


@pytest.fixture
def coded(workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace with a trusted Python check of two rows: the row Oslo fails."""
    monkeypatch.setenv("EVALSTORE_TRUST_FILE", str(tmp_path / "trusted"))
    text = with_checks("- python: {file: checks/mine.py, function: judge}", prose=False)
    return tree(workspace, {"tests/weather.md": text, FILE: SOURCE})


class Ended(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


Limited = Callable[..., Ended]


@pytest.fixture
def limited(start: Starter) -> Limited:
    """Run a command under a limit that it cannot raise, as after `ulimit`."""

    def run(limit: str, most: int, *argv: str) -> Ended:
        return Ended(*start(*argv, limits={limit.removeprefix("RLIMIT_"): most}).finish())

    return run


LIMITS = pytest.mark.parametrize(
    ("limit", "most", "option"),
    [
        ("RLIMIT_CPU", 8, "ulimit -t"),
        ("RLIMIT_NOFILE", 64, "ulimit -n"),
        ("RLIMIT_FSIZE", 4 * MIB, "ulimit -f"),
        pytest.param(
            "RLIMIT_AS",
            1000 * MIB,
            "ulimit -v",
            marks=pytest.mark.skipif(sys.platform != "linux", reason="it is not enforced"),
        ),
    ],
)


@LIMITS
def test_a_check_that_may_have_less_than_it_should_waits(
    coded: Path,
    evalstore: Evalstore,
    limited: Limited,
    documents: Any,
    limit: str,
    most: int,
    option: str,
) -> None:
    evalstore("trust", FILE)
    ran = limited(limit, most, "run", "--json")
    assert (ran.returncode, "Traceback" in ran.stderr) == (3, False), ran.stderr
    document = json.loads(ran.stdout)
    assert (document["asked"], document["judged"], document["verdicts"]["pending"]) == (2, 0, 2)
    assert option in document["failures"][0]["message"]
    assert "checks/mine.py could not be run: its shell does not allow" in ran.stdout
    later = documents("run")
    assert (later["asked"], later["judged"]) == (0, 2)
    assert verdicts(later) == {"city=Oslo": "fail", "city=Rome": "pass"}


def test_a_limit_that_leaves_room_changes_nothing(
    coded: Path, evalstore: Evalstore, limited: Limited, documents: Any
) -> None:
    evalstore("trust", FILE)
    ran = limited("RLIMIT_CPU", 40, "run", "--json")
    assert (ran.returncode, ran.stderr) == (1, "")
    assert verdicts(json.loads(ran.stdout)) == {"city=Oslo": "fail", "city=Rome": "pass"}
    assert documents("run")["judged"] == 0


def test_the_reason_is_in_the_log_of_failures(
    coded: Path, evalstore: Evalstore, limited: Limited
) -> None:
    evalstore("trust", FILE)
    limited("RLIMIT_NOFILE", 64, "run")
    log = evalstore("log", "--failures")
    assert "could not be run: its shell does not allow 256 open files (ulimit -n)" in log.stdout
    assert "run again when the machine has room for it" in log.stderr
    assert evalstore("fsck").exit_code == 0


# --- processes


def judge(name: str, *, source: str, seconds: float = 20, together: Workers | None = None) -> Any:
    actual = together or Workers()
    request = {"name": name, "isClass": False, "args": {}, "given": {"answer": "Warm"}}
    try:
        return actual.call(Code(source.encode(), "mine.py", 1024), request, seconds)
    finally:
        if together is None:
            actual.close()


def test_no_folder_for_temporary_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/nowhere")
    with pytest.raises(NotRunError, match=r"mine.py could not be run: no process can be started"):
        judge("judge", source=SOURCE)


@pytest.mark.parametrize("code", [errno.EAGAIN, errno.ENOMEM, errno.EMFILE])
def test_no_process(monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    def refuse(*_given: Any, **_named: Any) -> None:
        raise OSError(code, "no")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    with pytest.raises(NotRunError, match="no process can be started"):
        judge("judge", source=SOURCE)


@pytest.mark.parametrize("program", ["nowhere.py", "ends.py"])
def test_a_process_that_ends_before_the_file_is_loaded(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, program: str
) -> None:
    tree(tmp_path, {"ends.py": "import os; os._exit(1)"})
    monkeypatch.setattr(pool, "PROGRAM", tmp_path / program)
    with pytest.raises(NotRunError, match="its process did not start"):
        judge("judge", source=SOURCE)


def test_a_file_whose_process_never_starts_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    tries: list[object] = []

    def refuse(*arguments: object, **_named: object) -> None:
        tries.append(arguments)
        raise BlockingIOError(errno.EAGAIN, "no")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    together = Workers()
    for _ in range(10):
        with pytest.raises(NotRunError):
            judge("judge", source=SOURCE, together=together)
    together.close()
    assert len(tries) == 3


def test_no_file_handles_are_left() -> None:
    """In a process of its own, as its limit cannot be raised again."""
    script = (
        "import os, resource\n"
        "from tests.interfaces.cli.run.test_run_limits import NotRunError, SOURCE, judge\n"
        "held = [os.open('/dev/null', os.O_RDONLY) for _ in range(3)]\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (held[-1] + 1, held[-1] + 1))\n"
        "try:\n    judge('judge', source=SOURCE)\n"
        "except NotRunError as error:\n    print(error)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=60
    )
    assert "could not be run: no process can be started" in ran.stdout, ran.stderr


def test_a_process_that_the_system_ends_is_not_a_verdict() -> None:
    source = "import os\ndef judge(given):\n    os.kill(os.getpid(), 9)\n"
    with pytest.raises(NotRunError, match="the system ended its process"):
        judge("judge", source=source)


def test_a_process_that_the_system_ends_later_is_followed_by_another(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    source = (
        "import os, pathlib\n"
        f"mark = pathlib.Path({str(mark)!r})\n"
        "def judge(given):\n"
        "    if mark.exists():\n        mark.unlink()\n        os.kill(os.getpid(), 9)\n"
        "    return True\n"
    )
    together = Workers()
    assert judge("judge", source=source, together=together) is True
    mark.touch()
    assert judge("judge", source=source, together=together) is True
    together.close()


def test_a_full_disk_is_not_a_verdict() -> None:
    source = "def judge(given):\n    raise OSError(28, 'No space left on device')\n"
    with pytest.raises(NotRunError, match="No space left on device"):
        judge("judge", source=source)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("import os, signal; os.kill(os.getpid(), signal.SIGABRT)", "was ended by SIGABRT"),
        ("open('big', 'wb').truncate(2**30)", "File too large"),
        ("len(bytearray(2**33))", "MemoryError"),
        ("raise FileNotFoundError(2, 'no')", "FileNotFoundError"),
    ],
)
def test_what_a_check_does_wrong_stays_its_own(body: str, message: str) -> None:
    with pytest.raises(CodeError, match=message):
        judge("judge", source=f"def judge(given):\n    {body}\n")


# --- the whole program


@pytest.mark.parametrize(
    ("limit", "most"), [("RLIMIT_NOFILE", 8), ("RLIMIT_FSIZE", 64 * 1024), ("RLIMIT_FSIZE", 1024)]
)
def test_the_program_says_what_it_lacks(
    coded: Path, evalstore: Evalstore, limited: Limited, documents: Any, limit: str, most: int
) -> None:
    evalstore("trust", FILE)
    ran = limited(limit, most, "run")
    assert ran.returncode in (INCOMPLETE, STORE_UNUSABLE)
    assert "error: " in ran.stderr
    assert "hint: " in ran.stderr
    assert "this is a bug" not in ran.stderr
    assert documents("fsck")["problems"] == []
    assert verdicts(documents("run")) == {"city=Oslo": "fail", "city=Rome": "pass"}


@pytest.mark.parametrize(
    "error",
    [OSError(errno.EMFILE, "x"), MemoryError(), RuntimeError("can't start new thread")],
    ids=["files", "memory", "threads"],
)
def test_what_the_system_does_not_give_is_not_a_bug(
    workspace: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail(*_given: object, **_named: object) -> None:
        raise error

    monkeypatch.setattr("evalstore.runs.status.status.status", fail)
    ran = evalstore("status")
    assert ran.exit_code == INCOMPLETE
    assert ran.stderr.startswith("error: ")
    assert "hint: " in ran.stderr
