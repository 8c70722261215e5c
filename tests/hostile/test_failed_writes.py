"""A write that fails, as on a full disk, leaves no row that refers to a missing one."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evalstore.core.errors import StoreError
from evalstore.exchange.sync.fsck import check_store
from evalstore.interfaces.cli.main import main
from evalstore.planning import cells
from evalstore.store.sqlite.driver import SQLiteDriver
from tests.builders import tree
from tests.remotes import stores

pytestmark = [
    pytest.mark.extended,
    pytest.mark.one_database("writes to a file fail; a server rolls back alike"),
]
ROWS = "".join(f"  - {{n: {number}}}\n" for number in range(70))
FILES = {
    "evalstore.yaml": "candidates: [scripted/one]\nevaluators: [scripted/judge]\n",
    "models/one.yaml": "id: scripted/one\nprovider: scripted\nresponses: [{answer: Fine.}]\n",
    "models/judge.yaml": "id: scripted/judge\nprovider: scripted\n"
    "responses: [{answer: {pass: true, feedback: good}}]\n",
    "tests/many.md": f"---\nreplacements:\n{ROWS}---\n# User\n\nHow is {{{{n}}}}?\n\n---\n\n"
    "It must be fine.\n",
}
EDITED = FILES["tests/many.md"].replace("  - {n: 7}\n", "").replace("{n: 90}", "{n: 990}")
Fail = Callable[[int, int], None]


@pytest.fixture
def fail(monkeypatch: pytest.MonkeyPatch) -> Fail:
    """A function that lets so many writes succeed and so many after these fail."""
    write = SQLiteDriver.write
    left = [0, 0]

    def write_some(driver: SQLiteDriver, work: Any, **options: Any) -> Any:
        if left[0] > 0:
            left[0] -= 1
        elif left[1] > 0:
            left[1] -= 1

            def fail_in_the_middle(connection: Any) -> None:
                work(connection)
                raise StoreError("no space left on the disk")

            return write(driver, fail_in_the_middle, **options)
        return write(driver, work, **options)

    monkeypatch.setattr(SQLiteDriver, "write", write_some)

    def set_writes(succeed: int, failing: int) -> None:
        left[:] = [succeed, failing]

    return set_writes


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with a run, and a file that was edited since."""
    folder = tree(tmp_path_factory.mktemp("ran") / "w", FILES)
    assert main(["-C", str(folder), "run", "-q"]) == 0
    (folder / "tests/many.md").write_text(EDITED)
    return folder


@pytest.mark.parametrize("failing", [1, 10_000])
def test_after_each_write_that_fails_the_store_is_sound_and_the_next_command_completes_it(
    failing: int,
    ran: Path,
    tmp_path: Path,
    fail: Fail,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cells, "BATCH", 40)
    for succeed in range(60):
        folder = tmp_path / str(succeed)
        shutil.copytree(ran, folder)
        fail(succeed, failing)
        code = main(["-C", str(folder), "run", "-q"])
        fail(0, 0)
        with stores.opened(folder / ".evalstore/store.db") as store:
            assert check_store(store)[1] == [], succeed
        assert main(["-C", str(folder), "run", "-q"]) in (0, 1)
        with stores.opened(folder / ".evalstore/store.db") as store:
            assert check_store(store)[1] == [], succeed
        shutil.rmtree(folder)
        if code in (0, 1):
            break
    assert succeed > 3
