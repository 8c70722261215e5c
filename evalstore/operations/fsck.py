"""The command `fsck`: computes every id again, in the store or in a remote."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from evalstore.operations.open_remote import locate_remote
from evalstore.planning.open_project import open_store
from evalstore.sharing.check_remote import RemoteCheck, check_remote
from evalstore.sharing.progress import CopyListener
from evalstore.store.fsck import Damage, check_store

if TYPE_CHECKING:
    from evalstore.planning.options import Location


@dataclass(frozen=True, slots=True)
class FsckReport:
    """The result of `fsck`."""

    checked: int
    problems: list[Damage]


def fsck(location: Location) -> FsckReport:
    """Check the whole store."""
    with open_store(location, inspect=True) as store:
        return FsckReport(*check_store(store))


@dataclass(frozen=True, slots=True)
class RemoteFsckReport:
    """The result of `fsck --remote`."""

    remote: str
    address: str
    check: RemoteCheck = field(metadata={"json_inline": True})


def fsck_remote(
    location: Location, name: str | None, listener: CopyListener | None = None
) -> RemoteFsckReport:
    """Check all files of a remote; raises `EvalstoreError` if it cannot be read."""
    name, files = locate_remote(location, name)
    check = check_remote(files, listener or CopyListener())
    return RemoteFsckReport(name, files.address, check)
