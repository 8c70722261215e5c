"""What an import writes never fails `check`, whatever the files of the other system hold."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstore.core.errors import EvalstoreError
from evalstore.exchange.import_tests import import_files
from evalstore.planning.options import Location
from evalstore.workspace.folder import WorkspaceFolder
from evalstore.workspace.reader import read_workspace
from tests.builders import HELLO, tree
from tests.laws.recorded_sources import RECORDED
from tests.laws.repositories import REPOSITORIES

pytestmark = pytest.mark.extended

SOURCES = {**{format: (format, files) for format, files in REPOSITORIES.items()}, **RECORDED}


@pytest.mark.parametrize("name", SOURCES)
@given(data=st.data())
def test_nothing_that_an_import_writes_fails_check(name: str, data: st.DataObject) -> None:
    format, strategy = SOURCES[name]
    files = data.draw(strategy)
    with tempfile.TemporaryDirectory() as folder:
        source = tree(Path(folder) / "source", files)
        root = tree(Path(folder) / "workspace", {"evalstore.yaml": "", "tests/hello.md": HELLO})
        try:
            written = import_files(Location(root), format, [source]).written
        except EvalstoreError:
            written = ()  # nothing can be read
        assert [error.place for error in read_workspace(WorkspaceFolder(root)).errors] == []
        assert all((root / item).is_file() for item in written)
