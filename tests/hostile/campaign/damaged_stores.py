"""Attack: stores that are damaged, go back in time, find no room, or are made to do harm."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from random import Random
from typing import Any

from tests.builders import tree
from tests.hostile.campaign import stores
from tests.hostile.campaign.judge_model import verdict
from tests.hostile.campaign.trial import Attack, Trial
from tests.hostile.campaign.workspaces import example_files, loopback, numbered, write_example
from tests.hostile.excessive_runs import FORMS, add_run

COMMANDS = (
    ("status",),
    ("log",),
    ("show", "@"),
    ("stats",),
    ("ls", "runs"),
    ("diff",),
    ("grep", "bike"),
    ("log", "tests/price.md"),
    ("run", "--fail-on", "none"),
)
TABLES = (
    *("tests", "prompts", "models", "evaluators", "nodes", "sessions", "evaluations", "runs"),
    *("files", "evaluation_versions"),
)
VALUES: dict[str, Any] = {
    "list": "[]",
    "null": "null",
    "nan": "NaN",
    "digits": "9" * 6000,
    "blob": b"\xff\x00",
    "empty": "",
    "nested": "[" * 5000 + "]" * 5000,
    "number": 7,
    "text": '"a"',
    "object": "{}",
    "nothing": None,
}
FOREIGN = {
    "trigger": "CREATE TRIGGER t AFTER INSERT ON runs BEGIN DELETE FROM sessions; END",
    "aborting-trigger": "CREATE TRIGGER t BEFORE INSERT ON sessions "
    "BEGIN SELECT RAISE(ABORT, 'no'); END",
    "view": "ALTER TABLE runs RENAME TO hidden; CREATE VIEW runs AS SELECT * FROM hidden",
    "missing-table": "DROP TABLE evaluations",
    "missing-column": "ALTER TABLE sessions DROP COLUMN token_limit",
    "newer": "UPDATE alembic_version SET version_num = '9999'",
    "no-version": "DELETE FROM alembic_version",
}
COLUMNS = {
    f"{table}-{column}-{value}": (table, column, value)
    for table, column, value in (
        ("runs", "content", "list"),
        ("runs", "content", "null"),
        ("runs", "content", "digits"),
        ("nodes", "content", "nan"),
        ("nodes", "content", "list"),
        ("sessions", "content", "object"),
        ("evaluations", "content", "null"),
        ("tests", "content", "nested"),
        ("sessions", "started", "blob"),
        ("runs", "started", "blob"),
        ("evaluations", "score", "blob"),
        ("evaluations", "verdict", "text"),
        ("sessions", "question", "nothing"),
    )
}


EXCESSIVE = tuple(f"excessive-{form}" for form in FORMS)


def attempt(trial: Trial) -> None:
    """Damage a store, and use it."""
    chance = trial.chance
    other = trial.name if trial.name in OTHERS else chance.choice((*OTHERS, *["random"] * 8))
    if other in OTHERS:
        OTHERS[other](trial)
        return
    write_example(trial)
    trial.run("run", "--fail-on", "none")
    before = _dump(trial)
    if trial.name in FOREIGN:
        _execute(trial, FOREIGN[trial.name])
    elif trial.name in EXCESSIVE or chance.random() < 0.1:
        _describe_too_much(trial, trial.name.removeprefix("excessive-"))
        return
    elif trial.name in COLUMNS:
        _spoil(trial, *COLUMNS[trial.name])
    elif chance.random() < 0.5:
        table = chance.choice(TABLES)
        columns = _columns(trial, table)
        _spoil(trial, table, chance.choice(columns), chance.choice(sorted(VALUES)))
    else:
        _flip(trial, chance)
    ended = trial.run("fsck")
    trial.figures["damages"] += 1
    if ended.code == 0 and (trial.name in FOREIGN or _dump(trial) != before):
        trial.note("fsck overlooks a damage", trial.name)
    trial.figures["damages found"] += ended.code in (1, 6)
    for argv in chance.sample(COMMANDS, 4):
        trial.run(*argv)


def _describe_too_much(trial: Trial, form: str) -> None:
    """Add a run of a few nodes that describe too much; it is refused elsewhere, and removed."""
    form = form if form in FORMS else trial.chance.choice(FORMS)
    shutil.copytree(trial.workspace, trial.workspace / "mine")
    add_run(stores.path_of(trial), form)
    trial.commands.append(f"# a run that describes too much: {form}")
    for argv in trial.chance.sample(COMMANDS, 4):
        trial.run(*argv)
    mine = trial.workspace / "mine"
    trial.run("pull", "../.evalstore/store.db", folder=mine, allowed={6})
    trial.run("fsck", folder=mine, allowed={0})
    trial.run("fsck", allowed={1})
    trial.run("fsck", "--repair", allowed={0})
    trial.figures["damages"] += 1
    trial.figures["damages found"] += 1


def _go_back(trial: Trial) -> None:
    """Put an earlier copy into the file of a store while a program uses it."""

    def reply(body: dict[str, Any]) -> str:
        trial.server.closing.wait(0.02)
        return verdict(body, True) if body["model"] == "judge" else "Fine."

    trial.server.reply = reply
    tree(trial.workspace, {**loopback(trial), **numbered(4)})
    trial.run("run", allowed={0})
    path, copy = stores.path_of(trial), trial.workspace / "copy.db"
    _put(path, copy)
    tree(trial.workspace, numbered(16))
    calls = len(trial.server.received)
    if trial.chance.random() < 0.5:  # the next one begins with answers that will be gone
        running = trial.start("run")
        while len(trial.server.received) < calls + 16 and not running.has_ended(0.005):
            pass
        running.kill()
        trial.finish(running, allowed={0, -9})
        calls = len(trial.server.received)
    running = trial.start("run")
    while len(trial.server.received) <= calls and not running.has_ended(0.005):
        pass
    running.has_ended(trial.chance.uniform(0, 0.3))
    _put(copy, path)
    trial.commands.append("# an earlier copy takes the place of the store")
    trial.figures["earlier copies noticed"] += trial.finish(running, allowed={0, 6}).code == 6
    for _ in range(2):
        if (ended := trial.run("fsck")).code:
            trial.note("a store that went back in time is damaged", ended.stdout[:300])
        trial.run("run", allowed={0})


def _put(path: Path, place: Path) -> None:
    """Put a copy of a store into the file of another one."""
    with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(place)) as target:
        source.backup(target)


def _fill_up(trial: Trial) -> None:
    """Let commands find no more room for the store."""
    chance = trial.chance
    other = tree(trial.workspace / "other", example_files())
    trial.run("run", "--fail-on", "none", folder=other)
    trial.run("push", "../all.bundle", folder=other, allowed={0})
    room = (other / ".evalstore/store.db").stat().st_size
    write_example(trial)
    trial.run("run", "--fail-on", "none", "--limit", str(chance.randint(1, 20)))
    for _ in range(4):
        limits = {"FSIZE": chance.randrange(room // 2, 2 * room)}
        trial.figures["full disks"] += trial.run(*chance.choice(WRITING), limits=limits).code == 6
        if (ended := trial.run("fsck")).code:
            trial.note("a full disk damages a store", ended.stdout[:300])
    trial.run("run", "--fail-on", "none", allowed={0})
    if (ended := trial.run("fsck")).code:
        trial.note("what was written on a full disk is not completed", ended.stdout[:300])


WRITING = (
    *(("run", "--fail-on", "none"), ("run", "--fail-on", "none"), ("run", "--refresh", "-q")),
    *(("pull", "other/.evalstore/store.db"), ("pull", "all.bundle")),
)
OTHERS = {"earlier-copy": _go_back, "full-disk": _fill_up}
"""What does not damage a store, but what it is on."""


def _spoil(trial: Trial, table: str, column: str, value: str) -> None:
    """Put a value into one row."""
    with closing(sqlite3.connect(stores.path_of(trial))) as store, suppress(sqlite3.Error):
        ids = [id for (id,) in store.execute(f"SELECT id FROM {table} ORDER BY id")]
        if ids:
            change = f"UPDATE {table} SET {column} = ? WHERE id = ?"
            store.execute(change, (VALUES[value], trial.chance.choice(ids)))
        store.commit()
    trial.commands.append(f"# {table}.{column} = {value}")


def _execute(trial: Trial, script: str) -> None:
    with closing(sqlite3.connect(stores.path_of(trial))) as store:
        store.executescript(script)


def _columns(trial: Trial, table: str) -> list[str]:
    with closing(sqlite3.connect(stores.path_of(trial))) as store:
        return [row[1] for row in store.execute(f"PRAGMA table_info({table})")]


def _flip(trial: Trial, chance: Random) -> None:
    """Change bytes of the file itself."""
    path = stores.path_of(trial)
    _execute(trial, "PRAGMA wal_checkpoint(TRUNCATE)")
    data = bytearray(path.read_bytes())
    form = chance.choice(("bits", "page", "cut", "wal"))
    trial.commands.append(f"# the file: {form}")
    if form == "bits":
        for _ in range(chance.choice((1, 3, 50))):
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    elif form == "page":
        start = chance.randrange(len(data) // 4096) * 4096
        data[start : start + 4096] = chance.choice((bytes(4096), chance.randbytes(4096)))
    elif form == "cut":
        del data[chance.randrange(len(data)) :]
    else:
        path.with_name("store.db-wal").write_bytes(chance.randbytes(9000))
    path.write_bytes(data)


def _dump(trial: Trial) -> object:
    """All that is stored, or why it cannot be read."""
    try:
        return stores.rows(trial)
    except (sqlite3.Error, UnicodeDecodeError) as error:
        return type(error).__name__


ATTACK = Attack(
    "stores",
    "damaged stores: bits, pages, columns, foreign triggers; earlier copies, full disks",
    attempt,
    names=(*FOREIGN, *COLUMNS, *EXCESSIVE, *OTHERS),
)
