"""The tables. `content` is the canonical description that the id is the hash of.

Other columns repeat what queries need of the content; `fsck` compares them. Ids are 16
bytes here and 32 hexadecimal digits everywhere else.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Dialect, LargeBinary, MetaData, Text
from sqlalchemy.types import BigInteger, Float, TypeDecorator
from sqlmodel import Field, SQLModel

from evalstore.errors import StoreError
from evalstore.values import WORDS, Word

_ID_BYTES = 16


class Id(TypeDecorator[str]):
    """32 hexadecimal digits in Python, 16 bytes in the database."""

    impl = LargeBinary(16)
    cache_ok = True

    def bind_processor(self, dialect: Dialect) -> Any:
        """To bytes; straight to the driver, as thousands of ids go into one query."""
        return as_bytes

    def result_processor(self, dialect: Dialect, coltype: object) -> Any:
        """To digits."""
        return _to_digits


def as_bytes(value: str | None) -> bytes | None:
    """An id as the database has it."""
    if value is None:
        return None
    try:
        return bytes.fromhex(value)
    except (TypeError, ValueError):
        raise StoreError(
            f"the store is damaged: {value!r:.60} is not an id",
            hint="'evalstore fsck' lists what is wrong",
        ) from None


def as_digits(value: Any) -> str:
    """An id of the database as it is everywhere else; raises `StoreError` when it is none."""
    if value.__class__ is not bytes or len(value) != _ID_BYTES:
        raise _no_id()
    return str(value.hex())


def as_id(value: Any) -> bytes:
    """An id as the database has it; raises `StoreError` when it is none."""
    if value.__class__ is not bytes or len(value) != _ID_BYTES:
        raise _no_id()
    return bytes(value)


def _no_id() -> StoreError:
    return StoreError(
        "the store is damaged: something in it has no id",
        hint="restore a copy of it; 'evalstore fsck' lists what is wrong",
    )


def _to_digits(value: Any) -> str | None:
    return None if value is None else as_digits(value)


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
    """Failures: a log."""

    __tablename__ = "failures"
    question: str | None = Field(default=None, sa_type=Id, index=True)
    at: int = Field(sa_type=BigInteger)


class RunRow(_Version, table=True):
    """Runs."""

    __tablename__ = "runs"
    started: int = Field(sa_type=BigInteger, index=True)


class RunnerRow(SQLModel, table=True):
    """Programs that are executing a run now; a row goes when its program ends."""

    __tablename__ = "runners"
    id: str = Field(primary_key=True, sa_type=Id)
    place: str = Field(sa_type=Text)
    """The machine and the process namespace that `pid` belongs to."""
    pid: int = Field(sa_type=BigInteger)
    born: str = Field(sa_type=Text)
    """When the process began, in the words of its system: numbers of processes come again."""
    beat: int = Field(sa_type=BigInteger)
    """Counts up for as long as the program lives."""


class LeaseRow(SQLModel, table=True):
    """What a runner works on: the id of a question, or the key of a judgement."""

    __tablename__ = "leases"
    id: str = Field(primary_key=True, sa_type=Id)
    runner: str = Field(sa_type=Id, index=True)


METADATA: MetaData = SQLModel.metadata

VERSIONS: dict[str, type[_Version]] = {
    "file": FileRow,
    "tool": ToolRow,
    "schema": SchemaRow,
    "prompt": PromptRow,
    "test": TestRow,
    "evaluation": EvaluationVersionRow,
    "model": ModelRow,
    "evaluator": EvaluatorRow,
    "cases": NodeRow,
    "results": NodeRow,
    "tree": NodeRow,
}
"""The table of each kind of content whose id is the hash of its content alone."""

EVENTS: dict[str, type[_Version]] = {
    "session": SessionRow,
    "judgement": EvaluationRow,
    "failure": FailureRow,
    "run": RunRow,
}
"""The table of each kind of fact that is appended."""

TABLES: dict[str, type[_Version]] = {
    str(table.__tablename__): table for table in (*VERSIONS.values(), *EVENTS.values())
}
"""All tables of what is stored for good, by name; leases and their runners come and go."""


def as_word(word: str) -> Word:
    """The word of an evaluation; raises `StoreError` when the store has another one."""
    for verdict in WORDS:
        if verdict == word:
            return verdict
    raise StoreError(
        f"the store is damaged: '{word}' is not a verdict",
        hint="'evalstore fsck' lists what is wrong",
    )
