"""A store for tests, in which files of hundreds of cases are treated as very long."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from evalstore.store import Store
from evalstore.store.trees import case_chunks, tree_nodes


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """A store whose files have parts of up to eight cases."""
    for module in (case_chunks, tree_nodes):
        monkeypatch.setattr(module, "MAX_PART", 8)
    with closing(Store.open(tmp_path / "store.db", create=True)) as opened:
        yield opened
