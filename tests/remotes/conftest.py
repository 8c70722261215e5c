"""A store with results of every kind, made once."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from evalstore.interfaces.cli.main import main
from evalstore.remotes.layout import FolderFiles
from evalstore.store import Store
from evalstore.store.records import CheckedRecord
from tests.builders import tree
from tests.interfaces.cli.conftest import WEATHER, WEATHER_WORKSPACE
from tests.remotes import stores


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with two runs, an edit between them, a label, a file and a failed call.

    Beside it, `first.db` is its store after the first run.
    """
    folder = tree(
        tmp_path_factory.mktemp("finished") / "w",
        {
            **WEATHER_WORKSPACE,
            "evalstore.yaml": WEATHER_WORKSPACE["evalstore.yaml"].replace(
                "[scripted/one]", "[scripted/one, scripted/silent]"
            ),
            "models/silent.yaml": "id: scripted/silent\nprovider: scripted\nresponses: []\n",
            "tests/dot.png": b"\x89PNG\r\n\x1a\n",
            "tests/dot.md": "# 👤\n\nSee {{_file:dot.png}}\n\n---\n\nIt must be seen.\n",
        },
    )
    before = Path.cwd()
    os.chdir(folder)
    try:
        assert main(["run", "--fail-on", "none", "-q"]) in (0, 3)
        shutil.copy(folder / ".evalstore/store.db", folder.parent / "first.db")
        (folder / "tests/weather.md").write_text(WEATHER.replace("warm", "not cold"))
        assert main(["run", "--fail-on", "none", "-q"]) in (0, 3)
        label = ["label", "tests/weather.md::city=Oslo", "-m", "no", "fail", "--as", "Ann"]
        assert main([*label, "-q"]) == 0
    finally:
        os.chdir(before)
    return folder


@pytest.fixture(scope="session")
def whole(finished: Path) -> Path:
    """The path of its store."""
    return finished / ".evalstore/store.db"


@pytest.fixture(scope="session")
def whole_records(whole: Path) -> list[CheckedRecord]:
    """The records of that store."""
    with stores.opened(whole) as store:
        return stores.records(store)


@pytest.fixture
def full(whole: Path) -> Iterator[Store]:
    """That store; it is only read."""
    with stores.opened(whole) as store:
        yield store


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[Store]:
    """A store without rows."""
    with stores.opened(tmp_path / "empty.db") as store:
        yield store


@pytest.fixture
def remote(tmp_path: Path) -> FolderFiles:
    """A place that is not a remote yet."""
    return FolderFiles(tmp_path / "remote")
