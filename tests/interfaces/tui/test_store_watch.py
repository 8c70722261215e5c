"""The browser notices what was recorded, and not that files were read, in each database."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from evalstore.core import hashing
from evalstore.core.errors import NO, OK
from evalstore.interfaces.cli.main import main
from evalstore.interfaces.tui.data_source import WorkspaceSource
from evalstore.planning.options import Location
from evalstore.store import Store
from evalstore.store.leases import FORMAT, Leases
from evalstore.store.location import StoreLocation, read_location

pytestmark = pytest.mark.extended


@pytest.fixture
def url(workspace: Path, location: StoreLocation) -> str:
    """Return the URL of a store in each database, with the run of the workspace."""
    url = str(location)
    Store.open(location, create=True).close()
    assert main(["-C", str(workspace), "--store", url, "pull", ".evalstore/store.db"]) == OK
    return url


def test_what_a_run_records_is_noticed_once_and_versions_that_are_read_are_not(
    workspace: Path, url: str
) -> None:
    source = WorkspaceSource(Location(workspace, store=url))
    changes = [source.has_store_changed(), source.has_store_changed()]
    stamp = source.workspace.stamp()
    with closing(Store.open(read_location(url))) as store:
        id, content = hashing.identify({"kind": "prompt", "text": "Be brief."})
        store.ensure_versions({id: ("prompt", content)}, {})
        store.add_shared_run("1" * 32, {}, None)
    assert source.workspace.stamp() != stamp
    changes += [source.has_store_changed(), source.has_store_changed()]
    with closing(Store.open(read_location(url))) as store:
        store.remove_shared_runs(["1" * 32])
    assert changes == [False] * 4
    assert main(["-C", str(workspace), "--store", url, "run", "-q", "--refresh"]) == NO
    assert [source.has_store_changed(), source.has_store_changed()] == [True, False]


DESCRIPTION = {"format": FORMAT, "version": "1", "problem": "it cannot be joined"}
"""What is always said of a run in progress."""


def test_a_run_of_this_program_is_none_of_another_one(workspace: Path, url: str) -> None:
    source = WorkspaceSource(Location(workspace, store=url))
    own, other = "1" * 32, "2" * 32

    def look() -> list[str]:
        source.has_store_changed()
        return [run.run for run in source.other_runs]

    with closing(Store.open(read_location(url))) as store:
        leases = Leases(store)
        store.add_shared_run(own, DESCRIPTION, None)
        assert look() == [own]
        source.is_running = True
        store.add_shared_run(other, DESCRIPTION, None)
        assert look() == []
        leases.register()
        store.write_share(own, leases.runner.id, 0.0, 0.0, {"asked": 1})
        store.write_share(other, "3" * 32, 0.0, 0.0, {"asked": 2, "judged": 1})
        assert look() == [other]
        source.is_running = False
        store.write_share(own, leases.runner.id, 0.0, 0.0, {"asked": 3})
        assert look() == [other]
        store.remove_shared_runs([own, other])
        assert look() == []
