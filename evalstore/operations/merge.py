"""The command `merge`: copies what another store file has and the store has not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from evalstore.errors import EvalstoreError
from evalstore.files.normal_path import normal_path
from evalstore.operations.push import count_kinds
from evalstore.planning.open_project import open_store
from evalstore.sharing.differences import count_by_table, find_missing
from evalstore.sharing.merge import merge_records
from evalstore.sharing.progress import CopyListener
from evalstore.store.unchanged import open_unchanged

if TYPE_CHECKING:
    from pathlib import Path

    from evalstore.planning.options import Location


@dataclass(frozen=True, slots=True)
class MergeReport:
    """What was merged, or would be."""

    store: str
    """The other store."""
    records: Mapping[str, int]
    """How many runs, answers, judgements and versions."""
    dry_run: bool = field(default=False, metadata={"json_name": "dryRun"})


def merge(
    location: Location,
    other: Path,
    *,
    dry_run: bool = False,
    listener: CopyListener | None = None,
) -> MergeReport:
    """Copy all rows of another store that the store does not have; the other is never changed.

    Each row is checked before it is stored. Raises `EvalstoreError`, and then the rows that were
    stored until then stay.
    """
    path = normal_path(location.directory, other)
    with open_store(location, create=not dry_run) as store:
        if path.exists() and path.samefile(store.path):
            raise EvalstoreError(
                f"'{other}' is the store of this workspace", hint="name the other store"
            )
        with open_unchanged(path) as source:
            with source.snapshot_ids() as theirs, store.snapshot_ids() as ours:
                missing = find_missing(theirs, ours)
            if not dry_run:
                merge_records(source, store, missing, listener or CopyListener(), str(other))
    return MergeReport(str(other), count_kinds(count_by_table(missing)), dry_run=dry_run)
