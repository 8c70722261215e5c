"""A schema that a stranger has made: what is in it is named, and no code of theirs is called."""

from __future__ import annotations

from contextlib import closing

import pytest

from evalstore.core.errors import StoreError
from evalstore.exchange.sync.fsck import check_store
from evalstore.store import Store
from evalstore.store.location import DatabaseAddress
from tests.store.postgresql.conftest import Admin
from tests.store.sessions import a_run, fill

CODE = {
    "a function in place of ours": (
        "CREATE OR REPLACE FUNCTION {0}.content_json(content text) RETURNS json "
        "LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS 'SELECT content::json'",
        "the function 'content_json'",
    ),
    "a function beside ours": (
        "CREATE FUNCTION {0}.strpos(bytea, text) RETURNS int LANGUAGE sql AS 'SELECT 1'",
        "the function 'strpos'",
    ),
    "an overloaded one": (
        "CREATE FUNCTION {0}.content_seconds(content text) RETURNS float "
        "LANGUAGE sql AS 'SELECT 1.0'",
        "the function 'content_seconds'",
    ),
    "an operator": (
        "CREATE OPERATOR {0}.= (LEFTARG = bytea, RIGHTARG = bytea, FUNCTION = pg_catalog.byteaeq)",
        "the operator '='",
    ),
    "a view in place of a table": (
        "ALTER TABLE {0}.runs RENAME TO r; CREATE VIEW {0}.runs AS SELECT * FROM {0}.r",
        "'runs' is not a table",
    ),
}
WRITES = {
    "a trigger": (
        "CREATE TRIGGER spy BEFORE INSERT ON {0}.runs "
        "FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger()",
        "the trigger 'spy' of the table 'runs'",
    ),
    "a rule": (
        "CREATE RULE gone AS ON INSERT TO {0}.runs DO INSTEAD NOTHING",
        "the rule 'gone' of the table 'runs'",
    ),
    "a column that is missing": (
        "ALTER TABLE {0}.sessions DROP COLUMN usd",
        "the table 'sessions' is not as evalstore makes it",
    ),
    "a table that is missing": ("DROP TABLE {0}.failures", "the table 'failures' is missing"),
}


@pytest.mark.parametrize(("statement", "words"), CODE.values(), ids=CODE.keys())
def test_code_of_others_is_not_called(
    pg_store: Store, address: DatabaseAddress, admin: Admin, statement: str, words: str
) -> None:
    fill(pg_store)
    admin(statement.format(address.schema))
    with pytest.raises(StoreError, match="is not read: ") as caught:
        Store.open(address)
    assert words in str(caught.value)
    assert caught.value.hint
    assert "do not use a store of unknown origin" in caught.value.hint
    with closing(Store.open(address, inspect=True)) as store:
        assert words in " ".join(extra.words for extra in store.foreign)


@pytest.mark.parametrize(("statement", "words"), WRITES.values(), ids=WRITES.keys())
def test_what_could_change_a_row_keeps_it_from_being_written(
    pg_store: Store, address: DatabaseAddress, admin: Admin, statement: str, words: str
) -> None:
    fill(pg_store)
    admin(statement.format(address.schema))
    with closing(Store.open(address)) as store:
        assert store.find_runs()
        with pytest.raises(StoreError, match="is not written to: ") as caught:
            store.record_run(a_run(1))
    assert words in str(caught.value)


def test_rows_that_a_policy_may_hide_are_told(
    pg_store: Store, address: DatabaseAddress, admin: Admin
) -> None:
    fill(pg_store)
    admin(f"ALTER TABLE {address.schema}.runs ENABLE ROW LEVEL SECURITY")
    with closing(Store.open(address)) as store:
        assert "has policies that may hide rows" in store.foreign[0].words
        (damage,) = check_store(store)[1]
        assert damage.message == "the table 'runs' has policies that may hide rows"


def test_tables_and_indexes_of_others_beside_ours_do_no_harm(
    pg_store: Store, address: DatabaseAddress, admin: Admin
) -> None:
    fill(pg_store)
    admin(f"CREATE TABLE {address.schema}.notes (text text)")
    admin(f"CREATE INDEX mine ON {address.schema}.runs (started, id)")
    with closing(Store.open(address)) as store:
        assert store.foreign == []
        store.record_run(a_run(1))
