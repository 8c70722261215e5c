"""The tables as SQLModel classes. The id is the hash of `content`, a canonical description.

Other columns repeat fields of the content for queries; `fsck` compares them. Migrations and tests
use these classes; other modules use `table_columns`, which is quicker to import.
"""

from __future__ import annotations

from sqlalchemy import LargeBinary, MetaData, Text
from sqlalchemy.types import BigInteger, Float, TypeDecorator
from sqlmodel import Field, SQLModel


class Id(TypeDecorator[bytes]):
    """An id, as 16 bytes."""

    impl = LargeBinary(16)
    cache_ok = True


class _Version(SQLModel):
    id: str = Field(primary_key=True, sa_type=Id)
    content: str = Field(sa_type=Text)


class FileRow(_Version, table=True):
    """Referenced files with their bytes."""

    __tablename__ = "files"
    data: bytes = Field(sa_type=LargeBinary)


class ToolRow(_Version, table=True):
    """Tool versions."""

    __tablename__ = "tools"


class SchemaRow(_Version, table=True):
    """Schema versions."""

    __tablename__ = "schemas"


class PromptRow(_Version, table=True):
    """Prompt versions."""

    __tablename__ = "prompts"


class TestRow(_Version, table=True):
    """Test versions."""

    __tablename__ = "tests"


class EvaluationVersionRow(_Version, table=True):
    """Evaluation versions."""

    __tablename__ = "evaluation_versions"


class ModelRow(_Version, table=True):
    """Model versions."""

    __tablename__ = "models"


class EvaluatorRow(_Version, table=True):
    """Evaluators."""

    __tablename__ = "evaluators"


class NodeRow(_Version, table=True):
    """Nodes of snapshots and result trees."""

    __tablename__ = "nodes"


class SessionRow(_Version, table=True):
    """Sessions."""

    __tablename__ = "sessions"
    question: str = Field(sa_type=Id, index=True)
    started: int = Field(sa_type=BigInteger)
    token_limit: int | None = Field(default=None, sa_type=BigInteger)


class EvaluationRow(_Version, table=True):
    """Evaluations."""

    __tablename__ = "evaluations"
    subject: str = Field(sa_type=Id, index=True)
    evaluation: str = Field(sa_type=Id)
    evaluator: str = Field(sa_type=Id)
    started: int = Field(sa_type=BigInteger)
    verdict: str = Field(sa_type=Text)
    score: float | None = Field(default=None, sa_type=Float)


class FailureRow(_Version, table=True):
    """A log of failures."""

    __tablename__ = "failures"
    question: str | None = Field(default=None, sa_type=Id, index=True)
    at: int = Field(sa_type=BigInteger)


class RunRow(_Version, table=True):
    """Runs."""

    __tablename__ = "runs"
    started: int = Field(sa_type=BigInteger, index=True)


class RunnerRow(SQLModel, table=True):
    """Programs that are executing a run; a row is deleted when its program ends."""

    __tablename__ = "runners"
    id: str = Field(primary_key=True, sa_type=Id)
    place: str = Field(sa_type=Text)
    """The machine and the process namespace of `pid`."""
    pid: int = Field(sa_type=BigInteger)
    born: str = Field(sa_type=Text)
    """When the process began, as its system reports it: process ids are reused."""
    beat: int = Field(sa_type=BigInteger)
    """A counter that the program increments while it is alive."""


class LeaseRow(SQLModel, table=True):
    """Leases: the id of a question, or the key of a judgement, and its runner."""

    __tablename__ = "leases"
    id: str = Field(primary_key=True, sa_type=Id)
    runner: str = Field(sa_type=Id, index=True)


class RunnerAccountsRow(SQLModel, table=True):
    """The accounts whose calls a runner makes: their limits are shared by all runners of them."""

    __tablename__ = "runner_accounts"
    id: str = Field(primary_key=True, sa_type=Id)
    """The id of the runner."""
    accounts: str = Field(sa_type=Text)
    """The digests of their names, as a JSON list."""


class SharedRunRow(SQLModel, table=True):
    """Runs in progress that other programs can join; a row is deleted when its run is recorded."""

    __tablename__ = "shared_runs"
    id: str = Field(primary_key=True, sa_type=Id)
    description: str = Field(sa_type=Text)
    """The settings, the snapshot and the selection of the run, as JSON."""
    started: int = Field(sa_type=BigInteger)
    """When it started, by the clock of the database, in microseconds since 1970."""
    cost_limit: float | None = Field(default=None, sa_type=Float)
    """The most that all its runners together may spend, in USD."""


class RunShareRow(SQLModel, table=True):
    """What each runner of a shared run has done of it."""

    __tablename__ = "run_shares"
    id: str = Field(primary_key=True, sa_type=Id)
    """The id of the runner."""
    run: str = Field(sa_type=Id, index=True)
    reserved: float = Field(sa_type=Float)
    """The most that its calls in flight may cost, in USD."""
    spent: float = Field(sa_type=Float)
    """What its calls have cost, in USD."""
    counts: str = Field(sa_type=Text)
    """What it has asked and judged, as JSON."""


class WorkRow(SQLModel, table=True):
    """Items of plans that several runners carry out; a row is deleted when its item is done."""

    __tablename__ = "work"
    id: str = Field(primary_key=True, sa_type=Id)
    """The id of a question, or the key of a judgement."""
    batch: str = Field(sa_type=Id, index=True)
    """Identifies the part of a plan that is carried out together."""
    account: str = Field(sa_type=Text)
    place: int = Field(sa_type=BigInteger)
    """Its place in the plan."""
    runner: str | None = Field(default=None, sa_type=Id, index=True)
    """The runner that has taken it."""


METADATA: MetaData = SQLModel.metadata
