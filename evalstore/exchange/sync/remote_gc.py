"""The command `remote gc`: cleans up a remote."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from evalstore.core.errors import EvalstoreError
from evalstore.exchange.sync.open_remote import open_remote
from evalstore.remotes.collect_garbage import Collected, GarbageCollection
from evalstore.remotes.progress import CopyListener
from evalstore.workspace.settings.settings import AGE_HINT, read_age

if TYPE_CHECKING:
    from evalstore.planning.options import Location

GRACE = "14d"
"""How long files stay that are no longer needed: longer than any push or pull takes."""
_SECOND = 1_000_000


@dataclass(frozen=True, slots=True)
class GarbageReport:
    """What a clean-up has done, or would do."""

    remote: str
    address: str
    grace: str
    """How long files stay that are no longer needed."""
    dry_run: bool = field(metadata={"json_name": "dryRun"})
    collected: Collected = field(metadata={"json_inline": True})


def collect_remote_garbage(
    location: Location,
    remote: str | None = None,
    *,
    grace: str | None = None,
    dry_run: bool = False,
    listener: CopyListener | None = None,
) -> GarbageReport:
    """Compact the small pushes of a remote, and delete what has been unneeded for so long.

    `grace` is a text such as `30d`; None: `GRACE`. All rows stay. Raises `EvalstoreError`; the next
    clean-up completes what this one has begun.
    """
    grace = GRACE if grace is None else grace
    seconds = read_age(grace)
    if seconds is None:
        raise EvalstoreError(f"'--grace {grace}' cannot be read", hint=AGE_HINT)
    with open_remote(location, remote, to_push=True) as opened:
        collection = GarbageCollection(
            opened.files,
            opened.cache,
            grace=int(seconds * _SECOND),
            sign=opened.sign,
            listener=listener or CopyListener(),
            dry_run=dry_run,
        )
        return GarbageReport(opened.name, opened.address, grace.strip(), dry_run, collection.run())
