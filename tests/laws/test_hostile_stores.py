"""A damaged or hostile store is an error in words, whatever reads it: never a traceback."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from evalstore.core.errors import (
    INCOMPLETE,
    NO,
    NOTHING_SELECTED,
    OK,
    STORE_UNUSABLE,
    USAGE,
    StoreError,
)
from evalstore.core.values import Json
from evalstore.store.schema.table_definitions import TABLES
from evalstore.store.trees.tree_nodes import find_entry, read_tree
from tests.laws.hostile import (
    FIELDS,
    READERS,
    VALUES,
    Names,
    columns,
    contents,
    copy_store,
    forge,
    make_workspace,
    names_of,
    places,
    put,
    set_column,
    store_of,
)

pytestmark = [
    pytest.mark.extended,
    pytest.mark.xdist_group("hostile stores"),  # they share a workspace of five runs
]

IN_WORDS = {OK, NO, USAGE, INCOMPLETE, NOTHING_SELECTED, STORE_UNUSABLE}
KINDS = (
    *("file", "tool", "schema", "prompt", "test", "evaluation", "model", "evaluator"),
    *("cases", "results", "tree", "sources", "session", "judgement", "failure", "run"),
)
Harm = Callable[[Path], object]
Read = Callable[[Harm, str], int]


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_workspace(tmp_path_factory.mktemp("hostile") / "w")


@pytest.fixture
def read(workspace: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Read]:
    """Read a store to which harm was done; returns the exit code."""
    names, stores = names_of(store_of(workspace)), copy_store(workspace)

    def look(harm: Harm, reader: str) -> int:
        harm(next(stores))
        code = READERS[reader](workspace, names)
        assert code in IN_WORDS, capsys.readouterr().err
        assert "Traceback" not in capsys.readouterr().err
        return code

    yield look
    stores.close()  # type: ignore[attr-defined]


def of_columns(table: str, count: int, seed: str) -> Iterator[tuple[str, Harm, str]]:
    """Columns of a table with a hostile value, each to be read in one way."""
    chance = random.Random(seed)
    mine = [column for name, column in columns() if name == table]
    for _ in range(count):
        column, value, reader = map(chance.choice, (mine, [*VALUES], [*READERS]))

        def harm(store: Path, column: str = column, value: str = value) -> None:
            set_column(store, table, column, VALUES[value])

        yield f"{table}.{column} is {value}: {reader}", harm, reader


def of_fields(
    stored: dict[str, tuple[str, Json]], kind: str, count: int, seed: str
) -> Iterator[tuple[str, Harm, str]]:
    """Contents of a kind with a hostile field, under ids that are right."""
    chance = random.Random(seed)
    ways: dict[tuple[Any, ...], list[tuple[str, tuple[Any, ...]]]] = {}
    for id, (_, content) in sorted(stored.items()):
        for way in places(content) if content["kind"] == kind else ():
            alike = tuple(0 if isinstance(step, int) else step for step in way)
            ways.setdefault(alike, []).append((id, way))
    for _ in range(count):
        id, way = chance.choice(ways[chance.choice(sorted(ways, key=str))])
        value, reader = chance.choice(FIELDS), chance.choice([*READERS])

        def harm(store: Path, id: str = id, way: tuple[Any, ...] = way, value: Any = value) -> None:
            forge(store, id, lambda content: put(content, way, value))

        yield f"{kind} {'.'.join(map(str, way))} is {value!r:.30}: {reader}", harm, reader


def check(read: Read, cases: Iterator[tuple[str, Harm, str]]) -> None:
    for name, harm, reader in cases:
        try:
            read(harm, reader)
        except BaseException as error:
            error.add_note(name)
            raise


@pytest.mark.parametrize("table", TABLES)
def test_any_value_in_any_column_is_read_or_refused_in_words(read: Read, table: str) -> None:
    check(read, of_columns(table, 8, table))


@pytest.mark.parametrize("kind", KINDS)
def test_any_field_of_any_content_is_read_or_refused_in_words(
    read: Read, workspace: Path, kind: str
) -> None:
    check(read, of_fields(contents(store_of(workspace)), kind, 6, kind))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("table", TABLES)
def test_any_value_in_any_column_at_length(read: Read, table: str, seed: int) -> None:
    check(read, of_columns(table, 100, f"{table} {seed}"))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", KINDS)
def test_any_field_of_any_content_at_length(
    read: Read, workspace: Path, kind: str, seed: int
) -> None:
    check(read, of_fields(contents(store_of(workspace)), kind, 100, f"{kind} {seed}"))


def test_a_store_that_was_left_alone_is_read_everywhere(read: Read) -> None:
    assert {name for name in READERS if read(lambda _store: None, name) > NO} == set()


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("statement", ["DELETE FROM {}", "DROP TABLE {}"])
def test_missing_rows_and_tables_are_reported(read: Read, table: str, statement: str) -> None:
    chance = random.Random(table + statement)
    for reader in ("fsck", *chance.sample([*READERS], 3)):
        read(lambda store: execute(store, statement.format(table)), reader)


@pytest.mark.parametrize(
    "value", ["a list", "null", "NaN", "a long number", "an object", "a number"]
)
@pytest.mark.parametrize(
    ("table", "reader"),
    [("runs", "log"), ("nodes", "cases of a run"), ("sessions", "show SESSION")],
)
def test_a_content_that_is_something_else_is_named(
    read: Read, table: str, reader: str, value: str
) -> None:
    code = read(lambda store: set_column(store, table, "content", VALUES[value]), reader)
    assert code == STORE_UNUSABLE


@pytest.mark.parametrize(
    ("table", "column", "reader"),
    [
        ("sessions", "started", "status"),
        ("evaluations", "started", "status"),
        ("evaluations", "score", "status"),
        ("evaluations", "verdict", "status"),
        ("sessions", "token_limit", "status"),
    ],
)
def test_bytes_where_a_number_belongs_are_named(
    read: Read, table: str, column: str, reader: str
) -> None:
    assert read(lambda store: set_column(store, table, column, b"\xff"), reader) == 6


def test_what_is_damaged_is_named_with_its_table_and_id(
    workspace: Path, read: Read, capsys: pytest.CaptureFixture[str]
) -> None:
    from evalstore.interfaces.cli.main import main

    names: Names = names_of(store_of(workspace))
    read(lambda store: set_column(store, "sessions", "content", "{}"), "fsck")
    assert main(["-C", str(workspace), "show", names.session]) == STORE_UNUSABLE
    shown = capsys.readouterr().err
    assert (
        f"row {names.session} of the table 'sessions': its content does not match its id" in shown
    )
    assert " fsck' " in shown


# --- trees


def test_a_tree_in_itself_is_an_error() -> None:
    node = {"children": dict.fromkeys("0123456789abcdef", "a" * 32)}

    def load(ids: Any) -> dict[str, Json]:
        return dict.fromkeys(ids, node)

    with pytest.raises(StoreError, match="a node contains itself"):
        read_tree("a" * 32, load)
    with pytest.raises(StoreError, match="a node contains itself"):
        find_entry(["a" * 32], "tests/a.md", load)


# --- contents that are large or deep


@pytest.mark.parametrize("opening", ["list", "object"])
def test_deep_contents_are_refused(read: Read, workspace: Path, opening: str) -> None:
    deep: Json = 1
    stored = contents(store_of(workspace))
    tool = next(id for id, (table, _) in stored.items() if table == "tools")
    for _ in range(600):
        deep = [deep] if opening == "list" else {"x": deep}

    def harm(store: Path) -> None:
        forge(store, tool, lambda content: put(content, ("parameters",), deep))

    for reader in ("ls cases --json --full", "show @", "diff", "fsck", "run"):
        read(harm, reader)


def execute(store: Path, statement: str) -> None:
    with closing(sqlite3.connect(store)) as raw:
        raw.execute(statement)
        raw.commit()
