"""Settled parts of a store on a server, where others commit in any order, and data move."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from evalstore.core.runs import Run
from evalstore.planning.open_project import open_project
from evalstore.planning.options import Location, SelectionOptions
from evalstore.planning.settled_parts import find_settled
from evalstore.runs import run, run_record
from evalstore.store.schema.table_definitions import EVALUATIONS, SESSIONS, TABLES
from tests.interfaces.cli.conftest import Evalstore
from tests.interfaces.cli.status.test_settled_parts import (
    CASES,
    STORE,
    compare,
    failing,
    forget,
    make_place,
)
from tests.postgresql_server import PostgreSQLServer

pytestmark = pytest.mark.extended

ROW = "tests/rows.md::country=country 7"
RUN = ("run", "--yes", "--json", "--fail-on", "none")


@pytest.fixture
def url(postgresql_server: PostgreSQLServer, monkeypatch: pytest.MonkeyPatch) -> str:
    """The address of the store of all workspaces of a test."""
    address = postgresql_server.url()
    monkeypatch.setenv(STORE, address)
    return address


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str, evalstore: Evalstore) -> Path:
    """A workspace with a file of dozens of rows, after a run."""
    del url
    root = make_place(tmp_path, monkeypatch)
    assert reused(evalstore) == 0
    return root


def reused(evalstore: Evalstore) -> int:
    """Run; returns how many answers were there already, all others being made."""
    report = json.loads(evalstore(*RUN).stdout)
    assert report["asked"] + report["reused"] == CASES
    return int(report["reused"])


def settled(place: Path) -> int:
    """The number of parts that need not be planned."""
    location = Location(place, store=os.environ[STORE])
    with open_project(location) as project:
        return len(find_settled(project, SelectionOptions()))


@contextmanager
def uncommitted(
    server: PostgreSQLServer, evalstore: Evalstore, url: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[psycopg.Connection[Any]]:
    """Give a label in a transaction of somebody else; it is committed at the end, unless closed.

    The label is made in a copy of the store.
    """
    copy = server.url()
    with monkeypatch.context() as there:
        there.setenv(STORE, copy)
        assert evalstore("pull", url).exit_code == 0
        labelled = evalstore("label", ROW, "fail")
        assert labelled.exit_code == 0, labelled
    ours, theirs = (address.rpartition("=")[2] for address in (url, copy))
    with psycopg.connect(host=server.host, user=server.user, dbname="postgres") as connection:
        for table in ("evaluators", EVALUATIONS.name):
            columns = ", ".join(TABLES[table].columns)
            connection.execute(
                f"INSERT INTO {ours}.{table} ({columns}) SELECT {columns} FROM {theirs}.{table} "
                "ON CONFLICT DO NOTHING"
            )
        yield connection


def test_a_label_that_is_committed_after_a_run_is_seen_by_the_next(
    place: Path,
    evalstore: Evalstore,
    postgresql_server: PostgreSQLServer,
    url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its transaction began before the run, and has a smaller number than those of the run."""
    with uncommitted(postgresql_server, evalstore, url, monkeypatch):
        forget(place)
        assert reused(evalstore) == CASES
        before = settled(place)
        assert before > 2
        assert failing(evalstore, ROW) == ["pass"]
    assert 0 < settled(place) < before
    assert reused(evalstore) == CASES
    assert failing(evalstore, ROW) == ["fail"]
    assert settled(place) == before
    compare(evalstore, place)


def test_a_label_that_is_rolled_back_changes_nothing(
    place: Path,
    evalstore: Evalstore,
    postgresql_server: PostgreSQLServer,
    url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = settled(place)
    with uncommitted(postgresql_server, evalstore, url, monkeypatch) as connection:
        connection.rollback()
    assert settled(place) == before
    assert failing(evalstore, ROW) == ["pass"]
    compare(evalstore, place)


def test_a_label_that_is_committed_during_a_run_is_seen_by_the_next(
    place: Path,
    evalstore: Evalstore,
    postgresql_server: PostgreSQLServer,
    url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is committed when the run has planned its case, and before it notes what is settled."""
    record = run_record.record
    with uncommitted(postgresql_server, evalstore, url, monkeypatch) as connection:

        def commit_first(*arguments: Any) -> Run:
            connection.commit()
            return record(*arguments)

        forget(place)
        monkeypatch.setattr(run, "record", commit_first)
        assert reused(evalstore) == CASES
        monkeypatch.setattr(run, "record", record)
    assert failing(evalstore, ROW) == ["pass"]
    whole = settled(place)
    assert reused(evalstore) == CASES
    assert failing(evalstore, ROW) == ["fail"]
    assert settled(place) == whole + 1
    compare(evalstore, place)


def test_a_run_of_another_machine_is_seen(
    place: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = settled(place)
    other = place.with_name("other")
    shutil.copytree(place, other)
    monkeypatch.chdir(other)
    again = evalstore("run", ROW, "--yes", "--fail-on", "none", "--refresh")
    assert "1 new answer" in again.stdout, again
    monkeypatch.chdir(place)
    assert 0 < settled(place) < before
    compare(evalstore, place)
    assert reused(evalstore) == CASES
    compare(evalstore, place)


def test_a_run_of_several_programs_settles_no_more_than_it_has(
    place: Path, evalstore: Evalstore
) -> None:
    """The other program stores answers that the one that records the run may not know."""
    edited = (place / "models/one.yaml").read_text(encoding="utf-8").replace("Oslo 1", "Rome")
    (place / "models/one.yaml").write_text(edited, encoding="utf-8")
    ran = evalstore("run", "--yes", "--fail-on", "none", "--executor", "processes")
    assert ran.exit_code == 0, ran
    compare(evalstore, place)
    assert reused(evalstore) == CASES
    assert settled(place) > 2
    compare(evalstore, place)


def test_another_schema_has_no_settled_parts(
    place: Path,
    evalstore: Evalstore,
    postgresql_server: PostgreSQLServer,
    url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It has the same answers, and the cache is that of this workspace."""
    before = settled(place)
    with monkeypatch.context() as there:
        there.setenv(STORE, postgresql_server.url())
        assert evalstore("pull", url).exit_code == 0
        assert settled(place) == 0
    assert settled(place) == before
    compare(evalstore, place)


def test_a_store_that_was_restored_from_a_dump_is_planned(
    place: Path,
    evalstore: Evalstore,
    postgresql_server: PostgreSQLServer,
    url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The dump is older than the last run, whose answers and label are lost."""
    server, schema = postgresql_server, url.rpartition("=")[2]
    again = ("run", ROW, "--yes", "--fail-on", "none", "--refresh")
    assert "1 new answer" in evalstore(*again).stdout
    names = ("-h", server.host, "-U", server.user)
    command = (server.programs / "pg_dump", *names, f"--schema={schema}", "postgres")
    dump = subprocess.run(command, check=True, capture_output=True).stdout
    assert evalstore("label", ROW, "fail").exit_code == 0
    assert reused(evalstore) == CASES
    assert settled(place) > 2
    with psycopg.connect(
        host=server.host, user=server.user, dbname="postgres", autocommit=True
    ) as connection:
        connection.execute(f"DROP SCHEMA {schema} CASCADE".encode())
        loading = (server.programs / "psql", *names, "-q", "-v", "ON_ERROR_STOP=1", "postgres")
        subprocess.run(loading, input=dump, check=True, capture_output=True)
        counts = [
            connection.execute(f"SELECT count(*) FROM {schema}.{table}".encode()).fetchone()
            for table in (SESSIONS.name, EVALUATIONS.name)
        ]
    assert counts == [(CASES + 1,), (CASES + 1,)]
    assert settled(place) == 0
    compare(evalstore, place)
    assert reused(evalstore) == CASES
    assert failing(evalstore, ROW) == ["pass"]
    assert settled(place) > 2
    assert evalstore("fsck").exit_code == 0
