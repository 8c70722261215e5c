"""Arrays as parameters: the server reads what was written, whatever the values are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from tests.postgresql_server import PostgreSQLServer, why_not

pytestmark = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))


@pytest.fixture
def connection(postgresql_server: PostgreSQLServer) -> Iterator[Any]:
    """Return a connection to the server of the tests."""
    from evalstore.store.location import read_address
    from evalstore.store.postgresql.connection import connect

    with closing(connect(read_address(postgresql_server.url("public")))) as raw:
        yield raw


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("bytea", [b"", b"\0\xff\\", b"x" * 70_000]),
        ("text", ["", "{\"a\": [null, 'b']}", "\\ä\N{GRINNING FACE}, NULL", "NULL"]),
        ("bigint", [0, -1, 2**63 - 1, -(2**63)]),
        ("double precision", [0.1, -1e300, 5e-324, float("inf")]),
    ],
)
def test_values_come_back_as_they_were(connection: Any, kind: str, values: list[Any]) -> None:
    for sent in (values, [*values, None], [None], []):
        query = f"SELECT * FROM unnest(%s::{kind}[])"
        rows = connection.execute(query, (sent,)).fetchall()
        assert [value for (value,) in rows] == sent


def test_a_type_is_chosen_by_the_values(connection: Any) -> None:
    for values, kind in (([b"a", b""], "bytea[]"), (["a"], "text[]"), ([1, 2], "smallint[]")):
        rows = connection.execute("SELECT pg_typeof(%s)::text", (values,)).fetchall()
        assert rows == [(kind,)]
    query = "SELECT count(*) WHERE 'a'::bytea = ANY(%s)"
    assert connection.execute(query, ([],)).fetchall() == [(0,)]


def test_a_text_that_no_database_stores_is_an_error(connection: Any) -> None:
    import psycopg

    with pytest.raises(psycopg.DataError):
        connection.execute("SELECT %s", (["a\0b"],))
    with pytest.raises(UnicodeEncodeError):
        connection.execute("SELECT %s", (["\udc80"],))


def test_whole_numbers_and_others_are_inserted_together(connection: Any) -> None:
    from evalstore.store.postgresql.connection import PostgreSQLConnection
    from evalstore.store.schema.table_definitions import TableColumns

    connection.execute("CREATE TEMPORARY TABLE scores (id bytea PRIMARY KEY, score float)")
    table = TableColumns("scores", {"id": "BLOB NOT NULL", "score": "FLOAT"}, frozenset({"id"}))
    rows = [(b"a", 1), (b"b", 0.5), (b"c", None)]
    assert PostgreSQLConnection(connection, lambda: connection).insert(table, rows) == 3
    found = connection.execute("SELECT id, score FROM scores ORDER BY id").fetchall()
    assert found == rows
