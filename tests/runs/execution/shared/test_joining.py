"""Who joins a run: which run it gets, with which clock, and which runs nobody can join."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from evalstore.store import Store
from evalstore.store.location import read_address
from evalstore.store.shared_runs import SharedRun
from tests.builders import tree
from tests.forked_programs import Starter
from tests.runs.execution.shared.test_shared_runs import ROWS, Team, reports
from tests.runs.execution.shared.test_shared_runs import team as team
from tests.store.sessions import a_run

pytestmark = pytest.mark.extended

HOUR = 3600.0


@pytest.fixture(autouse=True)
def _made(team: Team) -> None:
    """Have a store before anybody runs."""
    Store.open(read_address(team.url), create=True).close()


def read(team: Team, *arguments: str, start: Starter, clock: float = 0) -> Any:
    """The document of a command that only reads."""
    started = start(
        "--store", team.url, *arguments, "--json", folder=team.workspace, clock=clock
    ).finish()
    assert started[0] == 0, started
    return json.loads(started[1])


def shared_runs(team: Team) -> list[SharedRun]:
    with closing(Store.open(read_address(team.url))) as store:
        return list(store.find_shared_runs())


@pytest.mark.parametrize("ahead", [HOUR, -HOUR], ids=["ahead", "behind"])
def test_programs_whose_clocks_are_an_hour_apart_pay_once_and_keep_the_limits(
    team: Team, start: Starter, ahead: float
) -> None:
    leader = team.lead("--max-time", "600", "--max-cost", "9", clock=ahead)
    leader.wait_until(team.is_shared)
    programs = [leader, team.join(clock=-ahead), team.join()]
    programs[-1].wait_until(team.all_call(3))
    team.let_go.set()
    led, *joined = reports(programs)
    assert (led["status"], led["asked"], led["verdicts"]["pass"]) == ("complete", ROWS, ROWS)
    assert set(team.asked.values()) == {1}
    assert all(report["asked"] > 0 for report in joined)
    for clock in (-ahead, 0.0, ahead):
        assert read(team, "status", start=start, clock=clock)["items"] == []
    # Of two more runs, the last one is the newest, whatever its clock says.
    again = [reports([team.lead(clock=clock)])[0]["run"] for clock in (ahead, -ahead)]
    listed = [run["run"] for run in read(team, "log", start=start)["runs"]]
    assert listed == [*reversed(again), led["run"]]
    assert sum(team.asked.values()) == ROWS


def test_the_newest_of_two_runs_is_joined_unless_another_is_named(
    team: Team, start: Starter
) -> None:
    first = team.lead()
    first.wait_until(team.has_runners(1))
    (older,) = shared_runs(team)
    tree(team.workspace, {"tests/numbers.jsonl": '{"n": "another"}\n' * 2 + '{"n": "more"}\n'})
    second = team.lead()
    second.wait_until(team.has_runners(2))
    newer = next(run for run in shared_runs(team) if run.id != older.id)
    joined = [team.join(), team.join(older.id[:8])]
    joined[-1].wait_until(team.has_runners(4))
    with closing(Store.open(read_address(team.url))) as store:
        for program, run in zip(joined, (newer, older), strict=True):
            program.wait_until(lambda run=run: len(store.find_shares(run.id)) == 2)  # type: ignore[misc]
    team.let_go.set()
    reports([first, second, *joined])
    assert len(read(team, "log", start=start)["runs"]) == 2


def test_a_run_with_more_than_8_mib_goes_on_alone(team: Team, start: Starter) -> None:
    large = "# ⚙️\n\n" + "Answer briefly. " * (300 * 1024) + "\n"
    assert 4 * 2**20 < len(large) < 8 * 2**20
    tree(team.workspace, {"prompts/one.md": large, "prompts/two.md": large})
    leader = team.lead("--max-cost", "9")
    leader.wait_until(team.is_shared)
    code, _, err = team.join().finish()
    assert code == 2
    assert "cannot be joined: its settings, models and prompts have 9,8" in err
    team.let_go.set()
    (led,) = reports([leader])
    assert (led["status"], led["asked"]) == ("complete", ROWS)
    tree(team.workspace, {"tests/numbers.jsonl": '{"n": "another"}\n'})
    refused = start(
        *("--store", team.url, "run", "--executor", "processes"), folder=team.workspace
    ).finish()
    assert refused[0] == 2
    assert "no other runner can take part in this run: " in refused[2]


APPLICATION = """\
import os, time

def answer(messages, **options):
    with open({begun!r}, "a") as file:
        file.write(os.environ.get("WHO", "nobody") + "\\n")
    while not os.path.exists({go!r}):
        time.sleep(0.05)
    with open({note!r}, "a") as file:
        file.write(os.environ.get("WHO", "nobody") + "\\n")
    return '{{"pass": true}}'
"""


@pytest.mark.parametrize("is_trusted", [True, False], ids=["trusted", "not trusted"])
def test_an_application_needs_trust_on_each_machine(
    team: Team, tmp_path: Path, start: Starter, is_trusted: bool
) -> None:
    go, note, begun = tmp_path / "go", tmp_path / "note", tmp_path / "begun"
    tree(
        team.workspace,
        {
            "evalstore.yaml": "candidates: [bot]\n",
            "models/bot.yaml": "provider: python\ncode: apps/bot.py\nenv: [WHO]\n",
            "apps/bot.py": APPLICATION.format(go=str(go), note=str(note), begun=str(begun)),
            "tests/numbers.md": "---\ndataset: numbers.jsonl\n---\n# User\n\nSay {{n}}.\n\n---\n\n"
            "~~~checks\n- json:\n~~~\n",
        },
    )
    here, there = (str(tmp_path / name) for name in ("here", "there"))
    trusts = [here, there] if is_trusted else [here]
    for file in trusts:
        trusted = start(
            "trust", "models/bot.yaml", folder=team.workspace, EVALSTORE_TRUST_FILE=file
        )
        assert trusted.finish()[0] == 0
    leader = start(
        *("--store", team.url, "run", "--json", "-j", "2"),
        folder=team.workspace,
        EVALSTORE_TRUST_FILE=here,
        WHO="leader",
    )
    leader.wait_until(team.has_runners(1))
    joined = team.join(EVALSTORE_TRUST_FILE=there, WHO="joined")
    if is_trusted:
        joined.wait_until(lambda: begun.exists() and "joined" in begun.read_text().split())
    else:
        code, _, err = joined.finish()
        assert (code, err) == (
            0,
            "warning: models/bot.yaml runs 'apps/bot.py:answer', which is not trusted on this "
            "machine, so it is not called; 'evalstore trust models/bot.yaml' in the workspace, on "
            "this machine, allows it\n",
        )
    go.touch()
    code, out, err = leader.finish()
    assert (code, json.loads(out)["asked"]) == (0, ROWS), (out, err)
    if is_trusted:
        assert joined.finish()[0] == 0
    who = note.read_text().split()
    assert len(who) == ROWS
    assert ("joined" in who) == is_trusted


def test_a_record_without_a_name_of_its_run_is_not_taken_for_the_one_that_is_named(
    team: Team,
) -> None:
    with closing(Store.open(read_address(team.url))) as store:
        store.record_run(a_run(1))  # of a program that gave none
        assert [run.nonce for run in store.find_runs()] == [""]
    code, _, err = team.join("deadbeef").finish()
    assert code == 2
    assert "no run in progress is called 'deadbeef'" in err
    with closing(Store.open(read_address(team.url))) as store, store.writing() as connection:
        for table in ("runs", "run_rows"):  # its snapshot is nowhere
            connection.execute(f"DELETE FROM {table}")
