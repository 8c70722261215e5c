"""What somebody deletes with SQL is noticed where it is read, and by `fsck`."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

import pytest

from evalstore.store import Store
from evalstore.store.location import read_location
from tests.interfaces.cli.conftest import Evalstore
from tests.interfaces.cli.status.test_settled_parts import STORE, any_place, place

__all__ = ["any_place", "place"]
pytestmark = pytest.mark.extended
NOTHING = "Nothing to do: 40 answers"
OLDEST = "SELECT id FROM sessions ORDER BY started, id LIMIT 1"


def test_a_deleted_answer_is_missed_by_fsck_and_by_a_run_of_its_file(
    any_place: Path, evalstore: Evalstore
) -> None:
    (any_place / "tests/other.md").unlink()
    for _ in range(2):
        assert evalstore("run", "--fail-on", "none").exit_code == 0
    where = os.environ.get(STORE) or str(any_place / ".evalstore/store.db")
    with closing(Store.open(read_location(where))) as store, store.writing() as connection:
        connection.execute(f"DELETE FROM sessions WHERE id = ({OLDEST})")
    assert NOTHING in evalstore("status").stdout
    assert "which is not there" in evalstore("fsck").stdout
    assert "would ask for 1 answer" in evalstore("status", "tests/rows.md").stdout
    assert evalstore("run", "tests/rows.md", "--fail-on", "none").exit_code == 0
    assert NOTHING in evalstore("status", "tests/rows.md").stdout
