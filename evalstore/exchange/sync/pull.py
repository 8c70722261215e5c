"""The command `pull`: copy from a remote, a bundle or another store what the store lacks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evalstore.exchange.sync.open_remote import OpenDatabase, OpenRemote, open_source
from evalstore.exchange.sync.push import count_kinds
from evalstore.planning.options import Location
from evalstore.remotes.differences import CopyListener, MissingIds, count_by_table, find_missing
from evalstore.remotes.index_cache import IndexCache
from evalstore.remotes.places.layout import require_remote
from evalstore.remotes.pull import Pulled, copy_records, pull_records


@dataclass(frozen=True, slots=True)
class LeftOut:
    """The pushes of a writer that do not count."""

    writer: str
    """As the pushes say themselves, or who has signed them; empty if it cannot be read."""
    pushes: int
    reason: str
    """`unsigned`: no allowed signer has signed them; `untrusted`: the writer is not trusted."""


@dataclass(slots=True)
class PullReport:
    """What was pulled, or would be."""

    remote: str
    address: str
    records: Mapping[str, int]
    """How many runs, answers, judgements and versions."""
    bytes_received: int = 0
    newer: int = 0
    """Rows of a newer program, which were left in the remote."""
    waiting: int = 0
    """Runs that were left in the remote, because it lacks rows that they refer to."""
    waiting_rows: int = 0
    """Other rows that were left there for the same reason."""
    missing_packs: int = 0
    """Packs that are not in the remote yet: a synchronised folder may have their index first."""
    missing_rows: int = 0
    """The rows in them, which the next pull copies."""
    dry_run: bool = False
    left_out: Sequence[LeftOut] = ()
    """Pushes that do not count, of which nothing is copied."""

    @property
    def store(self) -> str:
        """Return the path or the address of the other store, where one was read."""
        return self.address


def pull(
    location: Location,
    remote: str | None = None,
    *,
    dry_run: bool = False,
    listener: CopyListener | None = None,
) -> PullReport:
    """Copy all rows of a remote that the store does not have; each is checked before it is stored.

    In the place of its name, a path or an address names a bundle or another store. Raises
    `EvalstoreError`, and then the rows that were stored until then stay; the next pull goes on from
    there.
    """
    with open_source(location, remote, dry_run=dry_run) as opened:
        return pull_missing(opened, dry_run=dry_run, listener=listener)


def pull_missing(
    opened: OpenRemote | OpenDatabase, *, dry_run: bool, listener: CopyListener | None
) -> PullReport:
    """Copy all rows of an open remote, database or store that its store lacks.

    Raises `EvalstoreError`.
    """
    report = PullReport(opened.name, opened.address, {}, dry_run=dry_run)
    if isinstance(opened, OpenRemote):
        require_remote(opened.files)
        report.bytes_received = opened.cache.refresh(opened.files)
        report.left_out = count_left_out(opened.cache)
    with opened.ids() as theirs, opened.store.snapshot_ids() as ours:
        missing = find_missing(theirs, ours)
    report.records = count_kinds(count_by_table(missing))
    if dry_run or not missing:
        return report
    listener = listener or CopyListener()
    if isinstance(opened, OpenRemote):
        pulled = _copy(opened, missing, report, listener)
        report.newer = opened.cache.count_unknown()
    else:
        assert opened.database  # one without tables lacks all rows
        pulled = copy_records(opened.database, opened.store, missing, listener, opened.address)
        report.records = count_kinds(pulled.stored)
        report.bytes_received = pulled.bytes_received
    note_left(report, pulled)
    return report


def _copy(
    opened: OpenRemote, missing: MissingIds, report: PullReport, listener: CopyListener
) -> Pulled:
    """Copy rows, once more if somebody has replaced packs meanwhile; returns the last result."""
    pulled = pull_records(opened.store, opened.files, opened.cache, missing, listener)
    stored = Counter(pulled.stored)
    report.bytes_received += pulled.bytes_received
    received = opened.cache.refresh(opened.files) if pulled.missing_packs else 0
    if received:
        with opened.store.snapshot_ids() as ids:
            missing = find_missing(opened.cache, ids)
        pulled = pull_records(opened.store, opened.files, opened.cache, missing, listener)
        stored.update(pulled.stored)
        report.bytes_received += received + pulled.bytes_received
    report.records = count_kinds(stored)
    return pulled


def note_left(report: PullReport, pulled: Pulled) -> None:
    """Note in a report what was left in the remote."""
    report.waiting = pulled.waiting
    report.waiting_rows = pulled.left.total() - pulled.waiting
    report.missing_packs = pulled.missing_packs
    report.missing_rows = pulled.missing.total()


def count_left_out(cache: IndexCache) -> list[LeftOut]:
    """Return the pushes that do not count, by their writers and reasons."""
    counts = Counter((push.writer, str(push.reason)) for push in cache.list_refused())
    return [LeftOut(writer, count, reason) for (writer, reason), count in sorted(counts.items())]
