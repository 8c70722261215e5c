"""`sql` answers the questions of its page over both databases, and changes nothing."""

from __future__ import annotations

import csv
import json
import os
import re
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from evalstore.core.errors import OK, USAGE
from evalstore.store.rows.row_tables import VIEWS
from tests.builders import tree
from tests.interfaces.cli.conftest import WEATHER_WORKSPACE, Evalstore
from tests.postgresql_server import PostgreSQLServer

PAGE = (Path(__file__).parents[4] / "docs/sql.md").read_text()
QUESTIONS = re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)
LAST = "(SELECT run FROM runs_v ORDER BY started DESC LIMIT 1)"


@pytest.fixture(params=["sqlite", "postgresql"])
def two_runs(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    evalstore: Evalstore,
    monkeypatch: pytest.MonkeyPatch,
) -> Path:
    """A workspace with two runs, a label between them, and its store in either database."""
    if request.param == "postgresql":
        server: PostgreSQLServer = request.getfixturevalue("postgresql_server")
        monkeypatch.setenv("EVALSTORE_STORE", server.url())
    tree(tmp_path, WEATHER_WORKSPACE)
    monkeypatch.chdir(tmp_path)
    assert evalstore("run", "--fail-on", "none").exit_code == OK
    assert evalstore("label", "tests/weather.md::city=Rome", "fail", "--as", "Ada").exit_code == OK
    assert evalstore("run", "-m", "second", "--fail-on", "none").exit_code in (OK, 5, USAGE)
    return tmp_path


def rows(evalstore: Evalstore, query: str) -> list[dict[str, object]]:
    ran = evalstore("sql", query, "--json")
    assert ran.exit_code == OK, ran.stderr
    found: list[dict[str, object]] = json.loads(ran.stdout)["rows"]
    return found


def test_every_question_of_the_page_has_an_answer(two_runs: Path, evalstore: Evalstore) -> None:
    assert len(QUESTIONS) == 9
    answered = [rows(evalstore, question) for question in QUESTIONS]
    failures, shares = answered[0], answered[1]
    assert [row["row"] for row in failures] == ["city=Oslo"]
    assert failures[0]["feedback"] == "It is cold there."
    assert shares == [{"model": "scripted/one", "passed": 1, "judged": 2}]
    assert {row["kind"] for row in answered[7]} == {"model", "person"}


def test_the_columns_are_those_of_the_page(two_runs: Path, evalstore: Evalstore) -> None:
    listed = " ".join(evalstore("sql").stdout.split())
    for name in VIEWS:
        columns = re.search(rf"{name}: (.*?)(?: \w+_v:|$)", listed)
        assert columns is not None
        section = PAGE.split(f"**`{name}`**")[1].split("**`")[0].split("## Nine")[0]
        described = set(re.findall(r"`(\w+)`", section))
        assert set(columns[1].split(", ")) <= described


def test_results_are_those_that_an_export_has(two_runs: Path, evalstore: Evalstore) -> None:
    assert evalstore("export", "-q", "-o", "results.csv").exit_code == OK
    exported = csv.DictReader(Path("results.csv").read_text().splitlines())
    known = {(row["file"], row["row"], row["model"]): row["verdict"] for row in exported}
    query = f"SELECT file, row, model, verdict FROM results_v WHERE run = {LAST}"
    found = {
        (row["file"], row["row"], row["model"]): row["verdict"] for row in rows(evalstore, query)
    }
    assert found == known
    assert len(found) == 2


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM runs",
        "DROP VIEW runs_v",
        "CREATE TABLE t (a text)",
        "WITH gone AS (DELETE FROM runs RETURNING id) SELECT * FROM gone",
    ],
)
def test_nothing_can_be_changed(two_runs: Path, evalstore: Evalstore, statement: str) -> None:
    before = rows(evalstore, "SELECT count(*) AS n FROM runs_v")
    ran = evalstore("sql", statement)
    assert ran.exit_code == USAGE
    assert ran.stdout == ""
    assert rows(evalstore, "SELECT count(*) AS n FROM runs_v") == before


def test_a_wrong_query_says_what_is_wrong(two_runs: Path, evalstore: Evalstore) -> None:
    ran = evalstore("sql", "SELECT nothing_here FROM runs_v")
    assert ran.exit_code == USAGE
    assert "nothing_here" in ran.stderr
    assert "hint: 'evalstore sql' without a query lists the views" in ran.stderr


def test_a_query_without_end_is_ended(two_runs: Path, evalstore: Evalstore) -> None:
    endless = "WITH RECURSIVE t (n) AS (SELECT 1 UNION ALL SELECT n FROM t) SELECT count(*) FROM t"
    ran = evalstore("sql", endless, "--timeout", "0.2")
    assert ran.exit_code == USAGE
    assert "error: the query took longer than 0.2 s" in ran.stderr


def test_a_table_has_the_first_rows_and_says_so(two_runs: Path, evalstore: Evalstore) -> None:
    ran = evalstore("sql", "SELECT row FROM results_v ORDER BY row", "--limit", "1")
    assert ran.stdout.split() == ["ROW", "city=Oslo"]
    assert ran.stderr == "(only the first 1 row; --limit N, or -o csv for all)\n"


def test_other_programs_read_the_views(
    tmp_path: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree(tmp_path, WEATHER_WORKSPACE)
    monkeypatch.chdir(tmp_path)
    assert evalstore("run", "--fail-on", "none").exit_code == OK
    store = "file:.evalstore/store.db?mode=ro"
    with closing(sqlite3.connect(store, uri=True)) as connection:
        verdicts = connection.execute("SELECT row, verdict FROM results_v ORDER BY row").fetchall()
    assert verdicts == [("city=Oslo", "fail"), ("city=Rome", "pass")]


def test_psql_reads_the_views(
    postgresql_server: PostgreSQLServer,
    tmp_path: Path,
    evalstore: Evalstore,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    url = postgresql_server.url()
    monkeypatch.setenv("EVALSTORE_STORE", url)
    tree(tmp_path, WEATHER_WORKSPACE)
    monkeypatch.chdir(tmp_path)
    assert evalstore("run", "--fail-on", "none").exit_code == OK
    schema = url.split("schema=")[1].split("&")[0]
    query = f"SET search_path TO {schema}; SELECT row, verdict FROM results_v ORDER BY row"
    command = (
        *(str(postgresql_server.programs / "psql"), "-h", postgresql_server.host),
        *("-U", postgresql_server.user, "-qtA", "-c", query, "postgres"),
    )
    done = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ})
    assert done.stdout.split() == ["city=Oslo|fail", "city=Rome|pass"]
