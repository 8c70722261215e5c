"""The command `fsck`: computes every id again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from evalstore.planning.open_project import open_store
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
