"""A row of a run in progress with a value of another type, in a file: it stops no command."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from evalstore.core.errors import STORE_UNUSABLE
from tests.interfaces.cli.conftest import Evalstore

ID = "0751" + 14 * "b2"


def add_row(statement: str) -> None:
    (path,) = Path.cwd().rglob("*.db")
    with closing(sqlite3.connect(path)) as raw, raw:
        raw.execute(statement)


@pytest.mark.parametrize("started", ["'abc'", "x'ff'", "CAST(x'ff41' AS TEXT)"])
def test_a_start_that_is_no_time_stops_no_command(
    workspace: Path, evalstore: Evalstore, started: str
) -> None:
    evalstore("run", "-q")
    add_row(f"INSERT INTO shared_runs VALUES (x'{ID}', '{{}}', {started}, NULL)")
    for command in (["status"], ["run"]):
        ran = evalstore(*command)
        assert "Traceback" not in ran.stderr
        assert ran.stderr.count("which is in progress, cannot be read") == 1
    shown = evalstore("show", ID[:8])
    assert shown.exit_code == STORE_UNUSABLE
    assert shown.stderr.startswith("error: run ")
    checked = evalstore("fsck")
    assert checked.exit_code == 1
    assert "run in progress" in checked.stdout + checked.stderr
