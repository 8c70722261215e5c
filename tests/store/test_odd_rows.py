"""Rows of runs in progress with values of other types, which a file of SQLite may have."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

from evalstore.core.errors import StoreError
from evalstore.exchange.sync.fsck import check_store
from evalstore.store import Store
from evalstore.store.leases import Leases, has_process, machine_id
from evalstore.store.shared_runs import SharedRun
from tests.store.test_run_documents import DESCRIPTION

RUN, ODD, A, B = ("1" * 32, "0751" + "2" * 28, "a" * 32, "b" * 32)
TEXT = json.dumps(DESCRIPTION)
NOT_UTF_8 = "CAST(x'ff41' AS TEXT)"


def execute(store: Store, statement: str, *values: Any) -> None:
    with store.writing() as connection:
        connection.execute(statement, values)


def add_odd_run(store: Store, **columns: str) -> None:
    """Add a run in progress with these expressions of SQL as its values."""
    values = {
        "id": f"x'{ODD}'",
        "description": f"'{TEXT}'",
        "started": "1700000000000000",
        "cost_limit": "NULL",
    } | columns
    names = ", ".join(values)
    execute(store, f"INSERT INTO shared_runs ({names}) VALUES ({', '.join(values.values())})")


def add_odd_share(store: Store, run: str, **columns: str) -> None:
    values = {
        "id": f"x'{A}'",
        "run": f"x'{run}'",
        "reserved": "0",
        "spent": "0",
        "counts": "'{}'",
    } | columns
    names = ", ".join(values)
    execute(store, f"INSERT INTO run_shares ({names}) VALUES ({', '.join(values.values())})")


def read(store: Store) -> dict[str, SharedRun]:
    """Return the runs in progress, of which the one that is as it should be can be read."""
    runs = {run.id: run for run in store.find_shared_runs()}
    assert runs[RUN].error is None
    assert runs[RUN].description == DESCRIPTION
    return runs


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"started": "'abc'"}, "its start or its limit of cost"),
        ({"started": "x'00ff'"}, "its start or its limit of cost"),
        ({"started": "1.5"}, "its start or its limit of cost"),
        ({"started": NOT_UTF_8}, "its start or its limit of cost"),
        ({"cost_limit": "'abc'"}, "its start or its limit of cost"),
        ({"cost_limit": NOT_UTF_8}, "its start or its limit of cost"),
        ({"description": "x'ff41'"}, "its description is not a JSON object"),
        ({"description": NOT_UTF_8}, "its description is not a JSON object"),
        ({"description": "7"}, "its description is not a JSON object"),
    ],
)
def test_a_run_with_a_value_of_another_type_hides_no_other(
    file_store: Store, columns: dict[str, str], words: str
) -> None:
    file_store.add_shared_run(RUN, DESCRIPTION, None)
    add_odd_run(file_store, **columns)
    odd = read(file_store)[ODD]
    assert words in str(odd.error)
    (damage,) = check_store(file_store)[1]
    assert damage.kind == "run in progress"
    assert damage.id == ODD


@pytest.mark.parametrize(("id", "digits"), [("'abc'", "616263"), ("7", "37"), (NOT_UTF_8, "ff41")])
def test_an_id_of_another_type_hides_no_other_run(file_store: Store, id: str, digits: str) -> None:
    file_store.add_shared_run(RUN, DESCRIPTION, None)
    add_odd_run(file_store, id=id)
    add_odd_share(file_store, RUN, id=id)
    odd = read(file_store)[digits]
    assert "its id is not valid" in str(odd.error)
    assert [share.runner for share in file_store.find_shares(RUN)] == [digits]
    assert [damage.id for damage in check_store(file_store)[1]] == [digits]


@pytest.mark.parametrize("counts", ["x'ff41'", NOT_UTF_8])
def test_what_a_runner_has_noted_that_is_no_text_is_an_error_of_its_run(
    file_store: Store, counts: str
) -> None:
    file_store.add_shared_run(RUN, DESCRIPTION, None)
    add_odd_run(file_store)
    add_odd_share(file_store, ODD, counts=counts)
    odd = read(file_store)[ODD]
    assert "what one of its programs has noted is not a JSON object" in str(odd.error)
    (share,) = file_store.find_shares(ODD)
    assert share.problem


@pytest.mark.parametrize("amount", ["'abc'", "x'00'", NOT_UTF_8])
@pytest.mark.parametrize("name", ["reserved", "spent"])
@pytest.mark.parametrize("limit", [None, 1.0])
def test_an_amount_that_is_no_number_is_refused(
    file_store: Store, limit: float | None, name: str, amount: str
) -> None:
    file_store.add_shared_run(RUN, DESCRIPTION, limit)
    add_odd_share(file_store, RUN, **{name: amount})
    with pytest.raises(StoreError, match=f"its cost is not known: .* has {name}, "):
        file_store.write_share(RUN, B, 0.0, 0.1, {})
    (run,) = file_store.find_shared_runs()
    assert f"has {name}, " in str(run.error)


@pytest.mark.parametrize("pid", ["'a' || char(0)", "x'00'", "'../x'", "1.5", NOT_UTF_8])
def test_a_process_whose_id_is_no_number_is_none(file_store: Store, pid: str) -> None:
    file_store.add_shared_run(RUN, DESCRIPTION, None)
    add_odd_share(file_store, RUN)
    row = f"INSERT INTO runners VALUES (x'{A}', ?, {pid}, '', 0)"
    execute(file_store, row, machine_id())
    assert read(file_store)[RUN].has_process is False
    assert not Leases(file_store).has_others()


@pytest.mark.parametrize("column", ["place", "born"])
def test_a_runner_whose_place_or_start_is_no_text_stops_nobody(
    file_store: Store, column: str
) -> None:
    file_store.add_shared_run(RUN, DESCRIPTION, None)
    add_odd_share(file_store, RUN)
    row = f"INSERT INTO runners VALUES (x'{A}', ?, {os.getpid()}, 'x', 0)"
    execute(file_store, row, machine_id())
    execute(file_store, f"UPDATE runners SET {column} = {NOT_UTF_8}")
    assert read(file_store)[RUN].has_process is (None if column == "place" else False)
    assert Leases(file_store).has_others() is (column == "place")


def test_a_process_that_is_not_there_is_not_found_by_an_empty_start() -> None:
    assert has_process(machine_id(), 2**40, "") is False


def test_accounts_that_are_no_text_are_those_of_nobody(file_store: Store) -> None:
    execute(file_store, f"INSERT INTO runners VALUES (x'{A}', 'elsewhere', 1, 'x', 0)")
    execute(file_store, f"INSERT INTO runner_accounts VALUES (x'{A}', {NOT_UTF_8})")
    leases = Leases(file_store)
    leases.accounts = frozenset(["one"])
    assert leases.count_sharers() == {"one": 1}
