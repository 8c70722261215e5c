"""Commands over a store in PostgreSQL do what they do over a file, and the two are copied."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from evalstore.core.errors import NO, OK, STORE_UNUSABLE, USAGE
from evalstore.store import Store
from evalstore.store.location import read_address
from tests.builders import tree
from tests.forked_programs import Starter
from tests.interfaces.cli.conftest import WEATHER, WEATHER_WORKSPACE, Evalstore, Ran
from tests.postgresql_server import PostgreSQLServer
from tests.stored_rows import execute, locate, read_rows

OSLO = "tests/weather.md::city=Oslo"
COMMANDS = (
    "check",
    "status",
    "run",
    "status --json",
    "label tests/weather.md::city=Oslo pass --as Ada",
    "label tests/weather.md::city=Rome fail --as Bob",
    "label tests/weather.md::city=Rome none --as Bob",
    "run --judge-only check",
    "run",
    "EDIT",
    "status --explain",
    "diff --stat",
    "run --max-cost 9",
    "run",
    "log",
    "log --oneline tests/weather.md",
    "log --json",
    "show @",
    "show @ --json",
    "show tests/weather.md::city=Oslo",
    "diff @~1 @",
    "diff @~2 @ --answers",
    "diff @~1 @ --json",
    "stats",
    "stats --json",
    "stats @ --by tag,prompt,file --json",
    "stats @~1 @",
    "grep Cold",
    "grep nothing-has-this",
    "ls tests",
    "ls runs",
    "ls models",
    "ls labels",
    "ls checks",
    "fsck",
    "export -o -",
    "export --format junit -o -",
    "run --judge-only --refresh",
    "status",
    "run --refresh",
    "show @~9",
)


@pytest.fixture
def url(postgresql_server: PostgreSQLServer, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the URL of the store that commands use."""
    made = postgresql_server.url()
    monkeypatch.setenv("EVALSTORE_STORE", made)
    return made


def carried_out(folder: Path, evalstore: Evalstore) -> list[Ran]:
    """Execute all commands in a new workspace."""
    tree(folder, WEATHER_WORKSPACE)
    os.chdir(folder)
    done = []
    for command in COMMANDS:
        if command == "EDIT":
            edited = WEATHER.replace("Rome]", "Rome, Bern]").replace("be warm", "be mild")
            tree(folder, {"tests/weather.md": edited})
            continue
        done.append(evalstore(*command.split()))
    return done


def test_every_command_says_what_it_says_over_a_file(
    tmp_path: Path, url: str, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Store.open(read_address(url), create=True).close()
    over_database = carried_out(tmp_path / "one/w", evalstore)
    monkeypatch.delenv("EVALSTORE_STORE")
    over_file = carried_out(tmp_path / "two/w", evalstore)
    commands = [command for command in COMMANDS if command != "EDIT"]
    for command, ours, theirs in zip(commands, over_database, over_file, strict=True):
        assert (command, steady(ours)) == (command, steady(theirs))
    assert [ran.exit_code for ran in over_file].count(OK) > 20


def steady(ran: Ran) -> Ran:
    """Return an output without what differs between any two stores."""

    def replace(text: str) -> str:
        text = re.sub(r"\d{4}-\d\d-\d\d[T ][\d:.+Z]*|\b\d+\.\d+\b", "<n>", text)
        text = re.sub(r"\b[0-9a-f]{4,64}\b", "<id>", text)
        text = re.sub(r"/\S*/(one|two)/w|postgresql://\S*", "<place>", text)
        # Columns are as wide as the words for times.
        return re.sub(r" +", " ", re.sub(r"\d{9,}", "<n>", text))

    return Ran(ran.exit_code, replace(ran.stdout), replace(ran.stderr))


def test_the_store_is_made_by_init_and_named_by_doctor(
    tmp_path: Path,
    postgresql_server: PostgreSQLServer,
    evalstore: Evalstore,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    url = postgresql_server.url()
    shown = str(read_address(url))
    assert evalstore("init", "--store", url, "w").exit_code == OK
    monkeypatch.chdir("w")
    assert not Path(".evalstore/store.db").exists()
    found = evalstore("--store", url, "doctor", "--no-ping")
    assert f"{shown}, " in found.stdout
    assert "writable" in found.stdout
    ran = evalstore("--store", url, "run", "--fail-on", "none")
    assert ran.exit_code == OK
    assert len(json.loads(evalstore("--store", url, "log", "--json").stdout)["runs"]) == 1
    assert not Path(".evalstore/store.db").exists()


def test_the_store_of_the_settings_needs_consent_before_anything_is_connected(
    workspace: Path,
    postgresql_server: PostgreSQLServer,
    evalstore: Evalstore,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    url = postgresql_server.url()
    shown = str(read_address(url))
    settings = WEATHER_WORKSPACE["evalstore.yaml"]
    tree(workspace, {"evalstore.yaml": f"store: {url}\n{settings}"})
    connected: list[str] = []

    def refuse(*_: object, **options: str) -> None:
        connected.append(str(options))
        raise AssertionError

    tree(workspace, {"evalstore.yaml": f"store: {url}\nremotes: {{origin: r}}\n{settings}"})
    commands = (
        "run", "status", "log", "show @", "diff", "stats", "grep Cold", f"label {OSLO} pass",
        "fsck", "ls runs", "check", "run --judge-only", "export -o x.json", "pull other.db",
        "doctor", "push", "pull", "report -o x.html", "init", "push x.bundle",
    )  # fmt: skip
    with monkeypatch.context() as patched:
        patched.setattr("psycopg.Connection.connect", refuse)
        for command in commands:
            ran = evalstore(*command.split())
            assert ran.exit_code != OK, command
            words = ran.stdout + ran.stderr
            assert f"leads to '{shown}', which is outside the workspace" in words, command
    assert connected == []
    # A misspelt address begins no empty store, in which all would be asked and paid again.
    for command in ("--allow-outside run", "status", "run --judge-only", "log"):
        missing = evalstore(*command.split())
        assert missing.exit_code == STORE_UNUSABLE
        assert "no store at" in missing.stderr
        assert "'evalstore init'" in missing.stderr.partition("hint: ")[2]
    assert evalstore("init").exit_code == OK
    assert evalstore("run").exit_code == NO
    assert evalstore("log").exit_code == OK
    # It was for this address, and no other one that begins so or has other options.
    for other in (f"{url}x", f"{url}&hostaddr=127.0.0.1", url.replace("postgres@", "ann@")):
        tree(workspace, {"evalstore.yaml": f"store: {other}\n{settings}"})
        ran = evalstore("status")
        assert (other, ran.exit_code) == (other, USAGE)
        assert "outside the workspace" in ran.stderr


def both(
    tmp_path: Path, url: str, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> tuple[Path, Path]:
    """Make a workspace over a database, and one over a file, with different results."""
    team, own = (tree(tmp_path / name, WEATHER_WORKSPACE) for name in ("team", "own"))
    tree(own, {"tests/weather.md": WEATHER.replace("Rome", "Bern")})
    monkeypatch.setenv("EVALSTORE_STORE", url)
    assert evalstore("-C", str(team), "run").exit_code == NO
    monkeypatch.delenv("EVALSTORE_STORE")
    assert evalstore("-C", str(own), "run").exit_code == NO
    return team, own


def test_stores_of_both_kinds_are_merged_both_ways(
    tmp_path: Path,
    postgresql_server: PostgreSQLServer,
    evalstore: Evalstore,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    url, copy = postgresql_server.url(), postgresql_server.url()
    team, own = both(tmp_path, url, evalstore, monkeypatch)
    file = locate(own, None)
    theirs, ours = read_rows(read_address(url)), read_rows(file)
    union = theirs | ours
    assert len(union) > max(len(theirs), len(ours))
    dry = evalstore("-C", str(own), "pull", url, "--dry-run")
    assert dry.stdout.startswith("would pull ")
    assert read_rows(file) == ours
    assert evalstore("-C", str(own), "pull", url).exit_code == OK
    assert (read_rows(file), read_rows(read_address(url))) == (union, theirs)
    assert "nothing" in evalstore("-C", str(own), "pull", url).stdout
    assert evalstore("-C", str(team), "--store", url, "pull", str(file)).exit_code == OK
    assert read_rows(read_address(url)) == union
    Store.open(read_address(copy), create=True).close()
    assert evalstore("-C", str(team), "--store", copy, "pull", url).exit_code == OK
    assert read_rows(read_address(copy)) == union
    same = evalstore("-C", str(team), "--store", url, "pull", url)
    assert (same.exit_code, "is the store of this workspace" in same.stderr) == (USAGE, True)
    for store in (["--store", url], ["--store", copy], []):
        assert evalstore("-C", str(own), *store, "fsck").exit_code == OK


def test_a_remote_takes_and_gives_the_rows_of_both(
    tmp_path: Path,
    postgresql_server: PostgreSQLServer,
    evalstore: Evalstore,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    url = postgresql_server.url()
    team, own = both(tmp_path, url, evalstore, monkeypatch)
    file = locate(own, None)
    union = read_rows(read_address(url)) | read_rows(file)
    for folder in (team, own):
        added = evalstore(
            "-C", str(folder), "--allow-outside", "remote", "add", "origin", str(tmp_path / "r")
        )
        assert added.exit_code == OK, added.stderr
    for command in ("push", "pull"):
        for folder, store in ((team, ["--store", url]), (own, [])):
            ran = evalstore("-C", str(folder), *store, command)
            assert ran.exit_code == OK, ran.stderr
    ran = evalstore("-C", str(team), "--store", url, "pull")
    assert ran.exit_code == OK
    assert read_rows(file) == read_rows(read_address(url)) == union
    new = postgresql_server.url()
    Store.open(read_address(new), create=True).close()
    assert evalstore("-C", str(team), "--store", new, "pull").exit_code == OK
    assert read_rows(read_address(new)) == union


def test_the_status_is_remembered_until_the_database_is_written(
    workspace: Path, url: str, evalstore: Evalstore
) -> None:
    del workspace
    evalstore("run")
    first, again = evalstore("status"), evalstore("status")
    assert first == again
    evalstore("label", OSLO, "pass", "--as", "Ada")
    labelled = evalstore("status")
    assert "1 label added or removed since" in labelled.stdout
    execute(read_address(url), "DELETE FROM sessions")
    assert evalstore("status") != labelled


def test_damage_is_found_and_named(workspace: Path, url: str, evalstore: Evalstore) -> None:
    evalstore("run")
    execute(read_address(url), "UPDATE evaluations SET verdict = 'pass' WHERE verdict = 'fail'")
    found = evalstore("fsck")
    assert found.exit_code == NO
    assert "judgement" in found.stdout


def test_a_fresh_process_runs_over_a_database(workspace: Path, url: str, start: Starter) -> None:
    code, out, err = start("run", "--json", folder=workspace, EVALSTORE_STORE=url).finish()
    assert (code, err) == (NO, "")
    assert json.loads(out)["asked"] == 2
    code, out, err = start("status", "--json", folder=workspace, EVALSTORE_STORE=url).finish()
    assert (code, json.loads(out)["ask"], err) == (OK, 0, "")


def test_a_server_that_is_away_ends_each_command_with_6_at_once(
    workspace: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    del workspace
    monkeypatch.setenv("EVALSTORE_STORE", "postgresql://ann@127.0.0.1:1/team")
    for command in (
        "run",
        "status",
        "log",
        "stats",
        "grep x",
        f"label {OSLO} pass",
        "fsck",
        "ls runs",
    ):
        ran = evalstore(*command.split())
        assert (command, ran.exit_code, ran.stdout) == (command, STORE_UNUSABLE, "")
        assert ran.stderr.startswith(
            "error: the store 'postgresql://ann@127.0.0.1:1/team' cannot be reached: "
        )
        assert "\nhint: check the host and the port of the address; if" in ran.stderr
    found = evalstore("doctor", "--no-ping")
    assert found.exit_code == STORE_UNUSABLE
    line = next(line for line in found.stdout.splitlines() if " store " in line)
    assert re.match(r"fail +store +the store '.*' cannot be reached", line)


def test_a_role_that_may_only_read_shows_and_asks_nobody(
    workspace: Path, url: str, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    evalstore("run")
    assert evalstore("grep", "Cold").exit_code == OK  # this one adds to the index
    address = read_address(url)
    execute(
        address,
        "CREATE ROLE only_reads LOGIN",
        f"GRANT USAGE ON SCHEMA {address.schema} TO only_reads",
        f"GRANT SELECT ON ALL TABLES IN SCHEMA {address.schema} TO only_reads",
    )
    try:
        tree(workspace, {"tests/weather.md": WEATHER.replace("How is", "And how is")})
        monkeypatch.setenv("EVALSTORE_STORE", url.replace("postgres@", "only_reads@"))
        for command in ("log", "show @", "stats", "grep Cold", "fsck"):
            assert evalstore(*command.split()).exit_code == OK, command
        assert evalstore("status").exit_code in (OK, NO)
        asked: list[object] = []
        monkeypatch.setattr("evalstore.providers.script.ScriptedProvider.ask", asked.append)
        ran = evalstore("run")
        assert (ran.exit_code, asked) == (STORE_UNUSABLE, [])
        assert "this user may not use the store" in ran.stderr
    finally:
        execute(address, "DROP OWNED BY only_reads CASCADE", "DROP ROLE only_reads")


def test_without_psycopg_the_extra_is_named(
    workspace: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    import evalstore.store.postgresql as package

    del workspace
    # Importing it again sets this attribute, which otherwise would stay after the test.
    monkeypatch.setattr("evalstore.store.postgresql", package)
    for name in [name for name in sys.modules if name.startswith("evalstore.store.postgresql")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    ran = evalstore("--store", "postgresql://ann@db.invalid/team", "status")
    assert ran.exit_code == USAGE
    assert "a store in PostgreSQL needs the package psycopg" in ran.stderr
    assert "hint: install evalstore with the extra 'postgres'" in ran.stderr
