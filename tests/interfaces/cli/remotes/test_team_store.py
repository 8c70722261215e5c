"""Commands on a store in PostgreSQL, which a team shares."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalstore.core.errors import STORE_UNUSABLE, StoreMissingError
from evalstore.files.atomic_write import write_whole
from evalstore.interfaces.cli.main import main
from tests.builders import tree
from tests.postgresql_server import PostgreSQLServer

WORKSPACE = {
    "evalstore.yaml": "candidates: [parrot]\n",
    "models/parrot.yaml": "id: parrot\nprovider: scripted\nresponses: [{answer: hello}]\n",
    "tests/a.md": "# User\n\nSay hello.\n\n---\n\n```checks\n- contains: hello\n```\n",
}


def test_init_writes_the_address_into_the_settings_and_every_command_uses_it(
    folder: Path, postgresql_server: PostgreSQLServer, capsys: pytest.CaptureFixture[str]
) -> None:
    url = postgresql_server.url()
    assert main(["--store", url, "init", str(folder / "team")]) == 0
    team = str(folder / "team")
    assert f'store: "{url}"' in (folder / "team/evalstore.yaml").read_text()
    assert main(["-C", team, "run", "-q", "--fail-on", "none"]) == 0
    capsys.readouterr()
    assert main(["-C", team, "log", "--oneline"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1
    assert not (folder / "team/.evalstore/store.db").exists()


def test_settings_are_never_written_without_the_address(
    folder: Path, postgresql_server: PostgreSQLServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An `init` that is killed can be repeated: it keeps settings, which would mean a file."""
    url = postgresql_server.url()
    written: list[bytes] = []

    def note(path: Path, data: bytes, **options: bool) -> None:
        write_whole(path, data, **options)
        if path.name == "evalstore.yaml":
            written.append(data)

    monkeypatch.setattr("evalstore.exchange.init.write_whole", note)
    for number, options in enumerate(([], ["--bare"], ["--example"])):
        assert main(["--store", url, "init", "-q", *options, str(folder / str(number))]) == 0
    assert [f'store: "{url}"'.encode() in data for data in written] == [True] * 3


def test_init_says_how_settings_that_it_keeps_would_name_the_store(
    folder: Path, postgresql_server: PostgreSQLServer, capsys: pytest.CaptureFixture[str]
) -> None:
    url = postgresql_server.url()
    tree(folder, WORKSPACE)
    for named in (False, True):
        assert main(["--store", url, "init", str(folder)]) == 0
        printed = capsys.readouterr()
        assert (f'store: "{url}"' in printed.out + printed.err) == (not named)
        tree(folder, {"evalstore.yaml": f"{WORKSPACE['evalstore.yaml']}store: {url}\n"})


def test_the_address_of_a_workspace_of_somebody_else_must_be_allowed(
    folder: Path, postgresql_server: PostgreSQLServer, capsys: pytest.CaptureFixture[str]
) -> None:
    url = postgresql_server.url()
    settings = f"{WORKSPACE['evalstore.yaml']}store: {url}\n"
    tree(folder, {**WORKSPACE, "evalstore.yaml": settings})
    assert main(["-C", str(folder), "run", "-q"]) == 2
    err = capsys.readouterr().err
    assert f"evalstore.yaml:2: the store: leads to '{url}'" in err
    assert "all results would be stored there" in err
    assert main(["-C", str(folder), "--allow-outside", "init"]) == 0
    assert main(["-C", str(folder), "run", "-q"]) == 0


def test_a_password_of_an_address_is_never_shown_or_stored(
    folder: Path, postgresql_server: PostgreSQLServer, capsys: pytest.CaptureFixture[str]
) -> None:
    tree(folder, WORKSPACE)
    url = postgresql_server.url().replace("@/", ":Geheim5%40x@/")
    for command in (["run"], ["status"], ["doctor"], ["log"], ["stats"], ["fsck"], ["ls", "runs"]):
        main(["-C", str(folder), "--store", url, *command])
    main(["-C", str(folder), "--store", f"{url}&port=x", "run"])
    main(["-C", str(folder), "--store", url.replace("postgresql", "mysql"), "run"])
    printed = capsys.readouterr()
    assert "Geheim5" not in printed.out + printed.err
    written = [path for path in folder.rglob("*") if path.is_file()]
    assert not [path for path in written if b"Geheim5" in path.read_bytes()]


def test_stores_in_files_and_databases_are_merged_both_ways(
    folder: Path, postgresql_server: PostgreSQLServer, capsys: pytest.CaptureFixture[str]
) -> None:
    tree(folder, WORKSPACE)
    url = postgresql_server.url()
    place = ["-C", str(folder)]
    assert main([*place, "run", "-q"]) == 0
    assert main([*place, "--store", url, "init", "-q", str(folder)]) == 0
    file = str(folder / ".evalstore/store.db")
    assert main([*place, "--store", url, "pull", file]) == 0
    capsys.readouterr()
    assert main([*place, "--store", url, "run", "-q"]) == 0
    assert "0 new answers, 1 reused" in capsys.readouterr().out
    assert main([*place, "pull", url]) == 0
    assert "pulled 1 run from store (postgresql://" in capsys.readouterr().out
    assert main([*place, "fsck"]) == 0
    assert main([*place, "--store", url, "fsck"]) == 0


def test_a_bad_address_in_the_settings_is_named_with_its_line_and_a_password_there_is_warned_of(
    folder: Path, postgresql_server: PostgreSQLServer, capsys: pytest.CaptureFixture[str]
) -> None:
    url = postgresql_server.url()
    own = WORKSPACE["evalstore.yaml"]
    tree(folder, {**WORKSPACE, "evalstore.yaml": f"{own}store: {url}\n"})
    assert main(["-C", str(folder), "--allow-outside", "init"]) == 0
    assert "has a password" not in capsys.readouterr().err
    tree(folder, {"evalstore.yaml": f"{own}store: {url.replace('@/', ':Geheim5@/')}\n"})
    assert main(["-C", str(folder), "--allow-outside", "status"]) == 0
    err = capsys.readouterr().err
    assert err.count("evalstore.yaml:2: the address of the store has a password, ") == 1
    assert "Geheim5" not in err
    tree(folder, {"evalstore.yaml": f"{own}store: {url.partition('?')[0]}?schema=Other-1\n"})
    assert main(["-C", str(folder), "status"]) == 2
    err = capsys.readouterr().err
    assert err.startswith("error: evalstore.yaml:2: the address of the store cannot be used: ")
    assert "'Other-1' is not the name of a schema, of a-z, 0-9 and _, and no digit first" in err


def test_a_misspelt_schema_is_told_with_those_that_have_a_store(
    folder: Path,
    postgresql_server: PostgreSQLServer,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A hint at `init` alone would begin an empty store beside the one that was meant."""
    import psycopg

    with psycopg.connect(
        host=postgresql_server.host, user="postgres", dbname="postgres", autocommit=True
    ) as admin:
        admin.execute("CREATE DATABASE teams")
        admin.execute("CREATE ROLE guest LOGIN")
    tree(folder, WORKSPACE)
    monkeypatch.chdir(folder)
    assert main(["run", "-q"]) == 0

    def address(schema: str, user: str = "postgres") -> str:
        url = postgresql_server.url(schema).replace("/postgres?", "/teams?")
        return url.replace("postgres@", f"{user}@")

    def complain(*command: str) -> tuple[str, str]:
        capsys.readouterr()
        assert main(command) == STORE_UNUSABLE
        error, hint = capsys.readouterr().err.splitlines()
        return error, hint.removeprefix("hint: ")

    assert complain("pull", address("x")) == (
        f"error: no store at '{address('x')}'",
        "this database has no store that this user can see",
    )
    assert complain("--store", address("x"), "log")[1] == "run 'evalstore init' first"
    for schema in ("atlas", "winter_team"):
        assert main(["--store", address(schema), "init", "-q"]) == 0
    names = "?schema=NAME' at the end of the address names one"
    both = f"this database has a store in the schemas 'winter_team', 'atlas': '{names}"
    assert complain("pull", address("winterteam"))[1] == both
    new = "'evalstore init' makes a new one"
    assert complain("--store", address("winterteam"), "status")[1] == f"{both}; {new}"
    with psycopg.connect(
        host=postgresql_server.host, user="postgres", dbname="teams", autocommit=True
    ) as admin:
        admin.execute("GRANT USAGE ON SCHEMA atlas TO guest")
    one = f"this database has a store in the schema 'atlas': '{names}"
    assert complain("pull", address("winterteam", "guest"))[1] == one
    assert main(["--store", address("winterteam"), "doctor", "--no-ping"]) == 0
    assert f"'evalstore init' creates it; {both}" in capsys.readouterr().out
    assert main(["remote", "add", "-q", "team", address("winterteam")]) == 0
    assert complain("pull", "team")[1] == f"'evalstore push' makes them; {both}"


def test_a_hint_shows_the_name_of_a_schema_in_one_line() -> None:
    missing = StoreMissingError("postgresql:///x", ["a\nerror: \x1b[2Jb"], may_make=False)
    assert "in the schema 'a\\nerror: \\x1b[2Jb': " in (missing.hint or "")
    assert (missing.hint or "").isprintable()


@pytest.mark.parametrize("options", [[], ["--bare"], ["--example"]])
def test_init_leaves_nothing_behind_where_the_database_cannot_be_used(
    folder: Path,
    postgresql_server: PostgreSQLServer,
    capsys: pytest.CaptureFixture[str],
    options: list[str],
) -> None:
    import psycopg

    with psycopg.connect(
        host=postgresql_server.host, user="postgres", dbname="postgres", autocommit=True
    ) as admin:
        admin.execute("DROP ROLE IF EXISTS nobody_here")
        admin.execute("CREATE ROLE nobody_here LOGIN")
    away = f"postgresql://postgres@/postgres?host={folder}"
    refused = postgresql_server.url().replace("postgres@", "nobody_here@")
    for url, problem in ((away, "cannot be reached"), (refused, "permission denied")):
        assert main(["--store", url, "init", *options, str(folder / "new/team")]) == STORE_UNUSABLE
        assert problem in capsys.readouterr().err
        assert not (folder / "new").exists()
        tree(folder / "kept", {"notes.txt": "mine"})
        assert main(["--store", url, "init", *options, str(folder / "kept")]) == STORE_UNUSABLE
        assert [path.name for path in (folder / "kept").iterdir()] == ["notes.txt"]
        named = {**WORKSPACE, "evalstore.yaml": f"{WORKSPACE['evalstore.yaml']}store: {url}\n"}
        tree(folder / "named", named)
        assert main(["--allow-outside", "init", str(folder / "named")]) == STORE_UNUSABLE
        assert not (folder / "named/.gitignore").exists()


def test_init_adopts_nothing_where_the_database_cannot_be_used(folder: Path) -> None:
    away = f"postgresql://postgres@/postgres?host={folder}"
    tree(folder / "old", {"ai-tester.config.yaml": "candidates: [openai/x]\n"})
    adopt = ["init", "--from", str(folder / "old"), str(folder / "old")]
    assert main(["--store", away, *adopt]) == STORE_UNUSABLE
    assert sorted(path.name for path in (folder / "old").iterdir()) == ["ai-tester.config.yaml"]
    assert main(adopt) == 0
    assert (folder / "old/evalstore.yaml").exists()
