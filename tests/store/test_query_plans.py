"""The queries of a run in PostgreSQL: none reads a large table from end to end."""

from __future__ import annotations

from contextlib import closing
from hashlib import md5
from typing import Any

import pytest

from evalstore.core.values import Failure, Question
from evalstore.store import Store
from evalstore.store.events import LeaseChange
from evalstore.store.leases import Leases, OfferedItem, WorkRows
from evalstore.store.location import read_location
from tests.postgresql_server import PostgreSQLServer, why_not
from tests.store.sessions import a_session

pytestmark = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))

ROWS = 20_000
ID = "decode(md5('{}' || n), 'hex')"
FILLED = {
    "sessions": f"(id, content, question, started) SELECT {ID.format('s')}, "
    f'\'{{"model": "m", "turns": []}}\', {ID.format("q")}, n',
    "evaluations": "(id, content, subject, evaluation, evaluator, started, verdict) "
    f"SELECT {ID.format('e')}, '{{}}', {ID.format('s')}, "
    f"{ID.format('v')}, {ID.format('v')}, n, 'pass'",
    "failures": f"(id, content, question, at) SELECT {ID.format('f')}, '{{}}', {ID.format('q')}, n",
    "leases": f"(id, runner) SELECT {ID.format('l')}, {ID.format('r')}",
    "work": "(id, batch, account, place, runner) SELECT "
    f"{ID.format('w')}, {ID.format('b')}, 'a', n, {ID.format('r')}",
    "tests": f"(id, content) SELECT {ID.format('t')}, '{{}}'",
}
KEYS = [f"{number:032x}" for number in range(40)]


def ask(store: Store, leases: Leases) -> None:
    rows = WorkRows(store, leases, "b" * 32)
    rows.offer([OfferedItem(key, "a") for key in KEYS])
    assert rows.take("a", 20) == KEYS[:20]
    assert leases.claim(KEYS[:20]) == set(KEYS[:20])
    rows.is_left("a")
    assert store.find_samples(KEYS) == {}
    assert store.find_votes(KEYS) == {}
    assert store.find_failed(KEYS) == {}
    store.load_contents("test", KEYS)


def answer(store: Store, leases: Leases) -> None:
    ask(store, leases)
    sessions = {}
    for key in KEYS[:20]:
        id, _, content = a_session(Question(key, None, "c" * 32, 0))
        sessions[id] = content
    change = LeaseChange(leases.runner.id, KEYS[30:], KEYS[:20], "{}", is_offered=True)
    store.record(sessions, failures=[a_failure(KEYS[21])], leases=change)
    assert leases.has(KEYS[30])


def live(store: Store, leases: Leases) -> None:
    leases.accounts = frozenset({"a"})
    leases.count_sharers()
    leases.beat()
    leases.leave()


def look(store: Store, _leases: Leases) -> None:
    extent = store.measure_extent()
    assert extent is not None
    assert store.find_new_questions(extent, ROWS) == set()
    assert store.count_added(extent, extent) == (0, 0)


def look_up_many(store: Store, _leases: Leases) -> None:
    """Look up as many ids together as a run does, which are a good part of all."""
    some = [md5(f"{kind}{n}".encode()).hexdigest() for kind in "qs" for n in range(1, 8_001)]
    questions, sessions = some[:8_000], some[8_000:]
    assert len(store.find_samples(questions)) == 8_000
    assert len(store.find_votes(sessions)) == 8_000
    assert len(store.find_times("sessions", sessions)) == 8_000


def a_failure(question: str) -> Failure:
    return Failure(question, None, None, "status", "no", 1, "n")


def flush_statistics(store: Store) -> None:
    """Let what a connection did be counted now; it is counted once a second otherwise."""
    with store.snapshot() as connection:
        connection.execute("SELECT pg_stat_force_next_flush()")


def test_a_run_reads_no_large_table_from_end_to_end(postgresql_server: PostgreSQLServer) -> None:
    import psycopg

    url = postgresql_server.url()
    schema = url.rpartition("=")[2]
    host, user = postgresql_server.host, postgresql_server.user
    with closing(Store.open(read_location(url), create=True)) as store:
        flush_statistics(store)

    def scans(raw: Any) -> dict[str, int]:
        query = "SELECT relname, seq_scan FROM pg_stat_user_tables WHERE schemaname = %s"
        return {name: count for name, count in raw.execute(query, (schema,)) if name in FILLED}

    with psycopg.connect(host=host, user=user, dbname="postgres", autocommit=True) as raw:
        raw.execute(f"SET search_path TO {schema}")
        for table, rows in FILLED.items():
            raw.execute(
                f"INSERT INTO {table} {rows} FROM generate_series(1, {ROWS}) AS numbers (n)"
            )
            raw.execute(f"ANALYZE {table}")
    with psycopg.connect(host=host, user=user, dbname="postgres", autocommit=True) as raw:
        before = scans(raw)
        for work in (answer, live, look, look_up_many):
            with closing(Store.open(read_location(url))) as store:
                work(store, Leases(store))
                with store.snapshot() as connection:
                    # The statistics of a connection are counted once a second otherwise.
                    connection.execute("SELECT pg_stat_force_next_flush()")
            assert scans(raw) == before, work
