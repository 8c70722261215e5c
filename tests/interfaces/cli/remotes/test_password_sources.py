"""The password of a database comes from where `psql` takes it, and is nowhere to be seen."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evalstore.core.errors import BUG, NO, OK, STORE_UNUSABLE, USAGE
from evalstore.interfaces.cli.main import main
from evalstore.providers.script import ScriptedProvider
from evalstore.store.location import read_address
from tests.builders import tree
from tests.hostile.databases import STORE, tables_with
from tests.interfaces.cli.conftest import WEATHER_WORKSPACE
from tests.interfaces.cli.remotes.test_database_passwords import SECRET, WRITTEN, Run
from tests.interfaces.cli.remotes.test_database_passwords import run as run
from tests.interfaces.cli.remotes.test_database_passwords import url as url
from tests.postgresql_server import PostgreSQLServer

pytestmark = pytest.mark.extended

PASSWORD = f"p/a:@?#{SECRET}%"
KEPT = ("pass.txt", ".pgpass", "services.conf", ".pg_service.conf")
"""Files in which the user has written it."""


def in_a_variable(home: Path, monkeypatch: pytest.MonkeyPatch, address: str) -> str:
    del home
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    return address


def write_passwords(path: Path, host: str = "*") -> Path:
    escaped = PASSWORD.replace("\\", "\\\\").replace(":", "\\:")
    path.write_text(f"{host}:*:*:guarded:{escaped}\n", "utf-8")
    path.chmod(0o600)
    return path


def in_the_home(home: Path, monkeypatch: pytest.MonkeyPatch, address: str) -> str:
    del monkeypatch
    write_passwords(home / ".pgpass")
    return address


def in_a_file_of_a_variable(home: Path, monkeypatch: pytest.MonkeyPatch, address: str) -> str:
    monkeypatch.setenv("PGPASSFILE", str(write_passwords(home / "pass.txt")))
    return address


def in_a_file_of_the_address(home: Path, monkeypatch: pytest.MonkeyPatch, address: str) -> str:
    del monkeypatch
    return f"{address}&passfile={write_passwords(home / 'pass.txt')}"


def write_services(path: Path, address: str) -> str:
    """Write what is known of a service; returns the address that names it."""
    parts = read_address(address)
    known = {**parts.options, "password": PASSWORD}
    lines = "".join(f"{name}={value}\n" for name, value in known.items())
    path.write_text(f"[team]\n{lines}", "utf-8")
    return f"postgresql://?service=team&schema={parts.schema}"


def in_the_services(home: Path, monkeypatch: pytest.MonkeyPatch, address: str) -> str:
    del monkeypatch
    return write_services(home / ".pg_service.conf", address)


def in_services_of_a_variable(home: Path, monkeypatch: pytest.MonkeyPatch, address: str) -> str:
    monkeypatch.setenv("PGSERVICEFILE", str(home / "services.conf"))
    return write_services(home / "services.conf", address)


SOURCES: tuple[Callable[[Path, pytest.MonkeyPatch, str], str], ...] = (
    in_a_variable,
    in_the_home,
    in_a_file_of_a_variable,
    in_a_file_of_the_address,
    in_the_services,
    in_services_of_a_variable,
)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of the user."""
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    for name in [name for name in os.environ if name.startswith("PG")]:
        monkeypatch.delenv(name)
    return folder


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.__name__)
def test_it_comes_from_where_psql_takes_it(
    source: Callable[[Path, pytest.MonkeyPatch, str], str],
    url: str,
    home: Path,
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    address = url.replace(f":{WRITTEN}@", "@")
    exit_code, words = run("--store", address, "init", "first")
    assert (exit_code, "does not accept this user" in words) == (STORE_UNUSABLE, True)
    named = source(home, monkeypatch, address)
    assert run("--store", named, "init", "team")[0] == OK
    settings = (run.root / "team/evalstore.yaml").read_text("utf-8")
    assert f'store: "{read_address(named)}"' in settings
    for command in ("run", "status", "log", "show @", "doctor --no-ping", "fsck"):
        assert run("-v", "-C", "team", *command.split())[0] in (OK, NO), command
    assert not (run.root / "team/.evalstore/store.db").exists()
    run.look(*KEPT)
    monkeypatch.setenv(STORE, url)
    assert tables_with(SECRET) == []


def test_init_writes_an_address_without_the_password_that_it_had(
    url: str, home: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    del home
    assert run("--store", url, "init", "team")[0] == OK
    run.look()
    assert run("-C", "team", "status")[0] == STORE_UNUSABLE
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    assert run("-C", "team", "run")[0] in (OK, NO)


def test_neither_the_process_table_nor_a_run_in_progress_nor_a_log_has_it(
    url: str,
    run: Run,
    postgresql_server: PostgreSQLServer,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv(STORE, url)
    ask = ScriptedProvider.ask
    seen: list[bytes] = []

    async def look(*arguments: Any, **options: Any) -> Any:
        if not seen:
            for path in Path("/proc").glob("[0-9]*/cmdline"):
                try:
                    seen.append(path.read_bytes())
                except OSError:  # it has ended
                    continue
            assert tables_with(SECRET) == []
            assert "shared_runs" in tables_with("scripted")
        return await ask(*arguments, **options)

    with monkeypatch.context() as patched:
        patched.setattr(ScriptedProvider, "ask", look)
        assert run("-v", "run", "--executor", "processes", "--workers", "1")[0] == NO
    assert any(b"--join" in command for command in seen)
    assert not any(SECRET.encode() in command for command in seen)
    assert run("--store", url.replace(WRITTEN, f"no{SECRET}"), "status")[0] == STORE_UNUSABLE
    assert SECRET not in caplog.text
    log = (postgresql_server.folder / "log").read_text("utf-8", "replace")
    assert "password authentication failed" in log
    assert SECRET not in log
    run.look()


@pytest.mark.parametrize("command", ["status", "status --json", "doctor --json", "log --json"])
@pytest.mark.parametrize("error", [RuntimeError, OSError, ValueError])
def test_a_bug_whose_message_has_the_address_shows_it_without(
    error: type[Exception],
    command: str,
    url: str,
    workspace: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    del workspace

    def fail(*_arguments: object) -> None:
        raise error(f"cannot connect to {url}")

    monkeypatch.setattr("evalstore.store.postgresql.driver.connect", fail)
    exit_code = main(["-v", "--store", url, *command.split()])
    printed = capfd.readouterr()
    assert exit_code == (USAGE if error is OSError else BUG)
    assert "cannot connect to postgresql://guarded:" in printed.out + printed.err
    assert SECRET not in printed.out + printed.err


def test_the_settings_of_the_workspace_do_not_name_files_of_passwords(
    url: str, home: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An address with one is another address, and needs the consent of the user."""
    in_the_home(home, monkeypatch, url)
    address = url.replace(f":{WRITTEN}@", "@")
    assert run("--store", address, "--allow-outside", "init", "team")[0] == OK
    settings = WEATHER_WORKSPACE["evalstore.yaml"]
    for option in ("passfile", "servicefile", "service", "sslkey", "options", "hostaddr"):
        tree(
            run.root / "team",
            {"evalstore.yaml": f"store: {address}&{option}=files\n{settings}"},
        )
        exit_code, words = run("-C", "team", "status")
        assert exit_code != OK
        assert "which is outside the workspace" in words, option


def test_no_code_of_the_workspace_gets_it(
    url: str, home: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the user trusts it, and the run is that of several programs."""
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    in_the_home(home, monkeypatch, url)
    seen = run.root / "seen.txt"
    note = f"import os\nopen({str(seen)!r}, 'a').write(repr(dict(os.environ)))\n"
    tree(
        run.root,
        {
            "evalstore.yaml": "candidates: [bot, shell]\n",
            "models/bot.yaml": "provider: python\ncode: bot.py\n",
            "models/shell.yaml": "provider: command\ncode: ./shell.sh\n",
            "bot.py": f"{note}def answer(messages):\n    return 'Hi'\n",
            "shell.sh": f"#!/bin/sh\nenv >> '{seen}'\necho Hi\n",
            "tests/weather.md": "# 👤\n\nHello\n\n---\n\n~~~checks\n"
            "- python: {file: check.py, function: good}\n~~~\n",
            "tests/check.py": f"{note}def good(answer):\n    return True\n",
        },
    )
    (run.root / "shell.sh").chmod(0o755)
    before = ("--store", url)
    trusted = ("models/bot.yaml", "models/shell.yaml", "tests/check.py")
    assert run(*before, "trust", *trusted)[0] == OK
    exit_code, words = run(*before, "run", "--executor", "processes", "--workers", "1")
    assert exit_code == OK, words
    text = seen.read_text("utf-8")
    assert (text.count("'PATH'") >= 2, "PATH=" in text) == (True, True), text
    run.look(*KEPT)
