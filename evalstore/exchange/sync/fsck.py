"""The command `fsck`: computes every id again, in the store or in a remote."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from evalstore.core.clock import iso
from evalstore.exchange.sync.open_remote import is_place, locate_remote
from evalstore.files.access import normal_path
from evalstore.planning.open_project import open_store, open_workspace
from evalstore.planning.options import Location
from evalstore.planning.settled_parts import CACHE
from evalstore.remotes.bundle_files import BundleFiles
from evalstore.remotes.pack_reader import RemoteCheck, check_remote
from evalstore.store.fsck import Damage, check_store, repair_store
from evalstore.store.location import is_url
from evalstore.store.records import CopyListener


@dataclass(frozen=True, slots=True)
class FsckReport:
    """The result of `fsck`."""

    checked: int
    problems: list[Damage]
    removed: Mapping[str, int] = field(default_factory=dict)
    """How many rows were removed, by kind."""


def fsck(location: Location, *, repair: bool = False) -> FsckReport:
    """Check the whole store; with `repair`, remove before what can no longer be read."""
    removed: Mapping[str, int] = {}
    if repair:
        with open_store(location) as store:
            removed = repair_store(store)
        if removed:
            (open_workspace(location).private / CACHE).unlink(missing_ok=True)
    with open_store(location, inspect=True) as store:
        return FsckReport(*check_store(store), removed)


@dataclass(frozen=True, slots=True)
class BundleCheck:
    """The result of `fsck --remote` of a bundle."""

    file: str
    writer: str
    """Who has written it; not verified."""
    created: str
    """ISO 8601, by the clock of the writer."""
    presumes: Sequence[str]
    check: RemoteCheck = field(metadata={"json_inline": True})


@dataclass(frozen=True, slots=True)
class RemoteFsckReport:
    """The result of `fsck --remote`."""

    remote: str
    address: str
    check: RemoteCheck = field(metadata={"json_inline": True})


def fsck_remote(
    location: Location, name: str | None, listener: CopyListener | None = None
) -> RemoteFsckReport | BundleCheck:
    """Check all files of a remote, or a bundle; raises `EvalstoreError` if it cannot be read."""
    if name is not None and not is_url(name) and is_place(location, name):
        return verify_bundle(location.directory, Path(name), listener=listener)
    name, files = locate_remote(location, name)
    check = check_remote(files, listener or CopyListener())
    return RemoteFsckReport(name, files.address, check)


def verify_bundle(
    directory: Path, file: Path, *, listener: CopyListener | None = None
) -> BundleCheck:
    """Check a bundle without a workspace and a store; raises `RemoteError` if it cannot be read.

    Rows may refer to rows of the runs that it presumes, which are not looked for.
    """
    with BundleFiles.open(normal_path(directory, file)) as files:
        description = files.description
        check = check_remote(
            files, listener or CopyListener(), is_partial=bool(description.presumes)
        )
    return BundleCheck(
        str(file), description.writer, iso(description.created), description.presumes, check
    )
