"""A store that a newer program migrates while an older one has it open."""

from __future__ import annotations

from contextlib import closing

import pytest

from evalstore.core.errors import STORE_UNUSABLE, StoreError
from evalstore.store import Store
from evalstore.store.location import StoreLocation
from evalstore.store.schema import table_definitions
from tests.store.sessions import fill

MIGRATED = r"was migrated while it was open \(its version is 0999 now, ours is "


def stamp(location: StoreLocation, *statements: str) -> None:
    """Do what a migration of the next version would."""
    with closing(Store.open(location)) as newer, newer.writing() as connection:
        for statement in (*statements, "UPDATE alembic_version SET version_num = '0999'"):
            connection.execute(statement)


def test_nothing_more_is_written_and_what_is_as_before_is_read(
    store: Store, location: StoreLocation
) -> None:
    fill(store)
    before = list(store.iterate())
    stamp(location)
    with pytest.raises(StoreError, match=MIGRATED) as caught:
        store.add_shared_run("1" * 32, {}, None)
    assert caught.value.exit_code == STORE_UNUSABLE
    with pytest.raises(StoreError, match=MIGRATED), store.writing():
        pytest.fail("a transaction has begun")
    assert store.find_shared_runs() == []
    assert list(store.iterate()) == before


def test_what_cannot_be_read_any_more_is_not_called_damaged(
    store: Store, location: StoreLocation
) -> None:
    fill(store)
    stamp(location, "ALTER TABLE runs RENAME COLUMN content TO contents")
    with pytest.raises(StoreError, match=MIGRATED):
        store.find_runs()


def test_a_store_that_may_not_be_migrated_is_refused_when_it_is_older(
    store: Store, location: StoreLocation
) -> None:
    Store.open(location, may_migrate=False).close()
    with store.writing() as connection:
        connection.execute("UPDATE alembic_version SET version_num = '0003'")
    with pytest.raises(StoreError, match=f"its version is 0003, ours is {table_definitions.HEAD}"):
        Store.open(location, may_migrate=False)
