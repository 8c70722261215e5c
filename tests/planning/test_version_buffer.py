"""Versions are stored while files are read, as long as anybody waits for the reading."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalstore.core import hashing
from evalstore.core.errors import StoreError
from evalstore.planning.open_project import open_project
from evalstore.planning.options import Location
from evalstore.planning.project import VersionBuffer
from evalstore.store import Store
from evalstore.store.driver import UnwantedError
from tests.builders import tree
from tests.interfaces.cli.long_files import CHECK, CHECKED, ROWS, treat_as_long

_ID, _CONTENT = hashing.identify({"kind": "prompt", "text": "Be brief."})
CONTENTS = {_ID: ("prompt", _CONTENT)}


def refuse_with(error: StoreError, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise error

    monkeypatch.setattr(Store, "ensure_versions", refuse)


def test_what_nobody_waits_for_any_more_is_not_kept_as_if_the_store_were_broken(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    buffer = VersionBuffer(store)
    with monkeypatch.context() as patch:
        refuse_with(UnwantedError(), patch)
        with pytest.raises(UnwantedError):
            buffer.take(CONTENTS, {})
    assert kept_by(buffer) == {}


def test_versions_are_kept_where_a_store_cannot_be_written_to(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse_with(StoreError("the store is read-only"), monkeypatch)
    buffer = VersionBuffer(store)
    buffer.take(CONTENTS, {})
    assert kept_by(buffer) == CONTENTS
    with pytest.raises(StoreError, match="read-only"):
        VersionBuffer(store, strict=True).take(CONTENTS, {})


def test_reading_ends_when_nobody_waits_for_it_while_its_versions_are_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    treat_as_long(monkeypatch)
    files = {"tests/data.jsonl": ROWS, "tests/rows.md": CHECKED + CHECK}
    root = tree(tmp_path / "ws", {"evalstore.yaml": "candidates: []\n", **files})
    refuse_with(UnwantedError(), monkeypatch)
    with pytest.raises(UnwantedError), open_project(Location(root)):
        pytest.fail("it was read to its end")


def kept_by(buffer: VersionBuffer) -> dict[str, tuple[str, str]]:
    return dict(buffer._contents)
