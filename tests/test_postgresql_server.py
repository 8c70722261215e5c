"""Servers of test processes that were killed are ended by the next one; those in use stay."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.postgresql_server import PostgreSQLServer, remove_abandoned, why_not
from tests.runs.execution.loopback.team import is_alive, wait_until

pytestmark = pytest.mark.extended

ROOT = Path(__file__).parent.parent
PROGRAM = """
import sys, tempfile
tempfile.tempdir = sys.argv[1]
from tests.runs.execution.loopback.team import is_alive, wait_until
from tests.postgresql_server import running_server
with running_server(fsync=True) as server:
    print(server.folder, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder with a short path, into which the user of a server may look."""
    if reason := why_not():
        pytest.skip(reason)
    folder = Path(tempfile.mkdtemp(prefix="pg-place-", dir="/tmp"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def start(place: Path) -> tuple[subprocess.Popen[str], Path]:
    """Start a process with a server; returns it and the server's folder."""
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(place)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        encoding="utf-8",
    )
    assert process.stdout
    return process, Path(process.stdout.readline().strip())


def server_of(folder: Path) -> int:
    """The id of the server's process."""
    return int((folder / "data/postmaster.pid").read_text().splitlines()[0])


def test_a_server_whose_process_was_killed_is_ended_and_one_in_use_is_not(
    place: Path, postgresql_server: PostgreSQLServer
) -> None:
    killed, abandoned = start(place)
    living, used = start(place)
    try:
        left, other = server_of(abandoned), server_of(used)
        killed.kill()
        killed.communicate()
        assert is_alive(left), "it goes on without its process"
        programs, user = postgresql_server.programs, postgresql_server.user
        assert remove_abandoned(place, programs, user) == [abandoned]
        assert remove_abandoned(place, programs, user) == []
        wait_until(lambda: not is_alive(left))
        assert is_alive(other)
        assert list(place.iterdir()) == [used]
    finally:
        living.communicate()
    assert living.returncode == 0
    assert list(place.iterdir()) == []
    wait_until(lambda: not is_alive(other))
