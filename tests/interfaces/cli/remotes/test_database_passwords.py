"""The password of a database is in no output, file or row, however its address is written."""

from __future__ import annotations

import json
import os
import traceback
from collections.abc import Iterator
from pathlib import Path

import pytest

from evalstore.core.errors import BUG, INCOMPLETE, NO, OK, STORE_UNUSABLE, USAGE, hide_passwords
from evalstore.interfaces.cli.main import main
from evalstore.store import Store
from evalstore.store.location import is_url, read_address
from tests.builders import tree
from tests.interfaces.cli.conftest import WEATHER_WORKSPACE
from tests.postgresql_server import PostgreSQLServer
from tests.stored_rows import execute, read_rows

SECRET = "zXq9Secret"
WRITTEN = "p%2Fa%3A%40%3F%23zXq9Secret%25"
"""With all characters that must be escaped."""
MALFORMED = (
    "postgresql://ann:12/zXq9Secret@127.0.0.1:1/db",
    "postgresql://ann:12?zXq9Secret=1@127.0.0.1:1/db",
    "postgresql://ann:12#zXq9Secret@127.0.0.1:1/db",
    "postgresql://ann:p/zXq9Secret@127.0.0.1:1/db",
    "postgresql://ann:zXq9Secret@[::1/db",
    "postgresql://ann:zXq9Secret@127.0.0.1:port/db",
    "postgresql://ann:zXq9Secret@127.0.0.1:99999/db",
    "postgresql://ann:zXq9Secret 127.0.0.1:1/db",
    "postgresql://ann:zXq9Secret@127.0.0.1:1/db?schema=No Schema",
    "postgresql://ann:zXq9Secret@127.0.0.1:1/db?nonsense",
    "postgresql://ann@127.0.0.1:1/db?pasword=zXq9Secret",
    "postgresql://ann@127.0.0.1:1/db?PASSWORD=zXq9Secret",
    "postgresql://ann@127.0.0.1:1/db?sslmode=disable?password=zXq9Secret",
    "postgresql://ann@127.0.0.1:1/dbname=x password=zXq9Secret",
    "postgresql:/ann:zXq9Secret@127.0.0.1:1/db",
    "postgresql:ann:zXq9Secret@127.0.0.1:1/db",
    "postgres+psycopg://ann:zXq9Secret@127.0.0.1:1/db",
    "mysql://ann:zXq9Secret@127.0.0.1:1/db",
    "'postgresql://ann:zXq9Secret@127.0.0.1:1/db'",
    "host=127.0.0.1 port=1 password=zXq9Secret",
    "host=127.0.0.1 port=1 password = zXq9Secret",
    "postgresql://ann:zXq9Secret%00@127.0.0.1:1/db",
)
UNREACHABLE = (
    "postgresql://ann:zXq9Secret@127.0.0.1:1/db",
    "  postgresql://ann:zXq9Secret@127.0.0.1:1/db",
    "POSTGRES://ann:zXq9Secret@127.0.0.1:1/db",
    "postgresql://ann@127.0.0.1:1/db?password=zXq9Secret",
    "postgresql://ann@127.0.0.1:1/db?sslpassword=zXq9Secret",
    "postgresql://ann@127.0.0.1:1/db?scram_client_key=zXq9Secret",
    "postgresql://ann:a@zXq9Secret@127.0.0.1:1/db",
)
"""Well-formed; nobody listens there."""
READING = (
    *("status", "status --json", "log", "log --json", "show @", "show @ --json", "diff", "stats"),
    *("grep Cold", "ls runs", "ls models", "fsck", "check", "doctor --no-ping", "doctor --json"),
    *("export -o all.json", "export --format otlp -o spans.json", "report -o all.html"),
    *("export --format inspect -o inspect", "push all.bundle", "trust --list"),
)


@pytest.fixture
def url(postgresql_server: PostgreSQLServer) -> Iterator[str]:
    """Return the address of a store whose server asks for the password."""
    made = postgresql_server.url()
    owner = read_address(made)
    hba = postgresql_server.folder / "data/pg_hba.conf"
    rules = hba.read_text(encoding="utf-8")
    hba.write_text(f"local all guarded scram-sha-256\n{rules}", encoding="utf-8")
    execute(
        owner,
        f"CREATE ROLE guarded LOGIN PASSWORD 'p/a:@?#{SECRET}%'",
        "GRANT CREATE ON DATABASE postgres TO guarded",
        "SELECT pg_reload_conf()",
    )
    yield made.replace("postgres@", f"guarded:{WRITTEN}@")
    hba.write_text(rules, encoding="utf-8")
    execute(owner, "DROP OWNED BY guarded CASCADE", "DROP ROLE guarded", "SELECT pg_reload_conf()")


class Run:
    """Runs commands, and looks for the password in all that they print and leave."""

    def __init__(self, root: Path, capfd: pytest.CaptureFixture[str]) -> None:
        self.root = root
        self._capfd = capfd

    def __call__(self, *argv: str) -> tuple[int, str]:
        exit_code = main(argv)
        printed = self._capfd.readouterr()
        words = printed.out + printed.err
        assert SECRET not in words, (argv, words)
        assert exit_code != BUG
        return exit_code, words

    def look(self, *kept: str) -> None:
        """Fail when a file has it, other than those in which the user has written it."""
        for folder in (self.root, Path(os.environ["HOME"])):
            for path in folder.rglob("*"):
                assert SECRET not in path.name
                if path.is_file() and path.name not in kept:
                    assert SECRET.encode() not in path.read_bytes(), path


@pytest.fixture
def run(workspace: Path, capfd: pytest.CaptureFixture[str]) -> Run:
    return Run(workspace, capfd)


@pytest.mark.parametrize("how", ["option", "variable", "settings", "override"])
def test_a_password_is_nowhere(
    how: str, url: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    before: tuple[str, ...] = ("-v",)
    if how == "option":
        before = ("-v", "--store", url)
    elif how == "variable":
        monkeypatch.setenv("EVALSTORE_STORE", url)
    elif how == "settings":
        settings = f"store: '{url}'\n{WEATHER_WORKSPACE['evalstore.yaml']}"
        tree(run.root, {"evalstore.yaml": settings})
        before = ("-v", "--allow-outside")
    else:
        before = ("-v", "--allow-outside", "--set", f"store={url}")
    if how in ("settings", "override"):
        Store.open(read_address(url), create=True).close()
    assert run(*before, "run")[0] == NO
    assert run(*before, "label", "tests/weather.md::city=Oslo", "pass", "--as", "Ada")[0] == OK
    assert run(*before, "run", "--json")[0] == OK
    for command in READING:
        exit_code, words = run(*before, *command.split())
        assert exit_code in (OK, NO, INCOMPLETE), (command, words)
    remote = ("--allow-outside", "remote", "add", "origin", str(run.root / "r"))
    assert run(*before, *remote)[0] == OK
    for command in ("push", "pull", "remote check", "remote status"):
        run(*before, *command.split())
    run.look("evalstore.yaml")
    rows = read_rows(read_address(url))
    assert len(rows) > 10
    assert SECRET not in repr(rows)


def test_a_wrong_password_is_not_repeated(url: str, run: Run) -> None:
    wrong = url.replace(WRITTEN, f"not-{SECRET}")
    for command in ("run", "status", "pull other.db", "fsck", "init w"):
        exit_code, words = run("-v", "--store", wrong, *command.split())
        assert exit_code == STORE_UNUSABLE, command
        assert "does not accept this user: " in words
        assert "hint: check the user of the address, and its password in PGPASSWORD" in words
    assert "does not accept this user" in run("--store", wrong, "doctor", "--no-ping")[1]
    run.look()


@pytest.mark.parametrize("malformed", MALFORMED)
def test_an_address_that_is_malformed_is_not_repeated(malformed: str, run: Run) -> None:
    for command in ("status", "run", "log", "init w", "doctor --no-ping", "check"):
        exit_code, words = run("-v", "--store", malformed, *command.split())
        assert (exit_code in (USAGE, STORE_UNUSABLE)) or command == "check", (command, words)
    assert run("pull", malformed)[0] == USAGE
    assert run("--set", f"store={malformed}", "status")[0] != OK
    if malformed.startswith("postgresql://"):
        for at_another_place in ("remote add x", "push", "pull", "clone", "show", "import"):
            assert run(*at_another_place.split(), malformed)[0] != OK
    assert not list(run.root.glob("postgres*"))
    run.look()
    tree(run.root, {"evalstore.yaml": f"store: {json.dumps(malformed)}\n"})
    for command in ("status", "check", "doctor --no-ping", "check --json"):
        run(*command.split())
    run.look("evalstore.yaml")


@pytest.mark.parametrize("unreachable", UNREACHABLE)
def test_an_address_where_nobody_answers_is_shown_without_it(unreachable: str, run: Run) -> None:
    for command in ("status", "run", "pull other.db", "fsck"):
        exit_code, words = run("-v", "--store", unreachable, *command.split())
        assert exit_code == STORE_UNUSABLE, words
        assert "'postgresql://ann@127.0.0.1:1/db" in words
    run("pull", unreachable)
    run.look()


@pytest.mark.parametrize(
    "settings",
    [
        "store: postgresql://ann:{0}@h/db\nstore: postgresql://ann:{0}@h/db\n",
        "store: [postgresql://ann:{0}@h/db]\n",
        "storre: postgresql://ann:{0}@h/db\n",
        "store: {{a: postgresql://ann:{0}@h/db\n",
        "store: 'postgresql://ann:{0}@h/db\n",
        "store: postgresql://ann:{0}@h/db: x\n",
        "remotes: {{origin: postgresql://ann:{0}@h/db}}\n",
        "remotes: {{origin: sftp://ann:{0}@h/db}}\n",
        "candidates: [postgresql://ann:{0}@h/db]\n",
    ],
)
def test_settings_with_errors_are_quoted_without_it(settings: str, run: Run) -> None:
    tree(run.root, {"evalstore.yaml": settings.format(SECRET)})
    for command in ("status", "check", "check --json", "doctor --no-ping", "run", "remote"):
        run("-v", *command.split())
    run.look("evalstore.yaml")


def test_an_error_of_the_library_has_the_address_without_it() -> None:
    with pytest.raises(Exception, match="cannot be reached") as caught:
        Store.open(read_address(UNREACHABLE[0]))
    shown = "".join(traceback.format_exception(caught.value))
    assert SECRET not in shown
    assert SECRET not in repr(read_address(UNREACHABLE[0]))


def test_what_is_meant_as_an_address_is_not_taken_for_a_path() -> None:
    assert all(map(is_url, (*MALFORMED, *UNREACHABLE)))
    for path in ("store.db", "./a:b", "/tmp/x@y", "C:store", "postgres", "a/postgresql.db", "x=y"):
        assert not is_url(path)


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("at 'postgresql://ann:s@h/db' x", "at 'postgresql://ann:***@h/db' x"),
        ("https://h:80/a@b and s3://b/c:d@e", "https://h:80/a@b and s3://b/c:d@e"),
        ("tests/a.md:3: me@example.org", "tests/a.md:3: me@example.org"),
        ("sftp://ann:secret@h/x", "sftp://ann:***@h/x"),
        ("x?password=abc&y=1", "x?password=***&y=1"),
    ],
)
def test_messages_hide_the_passwords_of_addresses_alone(text: str, hidden: str) -> None:
    assert hide_passwords(text) == hidden
