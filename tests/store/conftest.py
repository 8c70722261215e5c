"""Stores for the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from evalstore.store import Store


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the store is, or will be."""
    return tmp_path / "store.db"


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    """A new store."""
    opened = Store.open(path, create=True)
    yield opened
    opened.close()
