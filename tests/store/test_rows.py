"""Rows follow from contents alone: in any order, after a migration, and without loss."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import pytest

from evalstore.core.errors import StoreError
from evalstore.core.hashing import canonical_json, hash_content
from evalstore.core.values import Case, CaseFile, Verdict
from evalstore.exchange.sync.fsck import check_store, repair_store
from evalstore.store import Store
from evalstore.store.driver import Connection
from evalstore.store.location import DatabaseAddress, read_address
from evalstore.store.records import COPIED_TABLES, StoredRecord, check_record
from evalstore.store.results import (
    RowResults,
    describe_cell,
    iterate_entries,
    load_whole,
    require_results,
)
from evalstore.store.rows.row_tables import KINDS, ROW_TABLES, VERDICT_NUMBERS, VIEWS
from evalstore.store.trees.case_chunks import build_case_tree, build_results, collect
from evalstore.store.trees.tree_nodes import build_tree
from tests.postgresql_server import PostgreSQLServer
from tests.store.sessions import fill

WORDS = {number: word for word, number in VERDICT_NUMBERS.items()}
Rows = dict[str, list[tuple[Any, ...]]]


@pytest.fixture
def filled(path: Path) -> Iterator[Store]:
    with closing(Store.open(path, create=True)) as store:
        fill_all(store)
        yield store


@pytest.fixture
def sound(path: Path) -> Iterator[Store]:
    """A store that lacks nothing."""
    with closing(Store.open(path, create=True)) as store:
        fill(store)
        yield store


def fill_all(store: Store) -> None:
    """Store something of every kind, and a file with so many cases that it is a tree of nodes."""
    fill(store)
    contents: dict[str, tuple[str, str]] = {}
    cases = [
        Case(
            *(f"row {n}", f"{n:016x}", (f"{n:032x}", "a" * 32), None, ("long",), (None, "c" * 32)),
            recorded=f"{n:032x}" if n % 3 else None,
        )
        for n in range(300)
    ]
    file = CaseFile(tuple(cases))
    root = build_case_tree(file, collect(contents))
    store.ensure_versions(contents, {})
    cells = [
        describe_cell(n, 0, "m", 1 + n % 2, "pass", n % 3 / 2, [f"{n:032x}"], ["b" * 32] * (n % 2))
        for n in range(0, 300, 2)
    ]
    build_results({"t": cells}, {"t": file}, {"t": root}, store.load_cases, collect(contents))
    store.ensure_versions(contents, {})


def rows_of(store: Store) -> Rows:
    """All rows by table, in the order of their values."""
    with store.snapshot() as connection:
        found = {
            name: connection.execute(f"SELECT * FROM {name}").fetchall() for name in ROW_TABLES
        }
    return {name: sorted(map(tuple, rows), key=repr) for name, rows in found.items()}


def records(store: Store) -> list[StoredRecord]:
    return [
        record
        for table in COPIED_TABLES
        for record in store.load_records(table, [id.hex() for id in ids_in(store, table)])
    ]


def ids_in(store: Store, table: str) -> list[bytes]:
    with store.snapshot_ids() as snapshot:
        return [id for (id,) in snapshot.iterate_ids(table)]


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path | DatabaseAddress:
    """Where a new store is to be, in either database."""
    if request.param == "sqlite":
        return tmp_path / "other.db"
    server: PostgreSQLServer = request.getfixturevalue("postgresql_server")
    return read_address(server.url())


@pytest.fixture
def other(place: Path | DatabaseAddress) -> Iterator[Store]:
    with closing(Store.open(place, create=True)) as opened:
        yield opened


@pytest.mark.parametrize("seed", range(3))
def test_rows_are_the_same_in_whatever_order_contents_arrive(
    filled: Store, other: Store, seed: int
) -> None:
    chance = Random(seed)
    left = records(filled)
    chance.shuffle(left)
    while left:
        size = chance.randint(1, 10)
        other.ensure_records([check_record(record) for record in left[:size]])
        other.ensure_records([check_record(record) for record in left[:1]])  # again
        left = left[size:]
    assert rows_of(other) == rows_of(filled)
    assert all(rows_of(filled).values())


def test_a_migrated_store_has_the_rows_that_it_would_have_written(
    place: Path | DatabaseAddress,
) -> None:
    with closing(Store.open(place, create=True)) as store:
        fill_all(store)
        before = rows_of(store)
        with store.writing() as connection:
            for name in (*(f"VIEW {name}" for name in VIEWS), *map("TABLE {}".format, ROW_TABLES)):
                connection.execute(f"DROP {name}")
            connection.execute("UPDATE alembic_version SET version_num = '0006'")
    with closing(Store.open(place)) as store:
        assert rows_of(store) == before
        assert store.foreign == []
        with store.ask("SELECT count(*) FROM answers_v", 10) as answer:
            assert [*map(tuple, answer.rows)] == [(len(before["answer_rows"]),)]


def test_cases_with_recorded_answers_have_what_they_have_in_common_once(
    place: Path | DatabaseAddress,
) -> None:
    with closing(Store.open(place, create=True)) as store:
        fill_all(store)
        now = rows_of(store)
        cases = {record.id: json.loads(record.content).get("cases") for record in records(store)}
        with store.writing() as connection:
            for leaf, n, kind in connection.execute(
                "SELECT leaf, n, kind FROM case_rows"
            ).fetchall():
                if recorded := cases[leaf.hex()][n].get("recorded"):
                    as_before_0008(connection, leaf, n, kind, recorded)
            connection.execute("UPDATE alembic_version SET version_num = '0007'")
        assert len(rows_of(store)["kinds"]) == len(now["kinds"]) + 200
    with closing(Store.open(place)) as store:
        assert rows_of(store) == now


def as_before_0008(connection: Connection, leaf: bytes, n: int, kind: bytes, recorded: str) -> None:
    """Give a case the rows that it had when its recorded answer was part of its kind."""
    query = "SELECT content FROM kinds WHERE id = ?"
    ((content,),) = connection.execute(query, (kind,)).fetchall()
    text = canonical_json({**json.loads(content), "recorded": recorded})
    former = bytes.fromhex(hash_content(text))
    connection.insert(KINDS, [(former, text)])
    for table, columns in (("kind_tags", "place, tag"), ("kind_prompts", "number, prompt")):
        rows = connection.execute(f"SELECT {columns} FROM {table} WHERE kind = ?", (kind,))
        connection.insert(ROW_TABLES[table], [(former, *row) for row in rows.fetchall()])
    where = "WHERE leaf = ? AND n = ?"
    connection.execute(f"UPDATE case_rows SET kind = ? {where}", (former, leaf, n))


def test_the_contents_of_leaves_can_be_made_from_their_rows_but_for_recorded_answers(
    filled: Store,
) -> None:
    contents = {record.id: json.loads(record.content) for record in records(filled)}
    leaves = {id for id, it in contents.items() if "cells" in it or "cases" in it.get("kind", "")}
    made = {**cases_from_rows(filled), **results_from_rows(filled)}
    assert made
    for id, items in made.items():
        stored = contents[id]["cells" if "cells" in contents[id] else "cases"]
        for each in stored:
            each.pop("recorded", None)
        assert items == stored
    assert {id for id in leaves if "parts" not in contents[id]} >= made.keys()


def cases_from_rows(store: Store) -> dict[str, list[Any]]:
    query = (
        "SELECT leaf, key, row, tests, evaluation, content FROM case_rows "
        "JOIN kinds ON kinds.id = kind ORDER BY leaf, n"
    )
    made: dict[str, list[Any]] = {}
    with store.snapshot() as connection:
        for leaf, key, row, tests, evaluation, kind in connection.execute(query):
            case = {"key": key, "tests": split(tests), **json.loads(kind)}
            case |= {} if row is None else {"row": row}
            case |= {} if evaluation is None else {"evaluation": evaluation.hex()}
            made.setdefault(leaf.hex(), []).append(case)
    return made


def results_from_rows(store: Store) -> dict[str, list[Any]]:
    query = (
        "SELECT leaf, case_n, prompt, model, verdict, score, wanted, sessions, judgements "
        "FROM result_rows ORDER BY leaf, n"
    )
    made: dict[str, list[Any]] = {}
    with store.snapshot() as connection:
        for leaf, case, prompt, model, verdict, score, wanted, *ids in connection.execute(query):
            cell = {"case": case, "model": model}
            cell |= {"prompt": prompt} if prompt else {}
            cell |= {"wanted": wanted} if wanted > 1 else {}
            cell |= {"verdict": WORDS[verdict]} if verdict else {}
            cell |= {} if score is None else {"score": score}
            for name, joined in zip(("sessions", "evaluations"), ids, strict=True):
                cell |= {name: split(joined)} if joined else {}
            made.setdefault(leaf.hex(), []).append(cell)
    return made


def split(joined: bytes) -> list[str]:
    return [joined[at : at + 16].hex() for at in range(0, len(joined), 16)]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE result_rows SET verdict = 3",
        "UPDATE result_rows SET sessions = x''",
        "DELETE FROM case_rows",
        "DELETE FROM case_names",
        "DELETE FROM kinds",
        "UPDATE kind_tags SET tag = 'x'",
        "DELETE FROM entries WHERE is_file = 1",
        "UPDATE answer_rows SET usd = 1",
        "UPDATE judgement_rows SET is_carried = 1",
        "UPDATE run_rows SET asked = 99",
        "DELETE FROM run_rows",
        "INSERT INTO run_rows SELECT zeroblob(16), started, ended, status, snapshot, results, "
        "message, author, git_commit, selected, total, usd, asked, judged, reused, failed "
        "FROM run_rows LIMIT 1",
    ],
)
def test_fsck_finds_rows_that_do_not_follow_from_contents_and_writes_them_again(
    sound: Store, statement: str
) -> None:
    before = rows_of(sound)
    with sound.writing() as connection:
        connection.execute(statement)
    assert rows_of(sound) != before
    damages = check_store(sound)[1]
    assert damages
    assert all("rows" in damage.message for damage in damages)
    repair_store(sound)
    assert rows_of(sound) == before
    assert check_store(sound)[1] == []


@pytest.mark.parametrize("changed", [(), (5,), (5, 250)])
def test_equal_nodes_of_two_results_of_a_file_are_those_that_stand_for_themselves(
    other: Store, changed: tuple[int, ...]
) -> None:
    files = [_long_file(), _long_file(changed)]
    roots = [_store_results(other, file) for file in files]
    leaves = [other.find_result_leaves(root) for root in roots]
    same = {leaf.id for leaf in leaves[0]} & {leaf.id for leaf in leaves[1]}
    assert len(leaves[0]) - len(same) == len(changed)
    (equal,) = other.find_equal_leaves({"a.md": (roots[0], roots[1])}).values()
    assert equal == dict.fromkeys(same, 1)


def test_nodes_without_a_verdict_and_those_with_a_name_of_another_are_not_equal(
    other: Store,
) -> None:
    pending = _store_results(other, _long_file(), verdicts={7: None})
    leaves = {leaf.id for leaf in other.find_result_leaves(pending)}
    (equal,) = other.find_equal_leaves({"a.md": (pending, pending)}).values()
    assert len(equal) == len(leaves) - 1
    was = _store_results(other, _long_file())
    moved = _store_results(other, _long_file((5,), row="row 250"))
    (equal,) = other.find_equal_leaves({"a.md": (moved, was)}).values()
    kept = {leaf.id for leaf in other.find_result_leaves(moved)} & {
        leaf.id for leaf in other.find_result_leaves(was)
    }
    assert len(equal) == len(kept) - 1


def test_equal_nodes_are_those_of_a_file_with_what_its_cases_say(other: Store) -> None:
    short = CaseFile(_long_file().cases[:3])
    same, failed = (_store_results(other, short, {1: each}) for each in ("pass", "fail"))
    files = {"a.md": (same, same), "b.md": (same, failed), "c.md": (failed, failed)}
    equal = other.find_equal_leaves(files)
    assert equal == {"a.md": {same: 1}, "c.md": {failed: 1}}
    counts = sorted(other.count_verdicts([failed]))
    assert counts == [(failed, (1, 0, 0, 1, 1)), (failed, (1, 1, 0, 2, 2))]
    assert [*other.find_prompts([same])] == [(same, None, 0)]


def _long_file(changed: tuple[int, ...] = (), row: str = "") -> CaseFile:
    """300 cases; those with the changed numbers have other keys, and the label if one is given."""
    return CaseFile(
        tuple(
            Case(
                row if row and n in changed else f"row {n}",
                f"{n + 1_000 * (n in changed):016x}",
                (f"{n:032x}",),
                None,
                (),
                (None,),
            )
            for n in range(300)
        )
    )


def _store_results(
    store: Store, file: CaseFile, verdicts: Mapping[int, Verdict | None] | None = None
) -> str:
    """Store a file and its results, which pass but for those with these numbers."""
    contents: dict[str, tuple[str, str]] = {}
    cases = build_case_tree(file, collect(contents))
    store.ensure_versions(contents, {})
    cells = [
        describe_cell(n, 0, "m", 1, (verdicts or {}).get(n, "pass"), None, [f"{n:032x}"], [])
        for n in range(len(file.cases))
    ]
    found = build_results(
        {"t": cells}, {"t": file}, {"t": cases}, store.load_cases, collect(contents)
    )
    store.ensure_versions(contents, {})
    return found["t"]


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM parts WHERE parent = ? AND place = 1",
        "DELETE FROM parts WHERE parent = ?",
        "DELETE FROM result_nodes WHERE id = ?",
        "DELETE FROM parts WHERE place = 1 "
        "AND parent = (SELECT cases FROM result_nodes WHERE id = ?)",
    ],
)
def test_results_of_which_rows_are_missing_are_never_fewer(other: Store, statement: str) -> None:
    file = _long_file()
    root = _store_results(other, file)
    tree, contents = build_tree({"a.md": root})
    other.ensure_versions(contents, {})
    assert require_results(other, tree) == {"a.md": root}
    content = other.load_leaves([root])[root]
    with other.writing() as connection:
        connection.execute(statement, (bytes.fromhex(root),))
    found = [case for batch in iterate_entries(other, {"a.md": root}) for _, case in batch]
    assert tuple(found) == file.cases
    for read in (
        lambda: [*other.find_result_leaves(root)],
        lambda: other.find_equal_leaves({"a.md": (root, root)}),
        lambda: load_whole(other, root, content),
        lambda: RowResults(other).find({"a.md": root}, {"a.md": ["row 5"]}),
        lambda: require_results(other, tree),
    ):
        with pytest.raises(StoreError, match=r"have rows|has no id"):
            read()


def test_nodes_of_files_are_listed_without_a_query_for_each(
    other: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    roots = [_store_results(other, _long_file((number,))) for number in range(12)]
    entries = {f"{number}.md": root for number, root in enumerate(roots)}
    left_out = {leaf.id for root in roots for leaf in other.find_result_leaves(root)}
    queries: list[str] = []
    select_each = Store._select_each

    def count(store: Store, statement: str, *rest: Any, **named: Any) -> Any:
        queries.append(statement)
        return select_each(store, statement, *rest, **named)

    monkeypatch.setattr(Store, "_select_each", count)
    monkeypatch.setattr(Store, "_select", None)
    assert [*iterate_entries(other, entries, dict.fromkeys(entries, left_out))] == []
    assert len(queries) <= 2
