"""What holds for every test: no keys, no settings from outside, a home of its own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import count
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from tests import quick_stores

if TYPE_CHECKING:
    from pathlib import Path

settings.register_profile("default", derandomize=True, max_examples=25, deadline=None)
settings.register_profile("thorough", max_examples=1000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

_KEPT = "EVALSTORE_LLAMA_SERVER"
"""Names the server for the tests marked `llama`."""


_numbers = count()
_LOADS_LITELLM = ("test_secrets.py", "test_prices.py")


def pytest_xdist_auto_num_workers() -> int:
    """One more than there are processors: some tests wait for terminals and servers."""
    return (os.cpu_count() or 1) + 1


@pytest.hookimpl(tryfirst=True)  # before groups are read
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run in one process what loads litellm, which takes seconds."""
    for item in items:
        if "litellm" in item.name or item.path.name in _LOADS_LITELLM:
            item.add_marker(pytest.mark.xdist_group("litellm"))


@pytest.fixture(autouse=True)
def _nothing_from_outside(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    for name in list(os.environ):
        of_ours = name.startswith(("EVALSTORE_", "AI_TESTER_")) and name != _KEPT
        if of_ours or name.endswith(("_API_KEY", "_PROXY", "_proxy")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(_new_folder(tmp_path_factory)))


@pytest.fixture(autouse=True, scope="session")
def _quick_stores() -> Iterator[None]:
    """Write stores quickly."""
    with quick_stores.quick_stores():
        yield


def _new_folder(factory: pytest.TempPathFactory) -> Path:
    """An empty folder; pytest's own way looks through all there are, for thousands of tests."""
    made = factory.getbasetemp() / "folders" / str(next(_numbers))
    made.mkdir(parents=True)
    return made


@pytest.fixture
def tmp_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty folder for each test."""
    return _new_folder(tmp_path_factory)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder inside of `tmp_path`, so that there is something outside of it."""
    inside = tmp_path / "workspace"
    inside.mkdir()
    return inside
