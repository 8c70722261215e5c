"""Settled parts of a store on a server after others have pulled, merged, cleaned up or replaced it.

The next commands plan and say what they would without settled parts.
"""

from __future__ import annotations

import json
import os
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest

from evalstore.interfaces.cli.main import main
from evalstore.providers.script import ScriptedProvider
from evalstore.runs import run, run_record
from evalstore.runs.execution.sharing.work_sharing import WorkSharing
from evalstore.store.location import read_address
from tests.builders import tree
from tests.hostile.databases import copy_store
from tests.interfaces.cli.conftest import Evalstore
from tests.interfaces.cli.status.test_settled_on_server import ROW, reused, settled
from tests.interfaces.cli.status.test_settled_on_server import RUN as RUN_JSON
from tests.interfaces.cli.status.test_settled_on_server import place as place
from tests.interfaces.cli.status.test_settled_on_server import url as url
from tests.interfaces.cli.status.test_settled_parts import (
    CASES,
    FILES,
    ROWS,
    STORE,
    compare,
    failing,
    forget,
    results_of,
    write_rows,
)
from tests.postgresql_server import PostgreSQLServer, running_server
from tests.store.postgresql.test_growth import copied
from tests.stored_rows import execute

pytestmark = pytest.mark.extended

QUIET = ("--yes", "--fail-on", "none", "-q")
RUN = ("run", *QUIET)
OTHER_ROW = "tests/rows.md::country=country 30"


def edit_rows(folder: Path) -> None:
    """Have ten other rows at the end."""
    others = [{"country": f"town {number}", "capital": "Oslo 1"} for number in range(10)]
    write_rows(folder, [*ROWS[:-10], *others])


NEWS: dict[str, tuple[tuple[str, ...], ...]] = {
    "another answer": (("run", ROW, "--refresh", *QUIET),),
    "a label": (("label", ROW, "fail"),),
    "more rows": (RUN,),
    "nothing": (),
}
"""What somebody else has in a store, after a run of the same rows."""


def act(folder: Path, *commands: tuple[str, ...], store: str | None = None) -> None:
    """Carry out commands as another program, in a fork of this process."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # there are threads
        child = os.fork()
    if not child:
        try:
            os.chdir(folder)
            os.environ.pop(STORE, None)
            os.environ.update({STORE: store} if store else {})
            codes = [main(command) for command in commands]
            os._exit(max(codes, default=0))
        finally:
            os._exit(70)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, commands


@pytest.fixture
def theirs(place: Path, url: str) -> Callable[[str], Path]:
    """Return what makes the workspace of somebody else, with a store in a file."""

    def make(news: str) -> Path:
        folder = place.with_name("theirs")
        shutil.copytree(place, folder, ignore=shutil.ignore_patterns(".evalstore"))
        act(folder, ("pull", url, "-q"))
        if news == "more rows":
            edit_rows(folder)
        act(folder, *NEWS[news])
        return folder

    return make


def share(ours: Path, theirs: Path, url: str) -> None:
    """Push all to a remote of both."""
    remote = ("--allow-outside", "remote", "add", "origin", str(ours.parent / "remote"))
    act(ours, remote, ("push", "-q"), store=url)
    act(theirs, remote, ("push", "-q"))


def verify(evalstore: Evalstore, place: Path, *, asked: int = 0, problems: int = 0) -> None:
    """Compare all that commands say and plan with what they do without settled parts."""
    compare(evalstore, place)
    report = json.loads(evalstore(*RUN_JSON).stdout)
    assert (report["asked"], report["reused"]) == (asked, CASES - asked)
    assert settled(place) > 2
    forget(place)
    assert reused(evalstore) == CASES
    assert len(set(results_of(place)[:2])) == 1
    assert settled(place) > 2
    assert evalstore("fsck").exit_code == problems


@pytest.mark.parametrize(
    ("news", "way"),
    [
        ("another answer", "remote"),
        ("another answer", "store"),
        ("a label", "remote"),
        ("more rows", "store"),
        ("nothing", "store"),
    ],
)
def test_what_is_copied_into_the_store_is_planned(
    place: Path,
    url: str,
    theirs: Callable[[str], Path],
    evalstore: Evalstore,
    news: str,
    way: str,
) -> None:
    other = theirs(news)
    if way == "remote":
        share(place, other, url)
    before = settled(place)
    assert before > 2
    source = () if way == "remote" else (str(other / ".evalstore/store.db"),)
    copied = evalstore("pull", *source)
    assert copied.exit_code == 0, copied
    is_of_known_rows = news in ("another answer", "a label")
    assert (settled(place) < before) == is_of_known_rows
    if news == "more rows":
        edit_rows(place)
    verify(evalstore, place)
    assert failing(evalstore, ROW) == (["fail"] if news == "a label" else ["pass"])


def test_commands_that_only_copy_elsewhere_and_check_leave_parts_settled(
    place: Path,
    url: str,
    theirs: Callable[[str], Path],
    evalstore: Evalstore,
) -> None:
    share(place, theirs("nothing"), url)
    before = settled(place)
    for command in (
        ("push",),
        ("remote", "gc", "origin", "--grace", "1s"),
        ("fsck",),
        ("fsck", "--remote", "origin"),
        ("push", "all.bundle"),
        ("export", "-o", "all.json"),
    ):
        ran = evalstore(*command)
        assert ran.exit_code == 0, (command, ran)
        assert settled(place) == before, command
    verify(evalstore, place)


def test_a_clone_has_settled_parts_of_its_own_alone(
    place: Path,
    url: str,
    evalstore: Evalstore,
    monkeypatch: pytest.MonkeyPatch,
    postgresql_server: PostgreSQLServer,
) -> None:
    remote = str(place.parent / "remote")
    act(place, ("--allow-outside", "remote", "add", "origin", remote), ("push", "-q"), store=url)
    before = settled(place)
    act(place.parent, ("clone", remote, "cloned", "-q"))
    folder = place.parent / "cloned"
    settings = (folder / "evalstore.yaml").read_text("utf-8")
    named = f"candidates: [one]\n{settings}"
    tree(folder, {**FILES, "evalstore.yaml": named})
    write_rows(folder, ROWS)
    (place / ".evalstore/settled").rename(folder / ".evalstore/settled")  # brought from elsewhere
    monkeypatch.chdir(folder)
    monkeypatch.setenv(STORE, postgresql_server.url())
    assert evalstore("init").exit_code == 0
    assert json.loads(evalstore("status", "--json").stdout)["ask"] == CASES
    pulled = evalstore("pull")
    assert pulled.exit_code == 0, pulled
    assert settled(folder) == 0
    verify(evalstore, folder)
    shutil.copy(folder / ".evalstore/settled", place / ".evalstore/settled")
    monkeypatch.chdir(place)
    monkeypatch.setenv(STORE, url)
    assert settled(place) == 0
    verify(evalstore, place)
    assert settled(place) == before


# --- another database at the same address


def drop_schema(url: str) -> None:
    address = read_address(url)
    execute(address, f"DROP SCHEMA {address.schema} CASCADE")


def test_a_store_that_was_made_anew_is_planned_whole(
    place: Path, url: str, evalstore: Evalstore
) -> None:
    assert settled(place) > 2
    drop_schema(url)
    assert evalstore("init").exit_code == 0
    assert settled(place) == 0
    assert json.loads(evalstore("status", "--json").stdout)["ask"] == CASES
    compare(evalstore, place)
    assert reused(evalstore) == 0
    assert settled(place) > 2
    compare(evalstore, place)


@pytest.mark.parametrize("keeps", ["a part", "all"])
def test_a_store_that_was_replaced_by_another_one_is_planned_whole(
    place: Path,
    url: str,
    evalstore: Evalstore,
    postgresql_server: PostgreSQLServer,
    keeps: str,
) -> None:
    """The other one has the rows of this one, or of an earlier moment, and gets its name."""
    other = copy_store(url, postgresql_server.url())
    ours, theirs = (read_address(each).schema for each in (url, other))
    if keeps == "a part":
        execute(
            read_address(other),
            "DELETE FROM evaluations WHERE id IN (SELECT id FROM evaluations LIMIT 30)",
            "DELETE FROM sessions s WHERE NOT EXISTS "
            "(SELECT 1 FROM evaluations e WHERE e.subject = s.id)",
            "DELETE FROM runs",
        )
    drop_schema(url)
    execute(read_address(other), f"ALTER SCHEMA {theirs} RENAME TO {ours}")
    assert settled(place) == 0
    lost = keeps == "a part"
    verify(evalstore, place, asked=30 * lost, problems=int(lost))


def test_a_server_that_was_restored_from_a_backup_is_planned_as_it_was_then(
    place: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has the marks of its moment, and the numbers of lost transactions come again."""
    with running_server() as server:
        monkeypatch.setenv(STORE, server.url())
        assert evalstore("init").exit_code == 0
        assert reused(evalstore) == 0
        then = settled(place)
        known = (place / ".evalstore/settled").read_bytes()
        with copied(server) as restore:
            again = evalstore("run", ROW, "--yes", "--fail-on", "none", "--refresh")
            assert "1 new answer" in again.stdout
            assert evalstore("label", ROW, "fail").exit_code == 0
            assert reused(evalstore) == CASES
            assert (settled(place) > 2, failing(evalstore, ROW)) == (True, ["fail"])
            restore()
        assert settled(place) == 0
        compare(evalstore, place)
        (place / ".evalstore/settled").write_bytes(known)  # as on a machine that was not used since
        assert settled(place) == then
        compare(evalstore, place)
        assert evalstore("label", OTHER_ROW, "fail").exit_code == 0
        assert 0 < settled(place) < then
        compare(evalstore, place)
        assert reused(evalstore) == CASES
        assert (failing(evalstore, ROW), failing(evalstore, OTHER_ROW)) == (["pass"], ["fail"])
        compare(evalstore, place)


# --- others at the same moment


ACTIONS: dict[str, tuple[tuple[str, ...], ...]] = {
    "another answer": (("run", ROW, "--refresh", *QUIET),),
    "a label": (("label", ROW, "fail"),),
    "a merge": (("pull", "../theirs/.evalstore/store.db", "-q"),),
    "a pull": (("pull", "-q"),),
    "clean-up": (("remote", "gc", "origin", "--grace", "1s"), ("push", "-q")),
    "the same run": (RUN,),
}
"""What another program does meanwhile."""
MOMENTS: dict[str, tuple[Any, str]] = {
    "planned": (WorkSharing, "claim"),
    "claimed": (ScriptedProvider, "ask"),
    "recorded": (run, "record"),
}
"""What is called at a moment: before items are claimed, when one is asked, before the record."""


@pytest.mark.parametrize(
    ("action", "moment"),
    [
        *((action, "planned") for action in ACTIONS if action != "the same run"),  # it would wait
        ("another answer", "claimed"),
        *((action, "recorded") for action in ("another answer", "a pull", "the same run")),
    ],
)
def test_what_others_do_during_a_run_is_planned_by_the_next(
    place: Path,
    url: str,
    theirs: Callable[[str], Path],
    evalstore: Evalstore,
    monkeypatch: pytest.MonkeyPatch,
    action: str,
    moment: str,
) -> None:
    if action in ("a merge", "a pull", "clean-up"):
        share(place, theirs("a label"), url)
    write_rows(place, [*ROWS[:-1], {"country": "new", "capital": "Oslo"}])
    owner, name = MOMENTS[moment]
    then = getattr(owner, name)
    done: list[str] = []

    def act_first(*arguments: Any, **options: Any) -> Any:
        if not done:
            done.append(moment)
            act(place, *ACTIONS[action], store=url)
        return then(*arguments, **options)

    with monkeypatch.context() as patched:
        patched.setattr(owner, name, act_first)
        ran = evalstore("run", "--yes", "--fail-on", "none")
    assert (ran.exit_code, done) == (0, [moment]), ran
    verify(evalstore, place)
    labelled = action in ("a label", "a merge", "a pull")
    assert failing(evalstore, ROW) == (["fail"] if labelled else ["pass"])


def test_a_mark_that_is_removed_during_a_run_settles_nothing(
    place: Path, url: str, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As by a program whose clean-up takes all marks for too old."""
    record = run_record.record

    def remove_first(*arguments: Any) -> Any:
        execute(read_address(url), "DELETE FROM growth_marks")
        return record(*arguments)

    (place / ".evalstore/settled").unlink()
    with monkeypatch.context() as patched:
        patched.setattr(run, "record", remove_first)
        assert reused(evalstore) == CASES
    assert settled(place) > 2  # the run has made a mark of its own when it was recorded
    compare(evalstore, place)
    execute(read_address(url), "DELETE FROM growth_marks")
    assert settled(place) == 0
    verify(evalstore, place)


def test_two_workspaces_that_run_in_turn_settle_what_each_has_seen(
    place: Path, url: str, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both have new rows of their own, and share the others; the second begins in the first."""
    other = place.with_name("other")
    shutil.copytree(place, other)
    for folder, name in ((place, "one"), (other, "two")):
        news = [{"country": f"{name} {number}", "capital": "Oslo 1"} for number in range(20)]
        write_rows(folder, [*ROWS[:-20], *news])
    ask = ScriptedProvider.ask
    calls: list[int] = []

    def run_other(*arguments: Any, **options: Any) -> Any:
        calls.append(1)
        if len(calls) == 7:
            act(other, RUN, store=url)
        return ask(*arguments, **options)

    with monkeypatch.context() as patched:
        patched.setattr(ScriptedProvider, "ask", run_other)
        assert reused(evalstore) == CASES - 20
    for folder in (place, other):
        monkeypatch.chdir(folder)
        verify(evalstore, folder)


def test_a_connection_that_is_cut_during_a_run_settles_what_was_stored(
    place: Path, url: str, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = read_address(url)
    ask = ScriptedProvider.ask
    cut: list[int] = []

    def cut_first(*arguments: Any, **options: Any) -> Any:
        if not cut:
            cut.append(1)
            with psycopg.connect("", autocommit=True, **_options(address)) as raw:
                raw.execute(
                    "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity "
                    "WHERE application_name = 'evalstore' AND pid <> pg_backend_pid()"
                )
        return ask(*arguments, **options)

    edit_rows(place)
    with monkeypatch.context() as patched:
        patched.setattr(ScriptedProvider, "ask", cut_first)
        ran = evalstore("run", "--yes", "--fail-on", "none")
    assert "10 new answers" in ran.stdout, ran
    verify(evalstore, place)


def _options(address: Any) -> dict[str, Any]:
    return dict(address.options)
