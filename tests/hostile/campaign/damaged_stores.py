"""Attack: stores that are damaged, or made by somebody who means harm."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing, suppress
from random import Random
from typing import Any

from tests.hostile.campaign import stores
from tests.hostile.campaign.trial import Attack, Trial
from tests.hostile.campaign.workspaces import write_example
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
    trial.run("merge", "../.evalstore/store.db", folder=mine, allowed={6})
    trial.run("fsck", folder=mine, allowed={0})
    trial.run("fsck", allowed={1})
    trial.run("fsck", "--repair", allowed={0})
    trial.figures["damages"] += 1
    trial.figures["damages found"] += 1


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
    "damaged stores: bits, pages, columns, foreign triggers",
    attempt,
    names=(*FOREIGN, *COLUMNS, *EXCESSIVE),
)
