"""A store that a stranger has made: what commands do with it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from evalstore.core.errors import NO, OK, STORE_UNUSABLE
from tests.builders import test_file, tree
from tests.interfaces.cli.conftest import Echo, Evalstore

TEST = test_file(shown="Hello", evaluation="~~~checks\n- notEmpty\n~~~")
TRIGGER = "CREATE TRIGGER t AFTER INSERT ON sessions BEGIN DELETE FROM runs; END"
ABORTS = "CREATE TRIGGER t BEFORE INSERT ON nodes BEGIN SELECT RAISE(ABORT, 'pay me'); END"


@pytest.fixture
def foreign(echo: Echo, tmp_path: Path, evalstore: Evalstore) -> Path:
    """A workspace with one run, and its store."""
    folder = tree(tmp_path / "echo", {"tests/a.md": TEST})
    assert evalstore("run").exit_code == OK
    return folder / ".evalstore/store.db"


def execute(store: Path, statement: str) -> None:
    with closing(sqlite3.connect(store)) as raw:
        raw.executescript(statement)


@pytest.mark.parametrize("statement", [TRIGGER, ABORTS], ids=["deletes", "aborts"])
def test_a_store_with_a_trigger_is_read_with_a_warning(
    foreign: Path, evalstore: Evalstore, statement: str
) -> None:
    execute(foreign, statement)
    shown = evalstore("log")
    assert shown.exit_code == OK
    assert shown.stderr.startswith(
        "warning: the trigger 't' does not belong to evalstore in the store "
    )


@pytest.mark.parametrize("statement", [TRIGGER, ABORTS], ids=["deletes", "aborts"])
def test_a_run_on_a_store_with_a_trigger_asks_nothing(
    foreign: Path, evalstore: Evalstore, echo: Echo, statement: str
) -> None:
    execute(foreign, statement)
    (foreign.parent.parent / "tests/a.md").write_text(
        TEST.replace("Hello", "Bye"), encoding="utf-8"
    )
    asked = list(echo.asked)
    ran = evalstore("run")
    assert ran.exit_code == STORE_UNUSABLE
    assert "is not written to: the trigger 't' does not belong to evalstore" in ran.stderr
    assert "hint: 'evalstore fsck' lists what is wrong" in ran.stderr
    assert echo.asked == asked
    execute(foreign, "DROP TRIGGER t")
    assert evalstore("log", "--oneline").stdout.count("\n") == 1


def test_fsck_names_what_is_foreign(foreign: Path, evalstore: Evalstore) -> None:
    execute(foreign, TRIGGER + "; CREATE VIEW v AS SELECT 1; DROP INDEX ix_runs_started")
    output = evalstore("fsck")
    assert output.exit_code == NO
    for words in (
        "the trigger 't' does not belong to evalstore",
        "the view 'v' does not belong to evalstore",
        "the index 'ix_runs_started' is missing",
    ):
        assert f"database: {words}" in output.stdout


def test_a_view_in_the_place_of_a_table_is_not_read(foreign: Path, evalstore: Evalstore) -> None:
    execute(foreign, "ALTER TABLE runs RENAME TO r; CREATE VIEW runs AS SELECT * FROM r")
    for command in ("log", "status", "stats"):
        output = evalstore(command)
        assert output.exit_code == STORE_UNUSABLE
        assert "there is a view in the place of the table 'runs'" in output.stderr
    assert "there is a view in the place of the table 'runs'" in evalstore("fsck").stdout


def test_a_merge_names_the_store_that_lacks_a_table(
    foreign: Path, tmp_path: Path, evalstore: Evalstore
) -> None:
    other = tmp_path / "other.db"
    other.write_bytes(foreign.read_bytes())
    for suffix in ("-wal", "-shm"):
        assert not Path(f"{foreign}{suffix}").exists()
    execute(other, "DROP TABLE failures")
    merged = evalstore("pull", str(other))
    assert merged.exit_code == STORE_UNUSABLE
    assert f"error: the store '{other}' is damaged: no such table: failures" in merged.stderr
    assert str(foreign) not in merged.stderr
