"""The tables of `table_definitions` as SQLModel classes: Alembic compares them with a store."""

from __future__ import annotations

from typing import Any

from sqlalchemy import LargeBinary, MetaData, Text
from sqlalchemy.types import BigInteger, Float, TypeDecorator
from sqlmodel import Field, SQLModel

from evalstore.store.rows.row_tables import ROW_TABLES
from evalstore.store.schema.table_definitions import COORDINATION, TABLES, TableColumns


class Id(TypeDecorator[bytes]):
    """An id, as 16 bytes."""

    impl = LargeBinary(16)
    cache_ok = True


_TYPES = {"BLOB": LargeBinary, "TEXT": Text, "BIGINT": BigInteger, "FLOAT": Float}


def _make_class(table: TableColumns) -> None:
    """Make the class of a table, which `SQLModel.metadata` then knows."""
    members: dict[str, Any] = {"__tablename__": table.name, "__annotations__": {}}
    members["__table_args__"] = {"sqlite_with_rowid": not table.is_clustered}
    for name, declared in table.columns.items():
        kind, _, constraint = declared.partition(" ")
        members["__annotations__"][name] = object
        members[name] = Field(
            primary_key=name in table.key,
            sa_type=Id if name in table.ids else _TYPES[kind],
            nullable=not constraint,
            index=name in table.indexed,
        )
    metaclass: Any = type(SQLModel)
    metaclass(table.name, (SQLModel,), members | {"__module__": __name__}, table=True)


for each in (*TABLES.values(), *COORDINATION, *ROW_TABLES.values()):
    _make_class(each)

METADATA: MetaData = SQLModel.metadata
