"""The union of stores: whoever pushes and pulls in whatever order, all have everything."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Sequence, Set
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evalstore.core.errors import StoreError
from evalstore.exchange.sync.fsck import check_store
from evalstore.remotes.layout import FolderFiles
from evalstore.store import Store
from evalstore.store.records import COPIED_TABLES, CheckedRecord
from tests.remotes import stores

_numbers = itertools.count()
STORES, REMOTES = 3, 2
STEPS = st.lists(
    st.tuples(st.sampled_from(["push", "pull"]), st.integers(0, STORES - 1), st.integers(0, 1)),
    max_size=8,
)


def test_the_store_of_these_tests_has_rows_of_every_table(full: Store) -> None:
    tables = {table for table, _ in stores.rows(full)}
    assert set(COPIED_TABLES) - tables <= {"tools", "schemas"}


def test_what_is_pushed_and_pulled_is_the_same_store(
    full: Store, empty: Store, remote: FolderFiles
) -> None:
    stores.push(full, remote)
    stores.pull(empty, remote)
    assert stores.rows(empty) == stores.rows(full)
    assert check_store(empty)[1] == []


def test_again_there_is_nothing_to_copy_and_nothing_grows(
    full: Store,
    empty: Store,
    remote: FolderFiles,
    tmp_path: Path,
) -> None:
    stores.push(full, remote)
    stores.pull(empty, remote)
    before = stores.names(tmp_path / "remote")
    assert stores.push(full, remote).indexes == []
    assert stores.push(empty, remote).bytes_sent == 0
    assert stores.pull(empty, remote).stored.total() == 0
    assert stores.names(tmp_path / "remote") == before


@given(st.data(), STEPS, STEPS)
@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_is_copied_in_whatever_order_all_have_the_union(
    whole_records: Sequence[CheckedRecord],
    tmp_path: Path,
    data: st.DataObject,
    first: Sequence[tuple[str, int, int]],
    second: Sequence[tuple[str, int, int]],
) -> None:
    owners = data.draw(
        st.lists(
            st.sets(st.integers(0, STORES - 1), min_size=1),
            min_size=len(whole_records),
            max_size=len(whole_records),
        )
    )
    results = [
        _exchange(tmp_path / str(next(_numbers)), whole_records, owners, steps)
        for steps in (first, second)
    ]
    assert results[0] == results[1]
    assert len(results[0]) == len(whole_records)


def _exchange(
    folder: Path,
    records: Sequence[CheckedRecord],
    owners: Sequence[set[int]],
    steps: Sequence[tuple[str, int, int]],
) -> dict[tuple[str, bytes], dict[str, object]]:
    """Give each record to its owners, copy, and require that all have the same in the end."""
    folder.mkdir()
    remotes = [FolderFiles(folder / f"remote{number}") for number in range(REMOTES)]
    found = []
    opened = [Store.open(folder / f"{number}.db", create=True) for number in range(STORES)]
    try:
        for number, store in enumerate(opened):
            store.ensure_records(
                [record for record, who in zip(records, owners, strict=True) if number in who]
            )
        everybody = [("push", number, 0) for number in range(STORES)]
        last = [("pull", number, 0) for number in range(STORES)]
        for action, number, place in [*steps, *everybody, *last]:
            if action == "push":
                stores.push(opened[number], remotes[place], folder / f"{number}-{place}.cache")
            elif remotes[place].exists():
                stores.pull(opened[number], remotes[place], folder / f"{number}-{place}.cache")
        found = [stores.rows(store) for store in opened]
    finally:
        for store in opened:
            store.close()
    assert all(rows == found[0] for rows in found)
    return found[0]


def test_a_row_with_other_content_is_an_error(
    full: Store, remote: FolderFiles, tmp_path: Path
) -> None:
    stores.push(full, remote)
    place = tmp_path / "empty.db"
    with stores.opened(place) as empty:
        stores.pull(empty, remote)
    with stores.opened(place) as empty, empty.writing() as connection:
        connection.execute("UPDATE sessions SET content = replace(content, 'Warm', 'Cold')")
        connection.execute("DELETE FROM runs")
    with stores.opened(place) as empty:
        before = stores.rows(empty)
        with empty.writing() as connection:
            connection.execute("DELETE FROM evaluations")
    with stores.opened(place) as empty:  # a program that had it open would see that rows are gone
        _pull_again(full, empty, remote, before.keys())


def _pull_again(
    full: Store, empty: Store, remote: FolderFiles, before: Set[tuple[str, bytes]]
) -> None:
    stores.pull(empty, remote)  # rows that are there are not asked for; `fsck` finds them
    assert {key for key, row in stores.rows(empty).items()} == before | set(stores.rows(full))
    assert any("does not match its id" in damage.message for damage in check_store(empty)[1])


@pytest.mark.parametrize("size", [15, 17])
def test_what_is_no_id_is_an_error(empty: Store, remote: FolderFiles, size: int) -> None:
    with empty.writing() as connection:
        connection.execute("INSERT INTO prompts VALUES (?, '')", (b"\xff\0".ljust(size, b"\xff"),))
    with pytest.raises(StoreError, match="something in it has no id"):
        stores.push(empty, remote)


def test_ids_that_were_compared_are_compared_again_when_others_push(
    whole_records: list[CheckedRecord], empty: Store, remote: FolderFiles, tmp_path: Path
) -> None:
    models = [checked for checked in whole_records if checked.kind == "model"]
    place = tmp_path / "cache.db"
    empty.ensure_records(models[:1])
    for _ in range(2):
        stores.push(empty, remote, place)
    with stores.opened(tmp_path / "other.db") as other:
        other.ensure_records(models)
        stores.push(other, remote)
    assert len(models) > 1
    assert stores.pull(empty, remote, place).stored.total() == len(models) - 1
    shutil.rmtree(tmp_path / "remote")
    assert stores.push(empty, remote, place).records == len(models)


@pytest.mark.parametrize("cache", [None, "cache.db"])
def test_a_remote_is_listed_from_its_copy_or_without_one(
    full: Store, empty: Store, remote: FolderFiles, tmp_path: Path, cache: str | None
) -> None:
    place = tmp_path / cache if cache else None
    stores.push(full, remote, place)
    if place:
        place.write_bytes(b"damaged" * 1000)  # it is made again
    assert stores.pull(empty, remote, place).stored.total() == len(stores.rows(full))


def test_a_remote_that_was_emptied_gets_everything_again(
    full: Store, remote: FolderFiles, tmp_path: Path
) -> None:
    cache = tmp_path / "cache.db"
    stores.push(full, remote, cache)
    before = stores.names(tmp_path / "remote")
    shutil.rmtree(tmp_path / "remote")
    assert stores.push(full, remote, cache).records == len(stores.rows(full))
    assert stores.names(tmp_path / "remote") == before
