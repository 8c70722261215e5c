"""Attack: people who push, pull and clean up one remote, killed, damaged and spied upon.

In the end everybody has everything, except what is private: that is in no file of the remote.
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

from evalstore.remotes.layout import sha256
from tests.builders import tree
from tests.hostile.campaign import stores
from tests.hostile.campaign.trial import Attack, Trial

PEOPLE = ("ann", "bob", "cat")
ENDS = {0, 1, 2, 3, 6}
KILLED = {*ENDS, -signal.SIGKILL, -signal.SIGTERM, 130}
LOCAL = ("failures", *stores.PASSING)
"""Tables that are not shared."""
COMMANDS = (
    ("push",),
    ("push",),
    ("pull",),
    ("pull", "--for-plan"),
    ("pull", "-n"),
    ("remote", "show"),
    ("remote", "gc", "--grace", "1d"),
    ("run", "--remote", "origin", "--fail-on", "none"),
)
MODEL = "id: one\nprovider: scripted\nresponses: [{answer: Fine.}]\n"
JUDGE = "id: judge\nprovider: scripted\nresponses: [{answer: {pass: true, feedback: good}}]\n"
SECRET = "PRIVATE-TEXT"
BECOMING = ("tag", "move", "edit", "split", "gone", "unused")
"""What happens to a private test between its runs; it is not pushed before it has its tag."""


def attempt(trial: Trial) -> None:
    """Let people share for a while, then see what each has."""
    chance = trial.chance
    name = trial.name if trial.name in NAMES else chance.choice(NAMES)
    for person in PEOPLE:
        _write_workspace(trial, person, private=name == "private")
    (trial.workspace / "team").mkdir()
    for _ in range(chance.randint(3, 5) if trial.is_short else chance.randint(5, 14)):
        person = chance.choice(PEOPLE)
        if chance.random() < 0.5:
            _edit(trial, person)
            _run(trial, person, "run", "--fail-on", "none", "-q")
        if name == "private" and chance.random() < 0.5:
            _keep_secret(trial, person)
        if chance.random() < 0.5:
            _wait_for_days(trial)
        STEPS[name](trial, person)
    remote = _settle(trial)
    for person in PEOPLE:
        rows = _shared_rows(trial, _store(trial, person))
        if not remote.items() <= rows.items():
            trial.note("somebody lacks rows of the remote", person)
        if name != "private" and not rows.items() <= remote.items():
            trial.note("the remote lacks rows of somebody", person)
    for (table, id), row in remote.items() if name == "private" else ():
        if SECRET in repr(row):
            trial.note(f"something private is in the remote: {table}", f"{id.hex()} {row}"[:500])
    if not any(table == "sessions" for table, _ in remote):
        trial.note("nothing was shared")
    trial.figures["rows shared"] += len(remote)


def _write_workspace(trial: Trial, person: str, *, private: bool) -> None:
    remote = {"address": "../team", **({"excludeTags": ["private"]} if private else {})}
    settings = {"candidates": ["one"], "evaluators": ["judge"], "remotes": {"origin": remote}}
    tree(
        trial.workspace / person,
        {
            "evalstore.yaml": json.dumps(settings),
            "models/one.yaml": MODEL,
            "models/judge.yaml": JUDGE,
            "tests/shared.md": "# 👤\n\nHow is it?\n\n---\n\nIt must be fine.\n",
            "tests/private.md": _private_text(0, "private"),
        },
    )


def _private_text(number: int, tags: str, *, instructions: str = SECRET) -> str:
    return (
        f"---\ntags: [{tags}]\nreplacements: {{n: [1, 2, {SECRET} {number}]}}\n---\n\n"
        f"# 👤\n\nIs {SECRET} {{{{n}}}} there?\n\n---\n\nIt must be {instructions}.\n"
    )


def _run(trial: Trial, person: str, *argv: str, allowed: frozenset[int] | None = None) -> int:
    return trial.run(
        *("--allow-outside", *argv),
        folder=trial.workspace / person,
        allowed=ENDS if allowed is None else allowed,
        limit=30,
    ).code


def _edit(trial: Trial, person: str) -> None:
    """Let somebody write a test that may be shared."""
    number = trial.chance.randrange(6)
    (trial.workspace / person / f"tests/t{number}.md").write_text(
        f"---\nreplacements: {{n: [a, b, {person}]}}\n---\n\n# 👤\n\nHow is {{{{n}}}} {number}?\n\n"
        f"---\n\nIt must be {trial.chance.choice(('fine', 'good'))}.\n",
        "utf-8",
    )


def _keep_secret(trial: Trial, person: str) -> None:
    """Let a test become private in one of many ways, before anything is pushed."""
    chance, tests = trial.chance, trial.workspace / person / "tests"
    number = chance.randrange(100)
    path = tests / f"s{number}.md"
    path.write_text(_private_text(number, ""), "utf-8")
    _run(trial, person, "run", "--fail-on", "none", "-q")
    way = chance.choice(BECOMING)
    trial.commands.append(f"# {person}: {way}")
    if way == "move":
        path = path.rename(tests / f"moved{number}.md")
    if way == "edit":
        path.write_text(_private_text(number + 1, "private"), "utf-8")
    elif way == "split":
        parts = (_private_text(number, "private", instructions=each) for each in (SECRET, "fine"))
        path.unlink()
        for part, text in enumerate(parts):
            (tests / f"s{number}-{part}.md").write_text(text, "utf-8")
    else:
        path.write_text(_private_text(number, "private, other"), "utf-8")
    if chance.random() < 0.5:
        _run(trial, person, "run", "--fail-on", "none", "-q")
    if chance.random() < 0.5 and path.exists():
        label = (f"tests/{path.name}", "fail", "--all", "-m", f"{SECRET} note", "--as", "Ann")
        _run(trial, person, "label", *label)
    if way == "gone" and path.exists():
        path.unlink()


def _wait_for_days(trial: Trial) -> None:
    """Let all files of the remote be two days older, so that a clean-up may delete them."""
    trial.commands.append("# two days pass")
    for path in (trial.workspace / "team").rglob("*"):
        modified = path.stat().st_mtime - 2 * 24 * 60 * 60
        os.utime(path, (modified, modified))


def _share(trial: Trial, person: str) -> None:
    _run(trial, person, *trial.chance.choice(COMMANDS))


def _share_killed(trial: Trial, person: str) -> None:
    """Kill a command at a random moment, or let two people act at once."""
    chance = trial.chance
    began = trial.start(
        *("--allow-outside", *chance.choice(COMMANDS)), folder=trial.workspace / person
    )
    if chance.random() < 0.5:
        _share(trial, chance.choice(PEOPLE))
        trial.finish(began, allowed=ENDS, limit=30)
        return
    began.has_ended(chance.uniform(0, 0.5))
    began.send(chance.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT)))
    trial.finish(began, allowed=KILLED, limit=30)
    trial.figures["kills"] += 1


def _share_damaged(trial: Trial, person: str) -> None:
    """Damage a file of the remote, let everybody use it, and repair it."""
    files = sorted(path for path in (trial.workspace / "team").rglob("*") if path.is_file())
    if not files:
        _share(trial, person)
        return
    path = trial.chance.choice(files)
    data = path.read_bytes()
    damaged = _damage(trial.chance, data)
    trial.commands.append(f"# {path.relative_to(trial.workspace)}: {len(damaged)} bytes")
    if damaged is not data:
        path.chmod(0o600)
        path.write_bytes(damaged)
    before = _shared_rows(trial, _store(trial, person))
    for command in trial.chance.sample((("pull",), ("fsck", "--remote"), ("pull", "-n")), 2):
        _run(trial, person, *command)
    if not before.items() <= _shared_rows(trial, _store(trial, person)).items():
        trial.note("stored rows have vanished or changed")
    path.write_bytes(data)


def _damage(chance: random.Random, data: bytes) -> bytes:
    form = chance.choice(("bit", "bit", "cut", "grown", "other", "empty"))
    if form == "bit" and data:
        at = chance.randrange(len(data))
        return data[:at] + bytes([data[at] ^ 1 << chance.randrange(8)]) + data[at + 1 :]
    if form == "cut":
        return data[: chance.randrange(len(data) + 1)]
    if form == "grown":
        return data + chance.randbytes(chance.randint(1, 5000))
    return chance.randbytes(len(data)) if form == "other" else b""


def _share_hostile(trial: Trial, person: str) -> None:
    """Put packs and indexes into the remote that nobody has pushed, named as they must be."""
    chance, team = trial.chance, trial.workspace / "team"
    known = sorted(path for path in team.rglob("*") if path.suffix in (".idx", ".pack"))
    if not known:
        _share(trial, person)
        return
    path = chance.choice(known)
    data = _damage(chance, path.read_bytes())
    digest = sha256(data)
    folder = team / "packs" / digest[:2] if path.suffix == ".pack" else path.parent
    made = folder / re.sub("[0-9a-f]{64}", digest, path.name)
    if made.exists():
        return
    folder.mkdir(exist_ok=True)
    made.write_bytes(data)
    trial.commands.append(f"# {made.relative_to(trial.workspace)}")
    for command in trial.chance.sample((("pull",), ("fsck", "--remote"), ("remote", "gc")), 2):
        _run(trial, person, *command)
    made.unlink(missing_ok=True)


def _store(trial: Trial, person: str) -> Path:
    return trial.workspace / person / ".evalstore/store.db"


def _settle(trial: Trial) -> stores.Rows:
    """Let everybody push and pull; returns what the remote has then."""
    _run(trial, "ann", "run", "--fail-on", "none", "-q")
    for person in PEOPLE:
        _run(trial, person, "push", allowed=frozenset({0}))
    for person in PEOPLE:
        _run(trial, person, "pull", allowed=frozenset({0}))
        _run(trial, person, "fsck", allowed=frozenset({0}))
    _run(trial, "ann", "fsck", "--remote", allowed=frozenset({0}))
    for person in PEOPLE:
        for command in ("push", "pull"):
            argv = ("--allow-outside", command)
            report = trial.document(*argv, folder=trial.workspace / person)
            if any(report.get("records", {"none": 1}).values()):
                trial.note(f"the last {command} copies something", f"{person}: {report}")
    shutil.rmtree(trial.workspace / "clone", ignore_errors=True)
    trial.run("clone", "team", "clone", folder=trial.workspace, allowed={0}, limit=30)
    return _shared_rows(trial, trial.workspace / "clone/.evalstore/store.db")


def _shared_rows(trial: Trial, path: Path) -> stores.Rows:
    rows = stores.all_rows(trial, path=path)
    return {key: row for key, row in rows.items() if key[0] not in LOCAL}


STEPS: dict[str, Callable[[Trial, str], None]] = {
    "union": _share,
    "private": _share,
    "killed": _share_killed,
    "damaged": _share_damaged,
    "hostile": _share_hostile,
}
NAMES = tuple(STEPS)

ATTACK = Attack(
    "sharing",
    "pushes, pulls and clean-ups: at once, killed, damaged, hostile; private tests",
    attempt,
    names=NAMES,
)
