"""The search index in the tables of a store: it finds what the file finds, for all users."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from evalstore.core.errors import EvalstoreError, StoreError
from evalstore.store import Store
from evalstore.store.location import DatabaseAddress, read_address
from evalstore.store.search import tables as search_tables
from evalstore.store.search.file import SearchFile
from evalstore.store.search.tables import SearchTables
from evalstore.store.search.texts import KINDS, split_words
from tests.postgresql_server import PostgreSQLServer
from tests.store.test_search_index import add, find

_TEXT = """\
oslo Oslo's cold COLD. too-cold look_up a@b.org https://a.b/c?d=1 3.14
Straße STRASSE cafe\u0301 Café İstanbul ế й и\u0306 ά ﬁne \u20ac5 ½ \ue000
東京 京 東 ไทย हिन्दी 가나 \U0001f642 \U0001f44d\U0001f3fd
' '' \\ & !cold (oslo :* % _ <-> " a'b\\c:*"""
PIECES = (*_TEXT.split(), "x\0y", "\n")
"""Words of many scripts, and signs that mean something to one of the databases."""
QUERIED = (*PIECES, "\ud800")


@pytest.fixture
def address(postgresql_server: PostgreSQLServer) -> DatabaseAddress:
    return read_address(postgresql_server.url())


@pytest.fixture
def shared(address: DatabaseAddress) -> Iterator[Store]:
    """Return a new store in PostgreSQL."""
    with closing(Store.open(address, create=True)) as opened:
        yield opened


def change(address: DatabaseAddress, *statements: str) -> None:
    """Change a store as its owner."""
    from evalstore.store.postgresql.connection import connect

    with closing(connect(address)) as connection:
        for statement in statements:
            connection.execute(statement.encode())


@pytest.fixture
def reader(shared: Store, address: DatabaseAddress) -> Iterator[DatabaseAddress]:
    """Return the address for a role that may only read."""
    role = f"reader_of_{address.schema}"
    change(
        address,
        f"CREATE ROLE {role} LOGIN",
        f"GRANT USAGE ON SCHEMA {address.schema} TO {role}",
        f"ALTER DEFAULT PRIVILEGES IN SCHEMA {address.schema} GRANT SELECT ON TABLES TO {role}",
        f"GRANT SELECT ON ALL TABLES IN SCHEMA {address.schema} TO {role}",
    )
    yield DatabaseAddress(str(address), {**address.options, "user": role}, address.schema)
    change(address, f"DROP OWNED BY {role}", f"DROP ROLE {role}")


def test_the_tables_find_what_the_file_finds(shared: Store, file_store: Store) -> None:
    generator = random.Random(7)
    texts = ["".join(_some(generator, 1, 12)) for _ in range(150)]
    assert add(shared, *texts) == add(file_store, *texts)
    tables, file = SearchTables(shared), SearchFile.open(None)
    assert tables.update(shared)
    assert file.update(file_store)
    found = 0
    for _ in range(600):
        number = generator.randint(1, 2)
        words = tuple("".join(_some(generator, 1, 2, QUERIED)) for _ in range(number))
        for query in (words, split_words(" ".join(words))):
            expected = file.find_sessions(query)
            assert tables.find_sessions(query) == expected, query
            documents = set(file.find_documents(query, KINDS))
            assert set(tables.find_documents(query, KINDS)) == documents, query
            found += bool(expected)
    assert found > 200
    file.close()


def _some(
    generator: random.Random, least: int, most: int, pieces: Sequence[str] = PIECES
) -> Iterator[str]:
    for _ in range(generator.randint(least, most)):
        yield generator.choice(pieces) + generator.choice((" ", " ", "-", ""))


def test_words_of_a_long_text_are_found_across_its_rows(
    shared: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search_tables, "_LONGEST_PART", 700)
    numbers = [f"w{number}" for number in range(1_000)]
    (id,) = add(shared, " ".join(numbers))
    index = SearchTables(shared)
    index.update(shared)
    for start in range(0, 990, 3):
        assert index.find_sessions((" ".join(numbers[start : start + 10]),)) == {id}
    assert index.find_sessions(("w3", "w990")) == {id}
    assert [*index.find_documents(("w3", "w990"), KINDS)] == [("answers", id)]
    assert index.find_sessions(("w3 w5",)) == frozenset()


def test_texts_beyond_the_limits_of_a_row_are_indexed(shared: Store) -> None:
    """A row takes a megabyte of different words, of 2,046 bytes each."""
    many = " ".join(f"word{number}" for number in range(150_000))
    repeated, long = "the cat " * 40_000 + "sat", "\U00010400" * 3_000
    ids = add(shared, many, repeated, long, "0" * 70_000)
    index = SearchTables(shared)
    index.update(shared)
    assert find(index, '"word149998 word149999"') == find(index, "word0 word99999") == {ids[0]}
    assert find(index, '"the cat sat"') == {ids[1]}
    assert find(index, long) == find(index, long[:400]) == {ids[2]}
    assert find(index, f'"{"0" * 70_000}"') == {ids[3]}
    assert find(index, f'"{repeated[:-3]}"') == frozenset()  # longer than the end of a row


def test_a_query_has_limits(shared: Store) -> None:
    add(shared, " ".join(["one two"] * 500))
    index = SearchTables(shared)
    index.update(shared)
    assert len(find(index, f'"{" ".join(["one two"] * 500)}"')) == 1
    assert len(find(index, " ".join(["one", "two"] * 50))) == 1
    with pytest.raises(EvalstoreError, match="101 words are too many to search for: at most 100"):
        find(index, "one " * 101)


def test_who_may_only_read_searches_what_is_indexed(shared: Store, reader: DatabaseAddress) -> None:
    (id,) = add(shared, "one")
    with closing(Store.open(reader)) as store:
        index = SearchTables(store)
        assert index.update(store)
        assert (set(find(index, "one")), index.missing) == (set(), 1)
        SearchTables(shared).update(shared)
        assert index.update(store)
        assert (set(find(index, "one")), index.missing) == ({id}, 0)
        add(shared, "one more")
        assert index.update(store)
        assert (set(find(index, "one")), index.missing) == ({id}, 1)
        assert not index.update(store, lambda _done, _all: False)


@pytest.mark.parametrize(
    "damage",
    [
        "DROP TABLE search_texts",
        "DROP TABLE search_links",
        "ALTER TABLE search_texts DROP COLUMN words",
        "ALTER TABLE search_links ADD COLUMN more text",
        "DROP INDEX ix_search_texts_words",
        "CREATE TRIGGER t AFTER INSERT ON search_texts EXECUTE FUNCTION "
        "suppress_redundant_updates_trigger()",
        "CREATE RULE r AS ON INSERT TO search_links DO INSTEAD NOTHING",
        "ALTER TABLE search_texts ENABLE ROW LEVEL SECURITY",
    ],
)
def test_damaged_tables_are_made_anew(shared: Store, address: DatabaseAddress, damage: str) -> None:
    (id,) = add(shared, "one")
    index = SearchTables(shared)
    index.update(shared)
    change(address, damage)
    assert index.update(shared)
    assert find(index, "one") == {id}


def test_a_view_in_the_place_of_a_table_is_not_read(
    shared: Store, address: DatabaseAddress
) -> None:
    index = SearchTables(shared)
    index.update(shared)
    change(
        address,
        "DROP TABLE search_links",
        "CREATE VIEW search_links AS SELECT id AS text, id AS session FROM sessions",
    )
    with pytest.raises(StoreError, match="search_links"):
        index.update(shared)


def test_rows_come_in_the_order_in_which_they_were_added(shared: Store, tmp_path: Path) -> None:
    index = SearchTables(shared)
    ids = []
    for number in range(5):
        ids += add(shared, f"number{number}")
        index.update(shared)
    assert [*index.find_documents(("number",), KINDS)] == [("answers", id) for id in ids]
