"""Stores for the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from evalstore.store import Store


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return where the SQLite file of a store is, or will be."""
    return tmp_path / "store.db"


@pytest.fixture
def file_store(path: Path) -> Iterator[Store]:
    """Return a new store in a SQLite file, for what only those have."""
    with closing(Store.open(path, create=True)) as opened:
        yield opened
