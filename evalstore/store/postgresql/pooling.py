"""Tells poolers that keep a server process for a client from those that change it.

A store is found by a setting of the session. Where a pooler gives the process to another client
after each transaction, that client would read and write the store of this one.
"""

from __future__ import annotations

import select
from time import monotonic
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg.errors import error_from_result
from psycopg.pq import ExecStatus

from evalstore.core.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable

    from evalstore.store.location import DatabaseAddress

_ROUNDS = 3
"""How often both processes are asked for: other clients may take one in between."""
_PATIENCE_SECONDS = 3.0
"""How long a second process is waited for; a pool may have one only."""
_PROCESS = "SELECT pg_backend_pid()"
_Raw = psycopg.Connection[tuple[Any, ...]]


def require_sessions(
    raw: _Raw, address: DatabaseAddress, process: int, connect: Callable[[], _Raw]
) -> None:
    """Raise `StoreError` if a pooler lets other clients use the server process of a connection.

    `process` is that which the connection had last; `connect` makes another connection.
    """
    try:
        other = connect()
    except psycopg.OperationalError:  # the pooler has no room for a second client
        other = None
    try:
        for _ in range(_ROUNDS):
            # The first connection is in no transaction: it has given its process back, or keeps it.
            begun = _begin(other) if other else None
            # Where there is one process only, the first connection would wait for it.
            if begun == process or raw.execute(_PROCESS.encode()).fetchone() != (process,):
                raise StoreError(
                    f"the store '{address}' is behind a connection pooler that gives a session to "
                    "others between two transactions",
                    hint="let it pool sessions (pgbouncer: 'pool_mode = session'), or name the "
                    "port of the server itself",
                )
            if other is None or begun is None:
                return  # no second process is to be had, and this connection keeps its own
            other.execute(b"ROLLBACK")
    finally:
        if other:
            other.close()


def _begin(raw: _Raw) -> int | None:
    """Begin a transaction; returns its server process, or None if none is free in time."""
    raw.pgconn.send_query(f"BEGIN; {_PROCESS}".encode())
    process: int | None = None
    end = monotonic() + _PATIENCE_SECONDS
    while True:
        while raw.pgconn.is_busy():
            left = end - monotonic()
            if left <= 0 or not select.select([raw.pgconn.socket], [], [], left)[0]:
                return None
            raw.pgconn.consume_input()
        result = raw.pgconn.get_result()
        if result is None:
            return process
        if result.status == ExecStatus.TUPLES_OK:
            process = int(result.get_value(0, 0) or b"0")
        elif result.status == ExecStatus.FATAL_ERROR:
            raise error_from_result(result)
