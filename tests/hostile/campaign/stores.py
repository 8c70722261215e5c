"""What is in a trial's store, read past the program; and stores as an older program left them."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from evalstore.store.rows.row_tables import ROW_TABLES
from evalstore.store.schema import table_definitions
from evalstore.store.schema.table_definitions import COORDINATION
from tests.hostile.campaign.trial import Trial
from tests.hostile.databases import read_tables

Rows = dict[tuple[str, Any], tuple[Any, ...]]
PASSING = tuple(table.name for table in COORDINATION)
"""Tables whose rows come and go."""


def path_of(trial: Trial) -> Path:
    """Where the store is."""
    return trial.workspace / ".evalstore/store.db"


def all_rows(trial: Trial, *tables: str, path: Path | None = None) -> Rows:
    """Every row, or those of some tables; none when there is no store yet."""
    if trial.store and path is None:
        rows = read_tables(trial.store)
    else:
        path = path or path_of(trial)
        rows = _read_rows(path) if path.exists() and path.stat().st_size else {}
    return {key: row for key, row in rows.items() if not tables or key[0] in tables}


def is_there(trial: Trial) -> bool:
    """Whether there is a store."""
    return bool(trial.document("log", allowed={0, 6})) if trial.store else path_of(trial).exists()


def _read_rows(path: Path) -> Rows:
    """Every row of a file by table and id, or by table and row where ids repeat."""
    with closing(sqlite3.connect(path)) as store:
        names = [
            name
            for (name,) in store.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            if name != "alembic_version"
        ]
        return {
            (name, row if name in ROW_TABLES else row[0]): row
            for name in names
            for row in store.execute(f"SELECT * FROM {name}")
        }


def rows(trial: Trial, *tables: str) -> Rows:
    """Every row that must stay, or those of some tables."""
    actual = all_rows(trial, *tables)
    return {key: row for key, row in actual.items() if key[0] not in PASSING}


def sessions(trial: Trial, path: Path | None = None) -> dict[str, list[str]]:
    """The texts of each stored session, by its id."""
    actual = {}
    for (_, id), row in all_rows(trial, "sessions", path=path).items():
        turns = json.loads(row[1])["turns"]
        actual[id.hex()] = [str(turn.get("text") or "") for turn in turns]
    return actual


def make_older(trial: Trial) -> None:
    """Put the store back to the first version of its tables, with all that fits into them."""
    path = path_of(trial)
    with closing(sqlite3.connect(path)) as store:
        store.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    newer = path.rename(path.with_name("newer.db"))
    with (
        closing(sqlite3.connect(path, isolation_level=None)) as made,
        table_definitions.joined(
            "sqlite://", made, sqlite3.DatabaseError, "BEGIN IMMEDIATE"
        ) as connection,
    ):
        table_definitions.upgrade(connection, head=table_definitions.KNOWN[0])
    with closing(sqlite3.connect(path)) as store:
        store.execute("ATTACH ? AS newer", (str(newer),))
        names = store.execute(
            "SELECT name FROM main.sqlite_master WHERE type = 'table' "
            "AND name NOT LIKE 'sqlite_%' AND name != 'alembic_version'"
        ).fetchall()
        for (name,) in names:
            columns = [item[1] for item in store.execute(f"PRAGMA main.table_info({name})")]
            listed = ", ".join(columns)
            store.execute(f"INSERT INTO main.{name} ({listed}) SELECT {listed} FROM newer.{name}")
        store.commit()
    for stray in path.parent.glob("newer.db*"):
        stray.unlink()
