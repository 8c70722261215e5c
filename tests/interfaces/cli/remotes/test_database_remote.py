"""A PostgreSQL database as a remote: `push` and `pull` are the union that they are for folders."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest

from evalstore.core import hashing
from evalstore.core.errors import NO, OK, STORE_UNUSABLE, USAGE
from evalstore.exchange.sync.fsck import check_store
from evalstore.store import Store
from evalstore.store.location import StoreLocation, read_address
from evalstore.store.postgresql import driver as drivers
from evalstore.store.postgresql.connection import PostgreSQLConnection
from evalstore.store.records import RecordQueries
from tests.builders import tree
from tests.interfaces.cli.conftest import ONE, WEATHER, WEATHER_WORKSPACE, Evalstore
from tests.postgresql_server import PostgreSQLServer
from tests.stored_rows import execute, is_there, read_rows

KEY = "sk-" + "a1B2" * 8
OSLO = "tests/weather.md::city=Oslo"
SETTINGS = WEATHER_WORKSPACE["evalstore.yaml"]


@pytest.fixture
def team(workspace: Path, postgresql_server: PostgreSQLServer, evalstore: Evalstore) -> str:
    """The address of a new database, which is the remote `team` of the workspace."""
    del workspace
    url = postgresql_server.url()
    assert evalstore("remote", "add", "team", url).exit_code == OK
    return url


@pytest.fixture
def bob(workspace: Path, team: str, evalstore: Evalstore) -> Path:
    """The same workspace on another machine, with a store of its own."""
    del team
    made = workspace.parent / "bob"
    tree(made, {**WEATHER_WORKSPACE, "evalstore.yaml": (workspace / "evalstore.yaml").read_text()})
    assert evalstore("-C", str(made), "pull", "-n", "--allow-outside").exit_code == STORE_UNUSABLE
    return made


def own(folder: Path) -> Path:
    return folder / ".evalstore/store.db"


def ids(location: StoreLocation) -> set[tuple[str, bytes]]:
    """The ids of all rows, after each was checked."""
    with closing(Store.open(location)) as store:
        checked, damage = check_store(store)
        assert damage == []
    found = set(read_rows(location))
    assert checked == len(found)
    return found


def test_from_a_file_through_a_database_to_another_file_all_ids_are_equal(
    workspace: Path, team: str, bob: Path, evalstore: Evalstore
) -> None:
    evalstore("run")
    dry = evalstore("push", "team", "-n")
    assert "would push 1 run, 2 answers, 2 verdicts" in dry.stdout
    assert not is_there(read_address(team))
    pushed = evalstore("push", "team")
    assert pushed.stdout.startswith("pushed 1 run, 2 answers, 2 verdicts")
    assert f"to team ({read_address(team)}): " in pushed.stdout
    there = ids(read_address(team))
    assert there == ids(own(workspace))
    assert evalstore("push").stdout == f"nothing to push to team ({read_address(team)})\n"
    fetched = json.loads(evalstore("-C", str(bob), "pull", "-n", "--json").stdout)
    assert (fetched["records"]["runs"], fetched["dryRun"]) == (1, True)
    assert evalstore("-C", str(bob), "pull").stdout.startswith("pulled 1 run, 2 answers")
    assert ids(own(bob)) == there
    assert "nothing to pull from team" in evalstore("-C", str(bob), "pull").stdout
    assert "Nothing to do" in evalstore("-C", str(bob), "status").stdout


@pytest.mark.parametrize("is_server", [False, True], ids=["sqlite", "postgresql"])
def test_after_both_sides_have_changed_a_pull_and_a_push_are_the_union(
    workspace: Path,
    team: str,
    bob: Path,
    evalstore: Evalstore,
    postgresql_server: PostgreSQLServer,
    is_server: bool,
) -> None:
    address = postgresql_server.url() if is_server else str(own(bob))
    here: StoreLocation = read_address(address) if is_server else own(bob)
    at_bob = ("-C", str(bob), "--store", address)
    evalstore("run")
    evalstore("push")
    tree(bob, {"tests/weather.md": WEATHER.replace("Rome", "Bern")})
    evalstore(*at_bob, "run")
    tree(workspace, {"tests/weather.md": WEATHER.replace("Rome", "Kyiv")})
    evalstore("run")
    before = ids(own(workspace)), ids(here)
    assert evalstore(*at_bob, "push").exit_code == OK
    assert evalstore("push").exit_code == OK
    assert ids(own(workspace)) == before[0]
    assert ids(read_address(team)) == before[0] | before[1]
    shown = json.loads(evalstore("remote", "show", "team", "--json").stdout)
    assert (shown["toPull"]["runs"], shown["toPush"]["runs"]) == (1, 0)
    assert shown["records"]["runs"] == 3
    assert (shown["size"] > 0, shown["pushes"]) == (True, [])
    assert evalstore("pull").exit_code == OK
    assert evalstore(*at_bob, "pull").exit_code == OK
    assert ids(own(workspace)) == ids(here) == ids(read_address(team))
    assert len(evalstore("log", "--oneline").stdout.splitlines()) == 3


def test_a_database_in_which_runs_are_made_is_pulled_as_it_is(
    workspace: Path, team: str, evalstore: Evalstore
) -> None:
    evalstore("--store", team, "run")
    assert "pulled 1 run" in evalstore("pull").stdout
    assert ids(own(workspace)) == ids(read_address(team))
    assert "Nothing to do" in evalstore("status").stdout


def test_what_others_have_pushed_counts_for_runs_on_the_database(
    team: str, bob: Path, evalstore: Evalstore
) -> None:
    on_team = ("--store", team)
    evalstore(*on_team, "run")
    assert "1 pass, 1 fail" in evalstore(*on_team, "run").stdout
    evalstore("-C", str(bob), "pull")
    labelled = evalstore("-C", str(bob), "label", OSLO, "pass", "--as", "Bob")
    assert labelled.exit_code == OK
    assert "pushed 1 verdict" in evalstore("-C", str(bob), "push").stdout
    assert "Bob" in evalstore(*on_team, "ls", "labels").stdout
    after = evalstore(*on_team, "run").stdout
    assert "2 pass" in after
    assert "0 new answers, 2 reused, 0 new verdicts" in after


def test_failed_calls_and_excluded_tags_stay_here(
    workspace: Path, team: str, evalstore: Evalstore
) -> None:
    settings = (workspace / "evalstore.yaml").read_text()
    private = WEATHER.replace("[weather]", "[private]").replace("How is", "How warm is")
    shared = f"team:\n    address: {team}\n    excludeTags: [private]"
    before, _, line = settings.partition("  team: ")
    tree(
        workspace,
        {
            "evalstore.yaml": before.replace("[scripted/one]", "[scripted/one, scripted/silent]")
            + f"  {shared}\n{line.partition(chr(10))[2]}",
            "models/silent.yaml": "id: scripted/silent\nprovider: scripted\nresponses: []\n",
            "tests/private.md": private,
        },
    )
    evalstore("run")
    pushed = evalstore("push")
    assert pushed.exit_code == OK, pushed
    assert "1 run stays here: it may show excluded tests" in pushed.stderr
    there = ids(read_address(team))
    assert there < ids(own(workspace))
    tables = {table for table, _ in there}
    assert {"sessions", "evaluations"} <= tables
    assert tables.isdisjoint({"runs", "failures", "nodes"})
    texts = str(read_rows(read_address(team)))
    assert "How is Oslo" in texts
    assert len([id for table, id in there if table == "sessions"]) == 2
    assert "nothing to push" in evalstore("push").stdout


def test_only_the_runs_after_one_are_pushed_with_all_that_they_refer_to(
    workspace: Path, team: str, evalstore: Evalstore
) -> None:
    evalstore("run")
    tree(workspace, {"tests/weather.md": WEATHER.replace("Rome", "Bern")})
    evalstore("run")
    assert "pushed 1 run" in evalstore("push", "--since", "@~1").stdout
    assert ids(read_address(team)) < ids(own(workspace))
    assert "pushed 1 run" in evalstore("push").stdout
    assert ids(read_address(team)) == ids(own(workspace))


def test_a_key_is_named_and_nothing_is_pushed(
    workspace: Path, team: str, evalstore: Evalstore
) -> None:
    tree(workspace, {"models/one.yaml": ONE.replace("Cold.", KEY)})
    evalstore("run")
    refused = evalstore("push")
    assert refused.exit_code == USAGE
    assert "nothing was pushed: 1 row would reveal a key" in refused.stderr
    assert KEY not in refused.stderr
    assert not is_there(read_address(team))
    assert evalstore("push", "--allow-keys").exit_code == OK
    assert ids(read_address(team)) == ids(own(workspace))


# --- interruptions and others at the same time


def test_an_interrupted_push_and_pull_are_completed_by_the_next_and_show_no_run_before(
    workspace: Path, team: str, bob: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    evalstore("run")
    whole = ids(own(workspace))

    class Stopped(Exception):  # noqa: N818 - what ends a program is no error of it
        pass

    @contextmanager
    def stopping(after: int) -> Iterator[None]:
        left = [after]
        ensure = RecordQueries.ensure_records

        def ensure_some(store: RecordQueries, records: list[object]) -> None:
            if not left[0]:
                raise Stopped
            left[0] -= 1
            ensure(store, records)  # type: ignore[arg-type]

        with monkeypatch.context() as patch:
            patch.setattr(RecordQueries, "ensure_records", ensure_some)
            yield

    for argv, target in (
        (("push",), read_address(team)),
        (("-C", str(bob), "pull"), own(bob)),
    ):
        for after in range(20):
            is_done = False
            with stopping(after), suppress(Stopped):
                is_done = evalstore(*argv).exit_code == OK
            some = ids(target) if is_done or after else set()
            assert some <= whole
            assert is_done or not any(table == "runs" for table, _ in some)
            if is_done:
                break
        assert after > 3
        assert ids(target) == whole


def test_a_connection_that_is_cut_at_each_transaction_loses_and_doubles_nothing(
    workspace: Path, team: str, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    evalstore("run")
    Store.open(read_address(team), create=True).close()
    cut: list[str] = []
    insert = PostgreSQLConnection.insert

    def insert_and_cut(connection: PostgreSQLConnection, table: object, rows: object) -> int:
        count = insert(connection, table, rows)  # type: ignore[arg-type]
        if str(table) not in cut:  # once for each table, before the transaction is committed
            cut.append(str(table))
            pid = connection.count("SELECT pg_backend_pid()")
            execute(read_address(team), f"SELECT pg_terminate_backend({pid}, 10000)")
        return count

    monkeypatch.setattr(PostgreSQLConnection, "insert", insert_and_cut)
    assert evalstore("push").exit_code == OK
    assert len(cut) > 5
    assert ids(read_address(team)) == ids(own(workspace))


def test_what_others_push_in_the_middle_of_a_push_is_stored_once(
    workspace: Path, team: str, bob: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    evalstore("run")
    evalstore("-C", str(bob), "run")
    ensure = RecordQueries.ensure_records
    others = [True]

    def ensure_after_others(store: RecordQueries, records: list[object]) -> None:
        if others:
            others.clear()
            with monkeypatch.context() as patch:
                patch.setattr(RecordQueries, "ensure_records", ensure)
                assert evalstore("-C", str(bob), "push").exit_code == OK
                tree(bob, {"tests/weather.md": WEATHER.replace("Rome", "Bern")})
                assert evalstore("-C", str(bob), "--store", team, "run").exit_code in (OK, NO)
        ensure(store, records)  # type: ignore[arg-type]

    monkeypatch.setattr(RecordQueries, "ensure_records", ensure_after_others)
    assert evalstore("push").exit_code == OK
    monkeypatch.undo()
    everything = ids(read_address(team))
    assert ids(own(workspace)) | ids(own(bob)) < everything
    assert sum(table == "runs" for table, _ in everything) == 3


# --- data of somebody else


def test_a_changed_row_is_found_and_not_pulled(
    workspace: Path, team: str, bob: Path, evalstore: Evalstore
) -> None:
    evalstore("run")
    evalstore("push")
    address = read_address(team)
    execute(address, "UPDATE sessions SET content = replace(content, 'Cold.', 'Mild.')")
    refused = evalstore("-C", str(bob), "pull")
    assert refused.exit_code == STORE_UNUSABLE
    assert f"the store '{address}' is damaged" in refused.stderr
    assert f"fsck --store '{address}'' lists what is wrong" in refused.stderr
    assert not any(table in ("sessions", "runs") for table, _ in ids(own(bob)))


def test_a_row_of_a_newer_program_is_not_called_damage_and_stops_a_pull(
    workspace: Path, team: str, bob: Path, evalstore: Evalstore
) -> None:
    evalstore("run")
    evalstore("push")
    address = read_address(team)
    id, content = hashing.identify(hashing.describe("weights", tests={"tests/weather.md": 2}))
    execute(address, f"INSERT INTO nodes VALUES ('\\x{id}', '{content}')")
    there = read_rows(address)
    refused = evalstore("-C", str(bob), "pull")
    assert refused.exit_code == STORE_UNUSABLE
    assert f"error: the store '{address}' was written by a newer evalstore: row" in refused.stderr
    assert "the kind 'weights' is not known\nhint: upgrade evalstore\n" in refused.stderr
    assert not any(table in ("nodes", "runs") for table, _ in ids(own(bob)))
    checked = evalstore("--store", team, "fsck")
    assert checked.exit_code == NO
    assert "the kind 'weights' is not known; upgrade" in checked.stdout
    assert read_rows(address) == there
    execute(address, "DELETE FROM nodes WHERE content LIKE '%weights%'")
    assert evalstore("-C", str(bob), "pull").exit_code == OK
    assert ids(own(bob)) == ids(own(workspace))


def test_rows_that_refer_to_what_the_database_lacks_stay_there(
    workspace: Path, team: str, bob: Path, evalstore: Evalstore
) -> None:
    evalstore("run")
    evalstore("push")
    execute(read_address(team), "DELETE FROM sessions WHERE content LIKE '%Cold.%'")
    pulled = evalstore("-C", str(bob), "pull")
    assert pulled.exit_code == OK
    assert "stayed in the remote, which lacks rows that they refer to" in pulled.stderr
    stored = ids(own(bob))
    assert not any(table == "runs" for table, _ in stored)
    evalstore("push")
    assert "pulled 1 run, 1 answer" in evalstore("-C", str(bob), "pull").stdout
    assert ids(own(bob)) == ids(own(workspace))


def test_rows_whose_references_are_lost_here_do_not_reach_the_database(
    workspace: Path, team: str, evalstore: Evalstore
) -> None:
    evalstore("run")
    execute(own(workspace), "DELETE FROM sessions WHERE content LIKE '%Cold.%'")
    pushed = evalstore("push")
    assert pushed.exit_code == STORE_UNUSABLE
    assert "the store is damaged, so" in pushed.stderr
    assert "rows were not pushed: it lacks what others refer to" in pushed.stderr
    assert "hint: 'evalstore fsck' lists what is wrong" in pushed.stderr
    there = ids(read_address(team))
    assert any(table == "sessions" for table, _ in there)
    assert not any(table == "runs" for table, _ in there)


def test_a_trigger_of_somebody_else_is_told_and_not_run(team: str, evalstore: Evalstore) -> None:
    Store.open(read_address(team), create=True).close()
    execute(
        read_address(team),
        "CREATE FUNCTION public.note_it() RETURNS trigger LANGUAGE plpgsql AS "
        "$$BEGIN RETURN NEW; END$$",
        "CREATE TRIGGER noted BEFORE INSERT ON sessions FOR EACH ROW "
        "EXECUTE FUNCTION public.note_it()",
    )
    try:
        evalstore("run")
        refused = evalstore("push")
        assert refused.exit_code == STORE_UNUSABLE
        assert (
            "the trigger 'noted' of the table 'sessions' does not belong to evalstore"
            in refused.stderr
        )
        assert read_rows(read_address(team)) == {}
    finally:
        execute(read_address(team), "DROP FUNCTION public.note_it CASCADE")


def test_a_database_of_the_settings_needs_consent_before_anything_is_connected(
    workspace: Path,
    postgresql_server: PostgreSQLServer,
    evalstore: Evalstore,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    url = postgresql_server.url()
    shown = read_address(url)
    tree(workspace, {"evalstore.yaml": f"{SETTINGS}remotes: {{team: '{url}'}}\n"})
    evalstore("run")
    with monkeypatch.context() as patch:
        patch.setattr(drivers, "connect", lambda address: pytest.fail(f"connected to {address}"))
        for command in ("push", "push -n", "pull", "pull -n", "remote show", "status"):
            refused = evalstore(*command.split())
            if command == "status":
                assert refused.exit_code == OK
                continue
            assert refused.exit_code == USAGE
            assert f"leads to '{shown}', which is outside the workspace" in refused.stderr
            assert "--allow-outside" in refused.stderr
    allowed = evalstore("push", "--allow-outside")
    assert allowed.exit_code == OK
    assert f"this workspace may use '{shown}' from now on" in allowed.stderr
    assert evalstore("pull").exit_code == OK
    with monkeypatch.context() as patch:  # the same server with another option is another place
        patch.setattr(drivers, "connect", lambda address: pytest.fail(f"connected to {address}"))
        other = f"{url}&application_name=else"
        tree(workspace, {"evalstore.yaml": f"{SETTINGS}remotes: {{team: '{other}'}}\n"})
        assert "which is outside the workspace" in evalstore("pull").stderr


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://bob:hunter2hunter2@db/evals",
        "postgres://bob:hunter2hunter2@db/evals",
        "postgresql://bob@db/evals?password=hunter2hunter2",
        "postgresql:bob:hunter2hunter2@db/evals",
        "postgresql:/bob:hunter2hunter2@db/evals",
        "postgres//bob:hunter2hunter2@db/evals",
        "host=db password=hunter2hunter2",
    ],
)
def test_an_address_with_a_password_is_neither_written_nor_shown(
    workspace: Path, evalstore: Evalstore, address: str
) -> None:
    for argv in (
        ("remote", "add", "team", address),
        ("push", address),
        ("pull", address),
        ("clone", address, "new"),
    ):
        refused = evalstore(*argv)
        # A typed store may have a password, which is sent to it; there is none at this address.
        codes = (USAGE, STORE_UNUSABLE) if argv[0] == "pull" else (USAGE,)
        assert refused.exit_code in codes, refused
        assert "hunter2" not in refused.stdout + refused.stderr
    assert (workspace / "evalstore.yaml").read_text() == SETTINGS
    tree(workspace, {"evalstore.yaml": f"{SETTINGS}remotes: {{team: '{address}'}}\n"})
    for command in ("push", "pull", "pull -n", "remote", "remote show", "remote gc", "status"):
        told = evalstore(*command.split(), "--allow-outside")
        assert "hunter2" not in told.stdout + told.stderr
    told = evalstore("remote", "remove", "team")
    assert "hunter2" not in told.stdout + told.stderr
    assert not (workspace / "new").exists()


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("host=db password=hunter2", "it is not a URL"),
        ("postgresql:/bob:hunter2@db/evals", "it is not a URL"),
        ("postgresql://db/evals?pasword=hunter2", "'pasword' is not an option of a connection"),
    ],
)
def test_an_address_that_cannot_be_used_is_that_of_the_remote_at_its_place(
    workspace: Path, evalstore: Evalstore, address: str, reason: str
) -> None:
    added = evalstore("remote", "add", "team", address)
    assert f"error: the address of the remote cannot be used: {reason}" in added.stderr
    line = len(SETTINGS.splitlines()) + 3
    settings = f"{SETTINGS}remotes:\n  team:\n    address: {address}\n    excludeTags: [private]\n"
    tree(workspace, {"evalstore.yaml": settings})
    where = f"error: evalstore.yaml:{line}: the address of the remote 'team' cannot be used: "
    for command in ("push", "pull", "pull -n", "remote show"):
        refused = evalstore(*command.split())
        assert refused.stderr.startswith(f"{where}{reason}"), refused
        assert "hunter2" not in refused.stderr
        assert refused.exit_code == USAGE


def test_a_password_comes_from_outside_of_the_workspace(
    workspace: Path,
    postgresql_server: PostgreSQLServer,
    evalstore: Evalstore,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    evalstore("run")
    with postgresql_server.needing_password("remote_user", "open-sesame-99") as url:
        refused = evalstore("remote", "add", "team", url)
        assert "hint: PGPASSWORD or ~/.pgpass" in refused.stderr
        plain = url.replace(":open-sesame-99", "")
        assert evalstore("remote", "add", "team", plain).exit_code == OK
        assert "does not accept this user" in evalstore("push").stderr
        monkeypatch.setenv("PGPASSWORD", "open-sesame-99")
        pushed = evalstore("push")
        assert pushed.exit_code == OK
        assert ids(read_address(plain)) == ids(own(workspace))
        monkeypatch.delenv("PGPASSWORD")
    assert "open-sesame" not in pushed.stdout + pushed.stderr
    for path in workspace.rglob("*"):
        assert not path.is_file() or b"open-sesame" not in path.read_bytes()


# --- what a database cannot do


def test_a_role_that_may_only_read_pulls_and_is_told_why_it_cannot_push(
    workspace: Path, team: str, bob: Path, evalstore: Evalstore
) -> None:
    evalstore("run")
    evalstore("push")
    address = read_address(team)
    execute(
        address,
        "CREATE ROLE remote_reader LOGIN",
        f"GRANT USAGE ON SCHEMA {address.schema} TO remote_reader",
        f"GRANT SELECT ON ALL TABLES IN SCHEMA {address.schema} TO remote_reader",
    )
    try:
        settings = (bob / "evalstore.yaml").read_text()
        tree(bob, {"evalstore.yaml": settings.replace("postgres@", "remote_reader@")})
        at_bob = ("-C", str(bob))
        assert evalstore(*at_bob, "pull", "--allow-outside").exit_code == OK
        assert ids(own(bob)) == ids(own(workspace))
        assert "nothing to push" in evalstore(*at_bob, "push").stdout
        tree(bob, {"tests/weather.md": WEATHER.replace("Rome", "Bern")})
        evalstore(*at_bob, "run")
        before = ids(address)
        refused = evalstore(*at_bob, "push")
        assert refused.exit_code == STORE_UNUSABLE
        assert "this user may not use the store" in refused.stderr
        assert "permission denied for table" in refused.stderr
        assert "hint: its owner can GRANT what is missing" in refused.stderr
        assert ids(address) == before
    finally:
        execute(address, "DROP OWNED BY remote_reader CASCADE", "DROP ROLE remote_reader")


def test_tables_of_another_version_are_neither_read_nor_migrated(
    team: str, evalstore: Evalstore
) -> None:
    evalstore("run")
    evalstore("push")
    for version, words in (("0099", "newer"), ("0005", "is older than this program")):
        execute(read_address(team), f"UPDATE alembic_version SET version_num = '{version}'")
        for command in ("push", "pull", "pull -n", "remote show"):
            refused = evalstore(*command.split())
            assert refused.exit_code == STORE_UNUSABLE
            assert words in refused.stderr, refused


def test_a_database_without_tables_or_none_is_told(
    workspace: Path, team: str, evalstore: Evalstore
) -> None:
    evalstore("run")
    for command in ("pull", "pull -n", "remote show team"):
        refused = evalstore(*command.split())
        assert refused.exit_code == STORE_UNUSABLE
        assert "is not a remote of evalstore: it has no tables" in refused.stderr
        assert "hint: 'evalstore push' makes them" in refused.stderr
    settings = (workspace / "evalstore.yaml").read_text()
    tree(workspace, {"evalstore.yaml": settings.replace("/postgres?", "/nowhere?")})
    for command in ("push", "pull"):
        refused = evalstore(command, "--allow-outside")
        assert refused.exit_code == STORE_UNUSABLE
        assert "no database" in refused.stderr


def test_the_store_itself_is_no_remote(team: str, evalstore: Evalstore) -> None:
    evalstore("--store", team, "run")
    for command in ("push", "pull"):
        refused = evalstore("--store", team, command)
        assert refused.exit_code == USAGE
        assert "the remote 'team' is the store of this workspace" in refused.stderr


@pytest.mark.parametrize(
    "rule", ["trust: [Ann@desk]", "allowedSigners: allowed_signers", "sign: ~/.ssh/key"]
)
def test_rules_about_pushes_are_refused_as_rows_of_a_database_have_none(
    workspace: Path, team: str, evalstore: Evalstore, rule: str
) -> None:
    evalstore("run")
    settings = f"{SETTINGS}remotes:\n  team:\n    address: {team}\n    {rule}\n"
    tree(workspace, {"evalstore.yaml": settings})
    for command in ("push", "pull", "remote show"):
        refused = evalstore(*command.split())
        assert refused.exit_code == USAGE
        assert f"so it cannot have '{rule.partition(':')[0]}'" in refused.stderr
    assert not is_there(read_address(team))


@pytest.mark.parametrize(
    "command",
    ["remote gc", "pull --for-plan", "run --remote team", "status --remote team", "fsck --remote"],
)
def test_what_needs_the_files_of_a_remote_says_what_to_use(
    team: str, evalstore: Evalstore, command: str
) -> None:
    evalstore("run")
    evalstore("push")
    told = evalstore(*command.split(), *(["team"] if command == "fsck --remote" else []))
    assert told.exit_code == USAGE, told
    assert "the remote 'team' is a database: only 'push', 'pull'" in told.stderr
    assert "--store ADDRESS" in told.stderr
    runs = json.loads(evalstore("log", "--json").stdout)["runs"]
    assert len(runs) == 1


def test_status_and_revisions_do_without_what_a_database_has(
    workspace: Path, team: str, evalstore: Evalstore
) -> None:
    del team
    status = evalstore("status")
    assert status.exit_code == OK
    assert "not read yet" not in status.stdout + status.stderr
    evalstore("run")
    evalstore("push")
    told = evalstore("show", "team/@")
    assert "the remote 'team' is a database, of which no copy is kept here" in told.stderr
    assert "hint: 'evalstore pull team' copies its runs" in told.stderr
    listed = evalstore("remote", "list").stdout
    assert "postgresql://" in listed
    assert evalstore("remote", "remove", "team").exit_code == OK
    assert "postgresql" not in (workspace / "evalstore.yaml").read_text()


def test_a_clone_has_all_results_and_the_remote(
    workspace: Path, team: str, evalstore: Evalstore
) -> None:
    missing = evalstore("clone", team, "new")
    assert missing.exit_code == STORE_UNUSABLE
    assert not (workspace / "new").exists()
    evalstore("run")
    evalstore("push")
    cloned = evalstore("clone", team)
    assert cloned.exit_code == OK, cloned
    assert "cloned 1 run, 2 answers" in cloned.stdout
    assert ids(own(workspace / "postgres")) == ids(own(workspace))
    assert "nothing to pull" in evalstore("-C", "postgres", "pull").stdout
