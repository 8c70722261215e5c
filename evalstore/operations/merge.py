"""The command `merge`: copies what another store file has and the store has not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from evalstore.errors import EvalstoreError
from evalstore.files.normal_path import normal_path
from evalstore.operations.push import count_kinds
from evalstore.planning.ignored_variables import warn_before_opening
from evalstore.planning.open_project import open_store, open_workspace
from evalstore.sharing.differences import count_by_table, find_missing
from evalstore.sharing.merge import copy_records
from evalstore.sharing.progress import CopyListener
from evalstore.store.location import DatabaseAddress, StoreLocation, is_url, read_address
from evalstore.store.records import COPIED_TABLES
from evalstore.store.unchanged import open_unchanged

if TYPE_CHECKING:
    from evalstore.planning.options import Location


@dataclass(slots=True)
class MergeReport:
    """What was merged, or would be."""

    store: str
    """The other store."""
    records: Mapping[str, int]
    """How many runs, answers, judgements and versions."""
    dry_run: bool = field(default=False, metadata={"json_name": "dryRun"})
    waiting: int = 0
    """Runs that were left in the other store, because it lacks rows that they refer to."""
    waiting_rows: int = field(default=0, metadata={"json_name": "waitingRows"})
    """Other rows that were left there for the same reason."""


def merge(
    location: Location,
    other: Path | str,
    *,
    dry_run: bool = False,
    listener: CopyListener | None = None,
) -> MergeReport:
    """Copy all rows of another store that the store does not have; the other is never changed.

    Each row is checked before it is stored, and stored after what it refers to. Raises
    `EvalstoreError`, and then the rows that were stored until then stay; a second merge completes
    them.
    """
    name = str(other)
    place = read_address(name) if is_url(name) else normal_path(location.directory, name)
    name = str(place) if is_url(name) else name
    if isinstance(place, DatabaseAddress):
        root = open_workspace(location).root
        warn_before_opening(root, location.warn, is_database=True)
    with open_store(location, create=not dry_run) as store:
        if _is_same(place, store.path):
            raise EvalstoreError(
                f"'{name}' is the store of this workspace", hint="name the other store"
            )
        with open_unchanged(place) as source:
            with source.snapshot_ids() as theirs:
                for table in COPIED_TABLES:  # one that is missing is an error of this store
                    theirs.count(table, 1)
            with source.snapshot_ids() as theirs, store.snapshot_ids() as ours:
                missing = find_missing(theirs, ours)
            report = MergeReport(name, count_kinds(count_by_table(missing)), dry_run=dry_run)
            if not dry_run:
                copied = copy_records(source, store, missing, listener or CopyListener(), name)
                report.records = count_kinds(copied.stored)
                report.waiting, report.waiting_rows = copied.waiting, copied.waiting_rows
    return report


def _is_same(place: StoreLocation, opened: str) -> bool:
    """Return whether a place is that of an open store, which `opened` names."""
    if isinstance(place, Path):
        return not is_url(opened) and place.exists() and place.samefile(opened)
    return str(place) == opened
