"""The tables in plain SQL: their columns, and the statements that create them.

The id of a version or an event is the hash of `content`, a canonical description. Other columns
repeat fields of the content for queries; `fsck` compares them. `alembic_metadata` makes SQLModel
classes of these for the migrations; those take longer to import than most commands run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


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

MIGRATION = "0009"
"""The migration of a store with these tables."""
