"""What a role needs on a store in PostgreSQL: the four rights to use it, and `SELECT` to read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from evalstore.core.errors import INCOMPLETE, NO, OK, STORE_UNUSABLE, USAGE
from evalstore.store import Store
from evalstore.store.location import read_address
from tests.builders import tree
from tests.interfaces.cli.conftest import WEATHER, WEATHER_WORKSPACE, Evalstore, Ran
from tests.postgresql_server import PostgreSQLServer
from tests.stored_rows import execute

pytestmark = pytest.mark.extended

OSLO = "tests/weather.md::city=Oslo"
READING = (
    *("check", "status", "status --json", "status --explain", "log", "log --json"),
    *("log tests/weather.md", "show @", "show @ --json", f"show {OSLO}", "diff", "diff @~1 @"),
    *("stats", "stats --json", "stats --by file", "grep Cold", "grep nothing-like-it", "ls tests"),
    *(
        "ls runs",
        "ls models",
        "ls labels",
        "fsck",
        "export --format jsonl -o -",
        "export --format junit -o -",
    ),
    *("report -o out.html", "report --markdown", "push out.bundle", "trust --list"),
)
WRITING = (
    *(
        "run",
        f"label {OSLO} pass --as Ada",
        "run --judge-only --refresh",
        "run --executor processes",
    ),
    *("run --refresh", "run --max-cost 1", "pull other.db", "push", "pull"),
)
FOUR = "SELECT, INSERT, UPDATE, DELETE"
_names = count()
As = Callable[[str], str]
"""Returns the address of the store for a role with these rights on its tables."""


@pytest.fixture
def url(
    workspace: Path,
    postgresql_server: PostgreSQLServer,
    evalstore: Evalstore,
    monkeypatch: pytest.MonkeyPatch,
) -> str:
    """A store with two runs, a file with another one, and a remote."""
    settings = WEATHER_WORKSPACE["evalstore.yaml"]
    tree(workspace, {"evalstore.yaml": f"{settings}remotes: {{origin: shared}}\n"})
    made = postgresql_server.url()
    evalstore("--store", "other.db", "run")
    monkeypatch.setenv("EVALSTORE_STORE", made)
    evalstore("run")
    assert evalstore("push").exit_code == OK
    tree(workspace, {"tests/weather.md": WEATHER.replace("Rome", "Bern")})
    evalstore("run")
    return made


@pytest.fixture
def as_role(url: str) -> Iterator[As]:
    address = read_address(url)
    made: list[str] = []

    def make(rights: str) -> str:
        role = f"some_{next(_names)}"
        made.append(role)
        execute(
            address,
            f"CREATE ROLE {role} LOGIN",
            f"GRANT USAGE ON SCHEMA {address.schema} TO {role}",
            f"GRANT {rights} ON ALL TABLES IN SCHEMA {address.schema} TO {role}",
        )
        return url.replace("postgres@", f"{role}@")

    yield make
    for role in made:
        execute(address, f"DROP OWNED BY {role} CASCADE", f"DROP ROLE {role}")


def steady(ran: Ran) -> Ran:
    """What was printed, without times, the width of their columns and the names of roles."""
    out, err = (
        re.sub(
            r" {2,}|some_\d+@|postgres@|\b\d+ (?:seconds?|minutes?) ago\b|\b[\d-]+T[\d:]+Z",
            "",
            text,
        )
        for text in (ran.stdout, ran.stderr)
    )
    return Ran(ran.exit_code, out, err)


def test_with_select_alone_all_commands_that_read_say_what_they_say_to_the_owner(
    as_role: As,
    evalstore: Evalstore,
    workspace: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reader = as_role("SELECT")
    for command in READING:
        (workspace / "out.bundle").unlink(missing_ok=True)
        with monkeypatch.context() as there:
            there.setenv("EVALSTORE_STORE", reader)
            ours = evalstore(*command.split())
        assert ours.exit_code in (OK, NO, USAGE, INCOMPLETE), (command, ours)
        (workspace / "out.bundle").unlink(missing_ok=True)
        assert (command, steady(ours)) == (command, steady(evalstore(*command.split())))


@pytest.mark.parametrize("command", WRITING)
def test_with_select_alone_a_command_that_writes_says_what_is_missing(
    as_role: As,
    evalstore: Evalstore,
    monkeypatch: pytest.MonkeyPatch,
    command: str,
) -> None:
    monkeypatch.setenv("EVALSTORE_STORE", as_role("SELECT"))
    ran = evalstore(*command.split())
    if command == "push":  # it only reads the store
        assert ran.exit_code == OK, ran
        return
    if ran.exit_code == OK:
        assert "nothing" in ran.stdout or "up to date" in ran.stdout, ran
        return
    assert ran.exit_code == STORE_UNUSABLE, ran
    assert "this user may not use the store" in ran.stderr
    assert "hint: its owner can GRANT what is missing" in ran.stderr


def test_with_the_four_rights_all_commands_work(
    as_role: As, evalstore: Evalstore, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVALSTORE_STORE", as_role(FOUR))
    for command in (*WRITING, *READING):
        ran = evalstore(*command.split())
        assert ran.exit_code in (OK, NO, INCOMPLETE), (command, ran)
    doctor = evalstore("doctor", "--no-ping").stdout
    assert "writable" in doctor
    tree(workspace, {"tests/weather.md": WEATHER.replace("Rome", "Kyiv")})
    assert "1 new answer" in evalstore("run").stdout


def test_without_one_of_the_four_rights_a_run_asks_nobody(
    as_role: As, evalstore: Evalstore, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []
    monkeypatch.setattr("evalstore.providers.script.ScriptedProvider.ask", asked.append)
    tree(workspace, {"tests/weather.md": WEATHER.replace("Rome", "Kyiv")})
    for missing in FOUR.split(", "):
        rights = ", ".join(right for right in FOUR.split(", ") if right != missing)
        monkeypatch.setenv("EVALSTORE_STORE", as_role(rights))
        ran = evalstore("run")
        assert (missing, ran.exit_code) == (missing, STORE_UNUSABLE), ran
        assert "this user may not use the store" in ran.stderr
    assert asked == []


# --- schemas


def test_the_schema_is_evalstore_and_others_are_other_stores_of_the_database(
    workspace: Path,
    postgresql_server: PostgreSQLServer,
    evalstore: Evalstore,
) -> None:
    del workspace
    plain = postgresql_server.url("x").partition("&schema")[0]
    try:
        named = read_address(plain)
        assert named.schema == "evalstore"
        assert "2 new answers" in evalstore("--store", plain, "run").stdout
        other = postgresql_server.url()
        assert "2 new answers" in evalstore("--store", other, "run").stdout
        assert "0 new answers" in evalstore("--store", f"{plain}&schema=evalstore", "run").stdout
        counts = [
            len(evalstore("--store", url, "log", "--oneline").stdout.splitlines())
            for url in (plain, other)
        ]
        assert counts == [2, 1]
        with pytest.raises(Exception, match="no store"):
            Store.open(read_address(postgresql_server.url()))
    finally:
        execute(named, "DROP SCHEMA evalstore CASCADE")
