"""Versions are read from what has just been read, from the store, and at last from elsewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import evalstore
from evalstore.core import hashing
from evalstore.core.errors import StoreError
from evalstore.planning.project import Fresh, VersionReader
from evalstore.store import Store
from tests.store.sessions import a_test


def version_and_contents(text: str) -> tuple[str, dict[str, tuple[str, str]]]:
    contents = a_test(text)
    return next(iter(contents)), contents


def test_a_version_is_found_where_it_is(store: Store) -> None:
    (stored, content), (new, fresh), (last, later) = (
        version_and_contents("stored"),
        version_and_contents("new"),
        version_and_contents("last"),
    )
    store.ensure_versions(content)
    asked: list[str] = []

    def fallback() -> Fresh:
        asked.append("asked")
        return later

    reader = VersionReader(store, fresh, fallback=fallback)
    assert reader.load("test", [stored, new]).keys() == {stored, new}
    assert asked == []
    assert reader.load("test", [last, "f" * 32, stored]).keys() == {last, stored}
    assert reader.find("test", "f" * 32) is None
    assert asked == ["asked"]
    for id in (stored, new, last):
        read = reader.find("test", id)
        assert hashing.identify(read)[0] == id
        assert reader.require("test", [id]) == {id: read}
    assert reader.find("test", None) is None


def test_what_is_nowhere_is_an_error_only_when_it_is_required(store: Store) -> None:
    reader = VersionReader(store)
    assert reader.load("test", ["f" * 32]) == {}
    with pytest.raises(StoreError, match="it has no test f"):
        reader.require("test", ["f" * 32])


def test_lengths_are_those_of_the_contents(store: Store) -> None:
    (stored, content), (new, fresh) = (
        version_and_contents("stored"),
        version_and_contents("quite new"),
    )
    store.ensure_versions(content)
    lengths = VersionReader(store, fresh).measure("test", [stored, new, "f" * 32])
    assert lengths == {stored: len(content[stored][1]), new: len(fresh[new][1])}


def test_no_other_module_reads_a_version_that_is_stored_or_was_just_read() -> None:
    by_hand = re.compile(r"(?:fresh|contents)(?:\[\w+\])?\[1\]")
    root = Path(evalstore.__file__).parent
    listed = {
        str(path.relative_to(root))
        for package in ("interfaces", "exchange", "runs", "results", "planning")
        for path in (root / package).rglob("*.py")
        if by_hand.search(path.read_text(encoding="utf-8"))
    }
    # The history of an import has what it stores itself.
    assert listed == {"planning/project.py", "exchange/imports/records.py"}
