"""The short form of the campaign: a few trials of each attack, the same ones each time.

`make attack` runs the long form.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import endpoint
from tests.exchange.importers.importing import imported
from tests.hostile.campaign import oracles
from tests.hostile.campaign.attacks import ATTACKS
from tests.hostile.campaign.import_sources import SOURCES
from tests.hostile.campaign.processes import Ended, Launcher
from tests.hostile.campaign.runner import Campaign, Finding, Result
from tests.hostile.campaign.table import lines
from tests.hostile.campaign.trial import Attack, Trial
from tests.postgresql_server import PostgreSQLServer

SEED = 20
PATIENCE = 6
"""A busy machine takes longer; nothing here is about speed."""
TOO_LONG = frozenset(("stopped-long", "large-pattern", "schema-unique-items"))
"""Cases that take minutes, or all the time that a check may compute: `test_costly_checks` has it
less.
"""
DRAWN_FROM = 1000
"""The number of the first trial that is drawn: beyond all hand-written ones."""
COUNTS = {
    "files": (6, 1),
    "servers": (2, 1),
    "judges": (3, 1),
    "kills": (2, 0),
    "edits": (0, 1),
    "runners": (2, 1),
    "stores": (2, 1),
    "calls": (2, 1),
    "outside": (2, 0),
    "escapes": (1, 2),
    "fuzz": (5, 0),
    "sharing": (2, 1),
}
"""How many trials of each attack: hand-written ones, and drawn ones."""


ON_SERVER = {
    "kills": (1, 0),
    "edits": (0, 1),
    "runners": (2, 1),
    "calls": (1, 0),
    "servers": (0, 1),
}
"""How many of those that are for stores on a server, too."""


def chosen(attack: Attack, counts: dict[str, tuple[int, int]] = COUNTS) -> list[int]:
    """The numbers of the trials in the short form."""
    listed, drawn = counts[attack.name]
    numbers = [number for number, name in enumerate(attack.names) if name not in TOO_LONG]
    step = max(1, -(-len(numbers) // listed)) if listed else len(numbers) + 1
    return [
        *(numbers[::step] if listed else ()),
        *range(DRAWN_FROM, DRAWN_FROM + drawn),
    ]


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_nothing_gets_through(attack: Attack, launcher: Launcher, tmp_path: Path) -> None:
    numbers = chosen(attack)
    assert numbers
    campaign = Campaign(tmp_path, launcher, SEED, [attack], patience=PATIENCE, is_short=True)
    (result,) = campaign.results
    for number in numbers:
        campaign.attempt(result, number)
    assert not result.findings, "\n".join(lines([result], SEED))
    assert result.trials == len(numbers)


@pytest.mark.parametrize(
    "attack",
    [attack for attack in ATTACKS if attack.is_for_servers],
    ids=lambda attack: attack.name,
)
def test_nothing_gets_through_to_a_store_on_a_server(
    attack: Attack, launcher: Launcher, tmp_path: Path, postgresql_server: PostgreSQLServer
) -> None:
    numbers = chosen(attack, ON_SERVER)
    assert numbers
    new_store = postgresql_server.url
    campaign = Campaign(
        tmp_path, launcher, SEED, [attack], patience=PATIENCE, is_short=True, new_store=new_store
    )
    (result,) = campaign.results
    for number in numbers:
        campaign.attempt(result, number)
    assert not result.findings, "\n".join(lines([result], SEED))


# --- the campaign itself


@pytest.mark.parametrize("format", SOURCES)
def test_mutations_start_from_what_can_be_imported(format: str, tmp_path: Path) -> None:
    path, files = SOURCES[format]
    made = imported(tmp_path, format, files, path)
    assert made.left == []
    assert made.imported.rows > 0


def ended(**fields: object) -> Ended:
    value = {"argv": ("status",), "code": 0, "stdout": "", "stderr": "", "wall": 1, "cpu": 1}
    return Ended(**{**value, "peak": 1 << 20, **fields})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("fields", "description"),
    [
        ({"code": 70}, "exit code 70"),
        ({"code": -11}, "exit code -11"),
        ({"hung": True, "code": 130}, "takes too long"),
        ({"cpu": 11}, "takes too long"),
        ({"hung": True, "deaf": True, "code": -9}, "does not end when it is interrupted"),
        ({"peak": 2 << 30}, "takes too much memory"),
        ({"stdout": "\x1b[31mred"}, "shows raw control characters"),
        ({"stderr": "\x9b2J"}, "shows raw control characters"),
        ({"stdout": "a\u202eb"}, "shows raw control characters"),
        ({"stdout": "<object at 0x7f83e002c040>"}, "shows the address of an object"),
        (
            {
                "code": 70,
                "stderr": "Traceback (most recent call last):\n"
                '  File "/a/evalstore/checks/judging/verdict_reply.py", line 3, in read\n'
                "ValueError: no",
            },
            "traceback: ValueError in evalstore/checks/judging/verdict_reply.py:read",
        ),
    ],
)
def test_a_bad_end_is_found(fields: dict[str, object], description: str) -> None:
    assert [wrong.description for wrong in oracles.judge_end(ended(**fields))] == [description]


def test_a_good_end_is_not_found() -> None:
    value = ended(code=3, stdout="12 cases\n\tOslo, Zürich 👤\n", stderr="hint: none")
    assert list(oracles.judge_end(value)) == []


def leave_the_workspace(trial: Trial) -> None:
    """Do all that a program under attack must not do."""
    (trial.outside / "secret.txt").write_text("changed")
    (trial.ran / "it").touch()
    (trial.folder / "elsewhere").touch()
    (trial.workspace / ".evalstore").mkdir()
    (trial.workspace / ".evalstore" / "store.db").write_text(trial.key)
    trial.server.answer(trial_request(trial.marker), b"")


def trial_request(text: str) -> endpoint.Received:
    return endpoint.Received("/v1/chat/completions", {}, {"messages": [{"content": text}]})


def carry_out(attack: Attack, folder: Path, *numbers: int) -> Result:
    """Carry out trials that start no program."""
    campaign = Campaign(folder, Launcher("nowhere"), SEED, [attack])
    (result,) = campaign.results
    for number in numbers:
        campaign.attempt(result, number)
    return result


def test_what_happens_outside_of_the_workspace_is_found(tmp_path: Path) -> None:
    result = carry_out(Attack("leave", "leaving", leave_the_workspace, names=("all",)), tmp_path, 0)
    assert [finding.description for finding in result.findings] == [
        "changes files outside the workspace",
        "runs what the workspace says",
        "makes files outside the workspace",
        "sends what is outside the workspace",
        "stores a secret",
    ]
    kept = Path(result.findings[0].folder)
    assert "--only leave --seed 20 --case 0" in (kept / "README.txt").read_text()
    assert (kept / "outside/secret.txt").read_text() == "changed"
    assert any("runs what the workspace says" in line for line in lines([result], SEED))


def test_a_trial_is_decided_by_its_number(tmp_path: Path) -> None:
    drawn = []
    attack = Attack("draw", "drawing", lambda trial: drawn.append(trial.chance.random()))
    carry_out(attack, tmp_path, 5, 6, 5)
    assert drawn[0] == drawn[2] != drawn[1]


def test_a_trial_that_fails_itself_is_a_finding(tmp_path: Path) -> None:
    def fail(trial: Trial) -> None:
        raise ValueError("no")

    findings: list[Finding] = carry_out(Attack("fail", "failing", fail), tmp_path, 0).findings
    assert [finding.description for finding in findings] == ["the campaign itself fails"]
    assert not (tmp_path / "trials/fail-0").exists()


@pytest.mark.parametrize(("trap", "deaf"), [("", False), ("trap '' INT; ", True)])
def test_a_program_that_does_not_end_is_interrupted_and_killed(
    trap: str, deaf: bool, launcher: Launcher, tmp_path: Path
) -> None:
    def wait(trial: Trial) -> None:
        script = f"{trap}echo ready; while :; do sleep 1; done"
        running = trial.start(execute=("/bin/sh", "-c", script))
        out = trial.folder / "streams/0.out"
        while not (out.exists() and out.read_text()):
            assert not running.has_ended(0.01)
        actual = running.wait(0.1, patience=0.05 if deaf else PATIENCE)
        seen.append((actual.hung, actual.deaf))

    seen: list[tuple[bool, bool]] = []
    campaign = Campaign(tmp_path, launcher, SEED, [Attack("wait", "waiting", wait)])
    assert campaign.attempt(campaign.results[0], 0) == []
    assert seen == [(True, deaf)]
