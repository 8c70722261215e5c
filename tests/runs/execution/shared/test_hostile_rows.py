"""Rows of runs in progress that a role of the team has written by hand: they stop nobody else."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest

from evalstore.core.errors import STORE_UNUSABLE
from evalstore.store import Store
from evalstore.store.location import read_address
from tests.builders import tree
from tests.forked_programs import Starter
from tests.runs.execution.shared.test_shared_runs import Team, reports
from tests.runs.execution.shared.test_shared_runs import team as team
from tests.store.test_run_documents import DESCRIPTION

pytestmark = pytest.mark.extended

RUN, RUNNER = "0751" + 14 * "b2", "0752" + 14 * "c3"
NOW = 1_700_000_000_000_000
Change = Callable[..., None]
Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def change(team: Team) -> Iterator[Change]:
    """Change the store by hand; the rows of this run are removed in the end."""
    Store.open(read_address(team.url), create=True).close()

    def execute(statement: str, *values: Any) -> None:
        with closing(Store.open(read_address(team.url))) as store, store.writing() as connection:
            connection.execute(statement, values)

    yield execute
    for table in ("shared_runs", "run_shares", "runners", "runner_accounts", "work"):
        execute(f"DELETE FROM {table}")


@pytest.fixture
def call(team: Team, start: Starter) -> Call:
    """Carry out a command in the workspace, whose models answer at once."""
    team.let_go.set()

    def execute(*arguments: str) -> tuple[int, str, str]:
        return start("--store", team.url, *arguments, folder=team.workspace).finish()

    return execute


def add_run(change: Change, description: Any, limit: float | None = None, run: str = RUN) -> None:
    text = description if isinstance(description, str) else json.dumps(description)
    values = (bytes.fromhex(run), text, NOW, limit)
    change("INSERT INTO shared_runs VALUES (?, ?, ?, ?)", *values)


def add_share(change: Change, counts: str, reserved: float = 0.0, spent: float = 0.0) -> None:
    values = (bytes.fromhex(RUNNER), bytes.fromhex(RUN), reserved, spent, counts)
    change("INSERT INTO run_shares VALUES (?, ?, ?, ?, ?)", *values)


def require_left_out(call: Call, words: str, run: str = RUN) -> None:
    """Require that all commands leave out the run, and say so, and that it cannot be joined."""
    name = f"run {run[:8]}, which is in progress, "
    code, out, err = call("status")
    assert (code, err.count("warning: ")) == (0, 1), err
    assert name in err
    assert words in err
    assert "Run " not in out
    code, out, err = call("run", "--json", "--limit", "1", "--fail-on", "none")
    assert (code, json.loads(out)["status"]) == (0, "complete"), err
    assert err.count(name) == 1
    code, out, err = call("run", "--join", run[:8])
    assert (code, out) == (STORE_UNUSABLE, ""), err
    assert err.startswith(f"error: {name}")
    assert "\nhint: " in err
    assert err.count("\n") == 2
    code, out, err = call("show", run[:8])
    assert (code, out) == (STORE_UNUSABLE, ""), err
    assert err.startswith(f"error: {name}")
    code, out, err = call("fsck")
    assert code == 1, err
    assert "run in progress" in out + err
    assert run[:8] in out + err


DESCRIPTIONS: dict[str, tuple[Any, str]] = {
    "a list": ("[]", "its description is not a JSON object"),
    "deep": ("[" * 100_000, "its description is not a JSON object"),
    "without files": ({"format": 1, "version": "0.1.0"}, "the field 'files' of its description"),
    "a problem": (DESCRIPTION | {"problem": ["x"], "author": {"a": 1}}, "the field 'author'"),
    "an option": (DESCRIPTION | {"options": {"scheduler": "tcp://x"}}, "the field 'options'"),
    "settings": (DESCRIPTION | {"config": "/etc/passwd"}, "the field 'config' of its description"),
    "newer": (DESCRIPTION | {"format": 2}, "was written by a newer evalstore"),
    "lines": (
        {"format": 1, "version": "0.0.1\nhint: run 'rm'\x1b[2J"},
        "begun by evalstore 0.0.1\\nhint: run 'rm'\\x1b[2J, and",
    ),
}


@pytest.mark.parametrize(("row", "words"), DESCRIPTIONS.values(), ids=DESCRIPTIONS.keys())
def test_a_description_that_cannot_be_read_stops_nobody_else(
    change: Change, call: Call, row: Any, words: str
) -> None:
    add_run(change, row)
    require_left_out(call, words)


SHARES: dict[str, tuple[str, float, str]] = {
    "a list": ("[]", 0.0, "what one of its programs has noted is not a JSON object"),
    "texts": ('{"asked":"x","noted":"y"}', 0.0, "the field 'asked' of what one of its programs"),
    "an attribute": (
        '{"spending":[["m","candidate",{"calls":"x"}]]}',
        0.0,
        "the field 'spending' of what one of its programs",
    ),
    "a debt": ("{}", -9.0, "what one of its programs has spent, -9.0 USD, is not an amount"),
    "not a number": ("{}", float("nan"), "has spent, nan USD, is not an amount"),
}


@pytest.mark.parametrize(("counts", "spent", "words"), SHARES.values(), ids=SHARES.keys())
def test_a_share_that_cannot_be_read_stops_nobody_else(
    change: Change, call: Call, counts: str, spent: float, words: str
) -> None:
    add_run(change, DESCRIPTION)
    add_share(change, counts, spent=spent)
    require_left_out(call, words)


@pytest.mark.parametrize("limit", [-1.0, float("nan"), float("inf")])
def test_a_limit_that_no_run_has_stops_nobody_else(
    change: Change, call: Call, limit: float
) -> None:
    add_run(change, DESCRIPTION, limit)
    require_left_out(call, "its limit of cost is not valid")


def test_ids_of_another_length_stop_nobody_else(change: Change, call: Call) -> None:
    add_run(change, "[]", run="abcd")
    short = bytes.fromhex("ab")
    change("INSERT INTO run_shares VALUES (?, ?, 0, 0, '{}')", short, bytes.fromhex("abcd"))
    change("INSERT INTO runners VALUES (?, 'elsewhere', 1, 'x', 0)", short)
    change("INSERT INTO leases VALUES (?, ?)", bytes(16), short)
    require_left_out(call, "its description is not a JSON object", "abcd")
    change("DELETE FROM leases")


@pytest.mark.parametrize("accounts", ["7", "{", "[[1]]", '[{"a":1}]'])
def test_accounts_that_cannot_be_read_stop_no_run_with_a_limit_per_minute(
    team: Team, change: Change, call: Call, accounts: str
) -> None:
    tree(
        team.workspace,
        {"evalstore.yaml": "candidates: [one]\nevaluators: [judge]\nrequestsPerMinute: 6000\n"},
    )
    runner = bytes.fromhex(RUNNER)
    change("INSERT INTO runners VALUES (?, 'elsewhere', 1, 'x', 0)", runner)
    change("INSERT INTO runner_accounts VALUES (?, ?)", runner, accounts)
    code, out, err = call("run", "--json", "--limit", "1", "--fail-on", "none")
    assert (code, json.loads(out)["status"]) == (0, "complete"), err


def test_a_file_that_cannot_be_written_is_an_error_of_the_run_that_is_joined(
    change: Change, call: Call
) -> None:
    for number, name in enumerate(["../x", "/tmp/x", "a\0b", "x" * 300, ".", "evalstore.yaml/x"]):
        run = f"{number}" * 32
        files = DESCRIPTION["files"] | {name: ""}
        add_run(change, DESCRIPTION | {"files": files}, run=run)
        code, out, err = call("run", "--join", run[:8])
        assert (code, out) == (2, ""), err
        assert f"error: run {run[:8]} " in err
        assert "\0" not in err


def test_names_of_others_are_shown_in_one_line(change: Change, call: Call) -> None:
    add_run(change, DESCRIPTION | {"author": "Vic\n\x1b[31m", "version": "9\nhint: x\x07"})
    code, out, _ = call("status")
    assert code == 0
    assert "begun by Vic\\n\\x1b[31m " in out.replace("\n", " ")
    code, _, err = call("run", "--join", RUN[:8])
    assert code == 2
    assert "was begun by evalstore 9\\nhint: x\\x07, and this is" in err
    change("UPDATE shared_runs SET description = ?", json.dumps(DESCRIPTION | {"problem": "a\nb"}))
    code, _, err = call("run", "--join", RUN[:8])
    assert (code, err) == (2, f"error: run {RUN[:8]} cannot be joined: a\\nb\n")


def the_run(team: Team) -> str:
    """Return the id of the run in progress."""
    with closing(Store.open(read_address(team.url))) as store:
        return store.find_shared_runs()[0].id


@pytest.mark.parametrize("spent", [-100.0, float("nan"), -float("inf")])
def test_amounts_of_others_never_raise_a_limit(team: Team, change: Change, spent: float) -> None:
    leader = team.lead("--max-cost", "0.2")
    leader.wait_until(team.all_call(1))
    values = (bytes.fromhex(RUNNER), bytes.fromhex(the_run(team)), spent)
    change("INSERT INTO run_shares VALUES (?, ?, 0, ?, '{}')", *values)
    team.let_go.set()
    code, _, err = leader.finish()
    assert code == STORE_UNUSABLE, err
    assert "cannot go on, as its cost is not known: what one of its programs has spent" in err
    assert "Traceback" not in err
    assert sum(team.asked.values()) <= 20


def test_a_limit_that_another_removes_still_holds_for_who_has_set_it(
    team: Team, change: Change
) -> None:
    leader = team.lead("--max-cost", "0.1")
    leader.wait_until(team.all_call(1))
    change("UPDATE shared_runs SET cost_limit = NULL")
    team.let_go.set()
    code, out, err = leader.finish()
    assert (code, json.loads(out)["status"]) == (4, "over budget"), err
    assert json.loads(out)["cost"] <= 0.1 + 1e-9


def test_a_run_ends_well_beside_a_share_that_cannot_be_read_and_tells_that_its_cost_is_unknown(
    team: Team, change: Change
) -> None:
    leader = team.lead()
    leader.wait_until(team.all_call(1))
    values = (bytes.fromhex(RUNNER), bytes.fromhex(the_run(team)), '{"asked": "x"}')
    change("INSERT INTO run_shares VALUES (?, ?, 0, 0, ?)", *values)
    team.let_go.set()
    (led,) = reports([leader])
    assert (led["status"], led["cost"]) == ("complete", None)
    assert "the notes of another program about this run cannot be read" in leader.err
