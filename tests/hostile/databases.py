"""The store of commands on a server: what it holds, copies of it, and what older versions made."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

from evalstore.store import Store
from evalstore.store.location import DatabaseAddress, read_address
from evalstore.store.rows.row_tables import ROW_TABLES
from evalstore.store.schema import table_definitions
from evalstore.store.schema.table_definitions import COORDINATION, TABLES

STORE = "EVALSTORE_STORE"
"""The variable with the address of a store that is not a file of the workspace."""


def tables_with(text: str, url: str | None = None) -> list[str]:
    """Return the tables of the store on a server that have a text in a row; none of a file.

    It is that of commands unless `url` is given.
    """
    url = url or os.environ.get(STORE)
    if not url:
        return []
    address = read_address(url)
    with _connected(address) as connection:
        query = "SELECT tablename FROM pg_tables WHERE schemaname = %s ORDER BY tablename"
        names = [name for (name,) in connection.execute(query, (address.schema,))]
        return [
            name
            for name in names
            if connection.execute(
                f"SELECT 1 FROM {address.schema}.{name} t WHERE strpos(t::text, %s) > 0", (text,)
            ).fetchone()
        ]


def read_tables(url: str) -> dict[tuple[str, bytes], tuple[Any, ...]]:
    """Return all rows by table and id, past the program; none when there is no store yet."""
    address = read_address(url)
    with _connected(address) as connection:
        query = "SELECT count(*) FROM pg_tables WHERE schemaname = %s AND tablename = 'runs'"
        if connection.execute(query, (address.schema,)).fetchone() == (0,):
            return {}
        rows = {}
        for table in (*TABLES.values(), *COORDINATION):
            columns = ", ".join(table.columns)
            for row in connection.execute(f"SELECT {columns} FROM {address.schema}.{table.name}"):
                rows[table.name, bytes(row[0])] = tuple(row)
        return rows


def copy_store(url: str, target: str, *, version: str = table_definitions.HEAD) -> str:
    """Copy what is permanent in a store to a new one on the same server; returns its address.

    The tables are those of a version of the program.
    """
    source, address = read_address(url), read_address(target)
    if version == table_definitions.HEAD:
        Store.open(address, create=True).close()
    else:
        _make_older(address, version)
    with _connected(source) as connection:
        copied = TABLES | (ROW_TABLES if version == table_definitions.HEAD else {})
        for name, table in copied.items():
            columns = ", ".join(table.columns)
            connection.execute(
                f"INSERT INTO {address.schema}.{name} ({columns}) "
                f"SELECT {columns} FROM {source.schema}.{name}"
            )
    return target


def _make_older(address: DatabaseAddress, version: str) -> None:
    import psycopg

    from evalstore.store.postgresql.connection import connect

    with _connected(address) as connection:
        connection.execute(f"CREATE SCHEMA {address.schema}")
    with closing(connect(address)) as raw:
        raw.autocommit = False
        with table_definitions.joined(
            "postgresql+psycopg://", raw, psycopg.DatabaseError
        ) as writing:
            table_definitions.upgrade(writing, head=version)


@contextmanager
def _connected(address: DatabaseAddress) -> Iterator[Any]:
    import psycopg

    options: Any = address.options
    with psycopg.connect("", **options) as connection:
        yield connection
