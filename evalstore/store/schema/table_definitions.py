"""The tables in plain SQL: their columns, and the statements that create them.

The id of a version or an event is the hash of `content`, a canonical description. Other columns
repeat fields of the content for queries; `fsck` compares them. `alembic_metadata` makes SQLModel
classes of these for the migrations; those take longer to import than most commands run.

To open a current store, one number is compared; neither SQLAlchemy nor alembic is imported. An
older store is copied first, then migrated; a newer one is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalstore.core.errors import StoreError

if TYPE_CHECKING:
    from sqlalchemy import Connection


@dataclass(frozen=True, eq=False)
class TableColumns:
    """A table."""

    name: str
    columns: dict[str, str]
    """The type of each column, as SQL declares it."""
    ids: frozenset[str]
    """The columns that hold ids."""
    indexed: tuple[str, ...] = ()
    """The columns that have an index."""
    key: tuple[str, ...] = ("id",)
    """The primary key."""
    is_clustered: bool = False
    """Whether rows are in the order of their key, where a database can do that."""

    def indexes(self) -> Iterator[tuple[str, str]]:
        """Yield the indexes by name, each with the statement that creates it."""
        for column in self.indexed:
            name = f"ix_{self.name}_{column}"
            yield name, f"CREATE INDEX {name} ON {self.name} ({column})"

    def statements(self) -> dict[str, tuple[str, str]]:
        """Return the statements that create it, with `table` or `index` and the object's name."""
        columns = ", ".join(f"{name} {kind}" for name, kind in self.columns.items())
        made = f"CREATE TABLE {self.name} ( {columns}, PRIMARY KEY ({', '.join(self.key)}) )"
        statements = {f"{made}{' WITHOUT ROWID' * self.is_clustered}": ("table", self.name)}
        return statements | {made: ("index", name) for name, made in self.indexes()}


_ID, _TEXT, _WHOLE = "BLOB NOT NULL", "TEXT NOT NULL", "BIGINT NOT NULL"
_REAL = "FLOAT NOT NULL"
_VERSION = {"id": _ID, "content": _TEXT}
_OF_VERSION = frozenset({"id"})

FILES = TableColumns("files", {**_VERSION, "data": "BLOB NOT NULL"}, _OF_VERSION)
NODES = TableColumns("nodes", _VERSION, _OF_VERSION)
SESSIONS = TableColumns(
    "sessions",
    {**_VERSION, "question": _ID, "started": _WHOLE, "token_limit": "BIGINT"},
    _OF_VERSION | {"question"},
    ("question",),
)
EVALUATIONS = TableColumns(
    "evaluations",
    {
        **_VERSION,
        "subject": _ID,
        "evaluation": _ID,
        "evaluator": _ID,
        "started": _WHOLE,
        "verdict": _TEXT,
        "score": "FLOAT",
    },
    _OF_VERSION | {"subject", "evaluation", "evaluator"},
    ("subject",),
)
FAILURES = TableColumns(
    "failures",
    {**_VERSION, "question": "BLOB", "at": _WHOLE},
    _OF_VERSION | {"question"},
    ("question",),
)
RUNS = TableColumns("runs", {**_VERSION, "started": _WHOLE}, _OF_VERSION, ("started",))
RUNNERS = TableColumns(
    "runners",
    {"id": _ID, "place": _TEXT, "pid": _WHOLE, "born": _TEXT, "beat": _WHOLE},
    _OF_VERSION,
)
"""Programs that are executing a run; a row is deleted when its program ends.

`place` is the machine and the process namespace of `pid`; `born` is when the process began, as its
system reports it, as process ids are reused; `beat` counts up while the program is alive.
"""
LEASES = TableColumns("leases", {"id": _ID, "runner": _ID}, _OF_VERSION | {"runner"}, ("runner",))
"""The id of a question, or the key of a judgement, and its runner."""
RUNNER_ACCOUNTS = TableColumns("runner_accounts", {"id": _ID, "accounts": _TEXT}, _OF_VERSION)
"""The digests of the names of the accounts whose calls a runner makes, as a JSON list.

Their limits are shared by all runners of them.
"""
SHARED_RUNS = TableColumns(
    "shared_runs",
    {"id": _ID, "description": _TEXT, "started": _WHOLE, "cost_limit": "FLOAT"},
    _OF_VERSION,
)
"""Runs in progress that other programs can join; a row is deleted when its run is recorded.

`started` is by the clock of the database, in microseconds since 1970; `cost_limit` is the most that
all its runners together may spend, in USD.
"""
RUN_SHARES = TableColumns(
    "run_shares",
    {
        "id": _ID,
        "run": _ID,
        "reserved": "FLOAT NOT NULL",
        "spent": "FLOAT NOT NULL",
        "counts": _TEXT,
    },
    _OF_VERSION | {"run"},
    ("run",),
)
"""What each runner, named by `id`, has done of a shared run.

`reserved` is the most that its calls in flight may cost, in USD; `counts` is what it has asked and
judged, as JSON.
"""
WORK = TableColumns(
    "work",
    {"id": _ID, "batch": _ID, "account": _TEXT, "place": _WHOLE, "runner": "BLOB"},
    _OF_VERSION | {"batch", "runner"},
    ("batch", "runner"),
)
"""Items of plans that several runners carry out; a row is deleted when its item is done.

`id` is that of a question, or the key of a judgement; `batch` identifies the part of a plan that is
carried out together, and `place` the place in the plan.
"""
COORDINATION = (RUNNERS, LEASES, RUNNER_ACCOUNTS, SHARED_RUNS, RUN_SHARES, WORK)
"""The tables of runs in progress, whose rows are changed and deleted."""

VERSIONS: dict[str, TableColumns] = {
    "file": FILES,
    "tool": TableColumns("tools", _VERSION, _OF_VERSION),
    "schema": TableColumns("schemas", _VERSION, _OF_VERSION),
    "prompt": TableColumns("prompts", _VERSION, _OF_VERSION),
    "test": TableColumns("tests", _VERSION, _OF_VERSION),
    "evaluation": TableColumns("evaluation_versions", _VERSION, _OF_VERSION),
    "model": TableColumns("models", _VERSION, _OF_VERSION),
    "evaluator": TableColumns("evaluators", _VERSION, _OF_VERSION),
    "cases": NODES,
    "results": NODES,
    "tree": NODES,
    "sources": NODES,
}
"""The table of each kind of content whose id is the hash of its content alone."""

EVENTS: dict[str, TableColumns] = {
    "session": SESSIONS,
    "judgement": EVALUATIONS,
    "failure": FAILURES,
    "run": RUNS,
}
"""The table of each kind of fact that is appended."""
RESULTS = (SESSIONS.name, EVALUATIONS.name)
"""The tables that grow with every call."""

TABLES: dict[str, TableColumns] = {
    table.name: table for table in (*VERSIONS.values(), *EVENTS.values())
}
"""The tables with permanent contents, by name: all except those of runs in progress."""

HEAD = "0009"
"""The newest migration; a test compares it with the folder of migrations."""
KNOWN = ("0001", "0002", "0003", "0004", "0005", "0006", "0007", "0008", "0009")
"""All migrations of this program, oldest first."""


def migrations() -> Path:
    """Return the folder of migrations: beside this package when installed, else in the checkout."""
    package = Path(__file__).parents[2]
    installed = package / "migrations"
    return installed if installed.is_dir() else package.parent / "migrations"


@contextmanager
def joined(
    dialect: str, raw: Any, error_class: type[Exception], begin: str | None = None
) -> Iterator[Connection]:
    """Return a transaction of SQLAlchemy on a connection of a driver.

    It begins with the statement `begin`, or as the driver does. Errors of the database are raised
    as those of the driver. An interrupt closes a connection of sqlite3.
    """
    import logging

    from sqlalchemy import create_engine, event
    from sqlalchemy.exc import SQLAlchemyError
    from sqlalchemy.pool import StaticPool

    # SQLAlchemy logs an interrupt of a rollback with a traceback, and raises it as well.
    logging.getLogger("sqlalchemy").addHandler(logging.NullHandler())
    engine = create_engine(dialect, creator=lambda: raw, poolclass=StaticPool)
    if begin:

        @event.listens_for(engine, "begin")
        def _begin(connection: Connection) -> None:
            connection.exec_driver_sql(begin)

    try:
        with engine.begin() as connection:
            yield connection
    except SQLAlchemyError as error:
        cause = getattr(error, "orig", None)
        raise cause or error_class(str(error)) from error


def upgrade(connection: Connection, folder: Path | None = None, head: str | None = None) -> None:
    """Run the missing migrations in the caller's transaction."""
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(folder or migrations()).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, head or HEAD)


def refuse_newer(version: str, path: str) -> None:
    """Raise `StoreError` when a newer version of evalstore has written the store."""
    if version not in KNOWN:
        raise StoreError(
            f"the store '{path}' is newer than this program (version {version}, not {HEAD})",
            hint="upgrade evalstore, or name another store with --store",
        )


def refuse_migrated(version: str | None, opened: str | None, path: str) -> None:
    """Raise `StoreError` when the store is not as it was when it was opened."""
    if version != opened:
        raise StoreError(
            f"the store '{path}' was migrated while it was open (its version is "
            f"{version or 'missing'} now, ours is {opened})",
            hint="upgrade evalstore and run again: what was answered before is stored",
        )


def refuse_replaced(path: str) -> None:
    """Raise `StoreError` for a store that has lost rows since it was opened."""
    raise StoreError(
        f"the store '{path}' has lost its newest rows: an earlier copy seems to have replaced it",
        hint="run again; 'evalstore fsck --repair' removes verdicts whose answers are gone",
    )


def refuse_older(version: str, path: str) -> None:
    """Raise `StoreError` when the store must not be migrated and is older than this program."""
    if version != HEAD:
        raise StoreError(
            f"the store '{path}' is older than this program (its version is {version}, ours is "
            f"{HEAD}), and may be in use",
            hint="runners need the version of evalstore that has begun the run; any other command "
            "with this store in --store brings it up to date",
        )
