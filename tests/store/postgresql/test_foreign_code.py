"""Code of a stranger in the schema of a store: it is named, and it is not called."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import pytest

from evalstore.core.errors import StoreError
from evalstore.exchange.sync.fsck import check_store
from evalstore.store import Store
from evalstore.store.location import DatabaseAddress
from evalstore.store.sqlite.driver import inspect_database
from evalstore.store.store import open_unchanged
from tests.store.postgresql.conftest import Admin
from tests.store.sessions import a_run, fill

CODE = {
    "a check": (
        "ALTER TABLE {0}.sessions ADD CONSTRAINT spy CHECK (spies.spy('x'))",
        "the constraint 'spy' of the table 'sessions'",
    ),
    "a check of leases": (
        "ALTER TABLE {0}.leases ADD CONSTRAINT spy CHECK (spies.spy('x')) NOT VALID",
        "the constraint 'spy' of the table 'leases'",
    ),
    "a check by what is built in": (
        "ALTER TABLE {0}.runs ADD CONSTRAINT spy CHECK "
        "(query_to_xml('SELECT spies.spy(1::text)', true, true, '') IS NOT NULL) NOT VALID",
        "the constraint 'spy' of the table 'runs'",
    ),
    "a constraint of exclusion": (
        "ALTER TABLE {0}.runs ADD CONSTRAINT spy EXCLUDE USING btree (id WITH =)",
        "the constraint 'spy' of the table 'runs'",
    ),
    "a key of another table": (
        "CREATE TABLE {0}.more (id bytea REFERENCES {0}.runs ON DELETE CASCADE)",
        "the constraint 'more_id_fkey' of the table 'runs'",
    ),
    "a default": (
        "ALTER TABLE {0}.runners ADD spy boolean DEFAULT spies.spy('x')",
        "the column 'spy' of the table 'runners' has a foreign default",
    ),
    "a default of our column": (
        "ALTER TABLE {0}.evaluations ALTER score SET DEFAULT spies.spy('x')::int",
        "the column 'score' of the table 'evaluations' has a foreign default",
    ),
    "a computed column": (
        "ALTER TABLE {0}.tests ADD spy boolean GENERATED ALWAYS AS (spies.spy('x')) STORED",
        "the column 'spy' of the table 'tests' has a foreign default",
    ),
    "another column in place of ours": (
        "ALTER TABLE {0}.sessions DROP usd, ADD usd double precision "
        "GENERATED ALWAYS AS (spies.spy('x')::int) STORED",
        "the column 'usd' of the table 'sessions' has a foreign default",
    ),
    "ours by another function of the same name": (
        "CREATE FUNCTION spies.inserting_transaction(bytea) RETURNS xid8 LANGUAGE sql IMMUTABLE "
        "AS 'SELECT $$1$$::xid8'; ALTER TABLE {0}.tests DROP inserted_by, ADD inserted_by xid8 "
        "GENERATED ALWAYS AS (spies.inserting_transaction(id)) STORED",
        "the column 'inserted_by' of the table 'tests' has a foreign default",
    ),
    "an index of an expression": (
        "CREATE INDEX spy ON {0}.runs (spies.spy(content))",
        "the index 'spy' of the table 'runs'",
    ),
    "an index with a condition": (
        "CREATE INDEX spy ON {0}.nodes (id) WHERE spies.spy(content)",
        "the index 'spy' of the table 'nodes'",
    ),
    "a policy": (
        "ALTER TABLE {0}.runs ENABLE ROW LEVEL SECURITY; "
        "CREATE POLICY spy ON {0}.runs USING (spies.spy(content))",
        "the policy 'spy' of the table 'runs'",
    ),
    "a policy of what is written": (
        "CREATE POLICY spy ON {0}.runs FOR INSERT WITH CHECK (spies.spy(content))",
        "the policy 'spy' of the table 'runs'",
    ),
    "a domain": (
        "ALTER TABLE {0}.runners ALTER place TYPE spies.place",
        "the column 'place' of the table 'runners' has a type",
    ),
    "statistics": (
        "CREATE STATISTICS {0}.spy ON (spies.spy(content)) FROM {0}.runs",
        "the statistics 'spy' of the table 'runs'",
    ),
    "a table that inherits": (
        "CREATE TABLE {0}.more () INHERITS ({0}.sessions)",
        "the table 'more' inherits from the table 'sessions'",
    ),
    "a table with parts": (
        "DROP TABLE {0}.failures; CREATE TABLE {0}.failures (id bytea, content text, "
        "question bytea, at bigint) PARTITION BY HASH (id)",
        "'failures' is not a table",
    ),
    "a line break in a name": (
        'ALTER TABLE {0}.runs ADD CONSTRAINT "a\nhint: b" CHECK (true)',
        "the constraint 'a\\nhint: b' of the table 'runs'",
    ),
}
MIGRATIONS = {
    "a view": (
        "DROP TABLE {0}.alembic_version; CREATE VIEW {0}.alembic_version AS "
        "SELECT '{1}'::varchar(32) AS version_num FROM (SELECT spies.spy('x')) t (b) WHERE b",
        "'alembic_version' is not a table",
    ),
    "a policy": (
        "ALTER TABLE {0}.alembic_version FORCE ROW LEVEL SECURITY; "
        "CREATE POLICY spy ON {0}.alembic_version USING (spies.spy('x'))",
        "the policy 'spy' of the table 'alembic_version'",
    ),
    "an index": (
        "CREATE INDEX spy ON {0}.alembic_version (spies.spy('x'))",
        "the index 'spy' of the table 'alembic_version'",
    ),
}


@pytest.fixture(autouse=True)
def _spies(admin: Admin) -> Iterator[None]:
    """Have functions that count their calls, also in transactions that are rolled back."""
    admin("CREATE SCHEMA spies")
    admin("CREATE SEQUENCE spies.calls")
    admin(
        "CREATE FUNCTION spies.spy(text) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS "
        "$$ BEGIN RETURN nextval('spies.calls') > 0; END $$"
    )
    admin("CREATE DOMAIN spies.place AS text CHECK (spies.spy(VALUE))")
    yield
    admin("DROP SCHEMA spies CASCADE")


def calls(admin: Admin) -> int:
    """Return how often the code of the stranger was called."""
    ((last, is_called),) = admin("SELECT last_value, is_called FROM spies.calls")
    return int(last) if is_called else 0


@pytest.mark.parametrize(("statement", "words"), CODE.values(), ids=CODE.keys())
def test_expressions_of_others_are_not_computed(
    pg_store: Store, address: DatabaseAddress, admin: Admin, statement: str, words: str
) -> None:
    fill(pg_store)
    admin(statement.format(address.schema))
    before = calls(admin)
    with pytest.raises(StoreError, match="is not read: ") as caught:
        Store.open(address)
    assert words in str(caught.value)
    assert caught.value.hint
    assert "do not use a store of unknown origin" in caught.value.hint
    with pytest.raises(StoreError, match="is not read: "), open_unchanged(address):
        pass
    with closing(Store.open(address, inspect=True)) as store:
        assert words in " ".join(damage.message for damage in check_store(store)[1])
        with pytest.raises(StoreError, match="is not read: "):
            store.record_run(a_run(1))
    assert calls(admin) == before


@pytest.mark.parametrize(("statement", "words"), MIGRATIONS.values(), ids=MIGRATIONS.keys())
def test_which_migration_a_store_has_is_read_after_the_catalogues(
    pg_store: Store, address: DatabaseAddress, admin: Admin, statement: str, words: str
) -> None:
    fill(pg_store)
    (version,) = admin(f"SELECT version_num FROM {address.schema}.alembic_version")[0]
    admin(statement.format(address.schema, version))
    before = calls(admin)
    for inspect in (False, True):
        with pytest.raises(StoreError, match="is not read: ") as caught:
            Store.open(address, inspect=inspect)
        assert words in str(caught.value)
    with pytest.raises(StoreError, match="is not read: "):  # so `doctor` says it
        inspect_database(address)
    assert calls(admin) == before


def test_a_newer_store_with_a_column_that_is_not_known_is_newer(
    pg_store: Store, address: DatabaseAddress, admin: Admin
) -> None:
    admin(f"ALTER TABLE {address.schema}.runs ADD more int GENERATED ALWAYS AS (1 + 1) STORED")
    admin(f"UPDATE {address.schema}.alembic_version SET version_num = '9999'")
    with pytest.raises(StoreError, match="is newer than this program"):
        Store.open(address)
    assert pg_store.foreign == []


def test_what_computes_nothing_is_no_code(
    pg_store: Store, address: DatabaseAddress, admin: Admin
) -> None:
    fill(pg_store)
    admin(f"CREATE INDEX mine ON {address.schema}.runs (started, id)")
    admin(f"CREATE UNIQUE INDEX own ON {address.schema}.nodes (id)")
    admin(f"CREATE STATISTICS {address.schema}.plain ON id, started FROM {address.schema}.runs")
    admin(f"CREATE PUBLICATION {address.schema} FOR TABLE {address.schema}.runs")
    admin(f"ALTER TABLE {address.schema}.runs ADD note text")
    admin(f"CREATE TABLE {address.schema}.notes (made timestamptz DEFAULT now() CHECK (true))")
    with closing(Store.open(address)) as store:
        assert store.foreign == []
        store.record_run(a_run(1))
    admin(f"DROP PUBLICATION {address.schema}")


@pytest.mark.parametrize("schema", ["user", "content_json", "a"])
def test_what_evalstore_makes_is_known_in_a_schema_of_any_name(
    address: DatabaseAddress, admin: Admin, schema: str
) -> None:
    with closing(Store.open(replace(address, schema=schema), create=True)) as store:
        fill(store)
    with closing(Store.open(replace(address, schema=schema))) as store:
        assert store.foreign == []
    admin(f'DROP SCHEMA "{schema}" CASCADE')
