"""The command `remote`: the places where results are shared."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path

from evalstore.core.clock import iso
from evalstore.core.errors import USAGE, EvalstoreError, WorkspaceError, hide_passwords
from evalstore.exchange.sync.open_remote import (
    OpenDatabase,
    OpenRemote,
    open_files_or_database,
    open_remote,
)
from evalstore.exchange.sync.push import (
    ChosenRows,
    choose_rows,
    count_excluded_runs,
    count_kinds,
    find_missing_rows,
)
from evalstore.planning.first_pushes import note_excluded_tags, read_excluded_tags
from evalstore.planning.open_project import open_workspace
from evalstore.planning.options import Location
from evalstore.remotes import layout
from evalstore.remotes.collect_garbage import Collected, collect_garbage
from evalstore.remotes.index_cache import absolute_address
from evalstore.remotes.layout import INDEXES, require_remote
from evalstore.store.records import (
    COPIED_TABLES,
    CopyListener,
    count_by_table,
    find_missing,
)
from evalstore.store.sqlite.driver import inspect_database
from evalstore.workspace.settings.remote_names import (
    is_database,
    is_folder,
    is_remote_name,
    path_of,
)
from evalstore.workspace.settings.remotes import find_remote, read_database, write_remote
from evalstore.workspace.settings.settings import AGE_HINT, read_age
from evalstore.workspace.trust import WorkspaceBoundary


@dataclass(frozen=True, slots=True)
class Remote:
    """A remote of the settings."""

    name: str
    address: str


@dataclass(frozen=True, slots=True)
class RemotePush:
    """A push that the remote has."""

    created: str
    """ISO 8601, by the clock of the writer."""
    writer: str
    records: int
    """How many rows no earlier push has brought; of one that is left out, all of its rows."""
    left_out: str | None = None
    """Why nothing of it is pulled: `unsigned` or `untrusted`; else None."""


@dataclass(frozen=True, slots=True)
class RemoteReport:
    """What a remote has, and how it differs from the store."""

    name: str
    address: str
    records: Mapping[str, int]
    """How many runs, answers, judgements and versions the remote has."""
    size: int
    """Bytes of its packs and indexes, as a push and a pull count them; of a database, of its
    tables with their indexes."""
    to_pull: Mapping[str, int]
    to_push: Mapping[str, int]
    """Without failed calls."""
    pushes: Sequence[RemotePush]
    """Oldest first; a database does not know them."""
    uncounted: str | None = None
    """Why `toPush` also counts what excluded tags keep here; None if it does not."""
    excluded_runs: int = 0
    """How many runs a push leaves here that the remote lacks: with tests with an excluded tag, or
    earlier versions of tests."""
    last_excluded_tags: Sequence[str] = field(
        default=(), metadata={"json_name": "lastExcludedTags", "json_optional": True}
    )
    """The tags that the last push from here excluded with an option, which `toPush` does not."""


def list_remotes(location: Location) -> list[Remote]:
    """Return the remotes of the settings."""
    remotes = open_workspace(location).settings.remotes
    return [Remote(name, hide_passwords(remote.address)) for name, remote in remotes.items()]


def add_remote(location: Location, name: str, address: str) -> Remote:
    """Add a remote to the settings; the workspace may use its place from then on.

    A relative address is one of the current folder, and is written relative to the workspace.
    Raises `EvalstoreError`.
    """
    workspace = open_workspace(location)
    if not is_remote_name(name):
        raise EvalstoreError(
            f"'{name}' cannot be the name of a remote",
            hint="it is made of letters, digits, '.', '_' and '-', such as 'origin'",
        )
    known = workspace.settings.remotes.get(name)
    if known is not None:
        raise EvalstoreError(
            f"there is a remote '{name}' already: {known.address}",
            hint=f"'evalstore remote remove {name}' removes it from the settings",
        )
    absolute = typed_address(location, address)
    allow_address(location, workspace.root, name, absolute)
    if not is_folder(address):
        address = absolute
    else:
        address = path_of(address)
        if not Path(address).expanduser().is_absolute():
            address = os.path.relpath(absolute, workspace.root).replace(os.sep, "/")
    write_remote(workspace, name, address)
    return Remote(name, address)


def typed_address(location: Location, address: str) -> str:
    """Return an address that was typed in the current folder; raises `EvalstoreError`."""
    if is_folder(address) and not path_of(address).strip():
        raise EvalstoreError("the address is empty", hint="name a folder, as in ../team")
    return absolute_address(location.directory, address)


def allow_address(location: Location, root: Path, name: str, address: str) -> None:
    """Let a workspace use an absolute address from then on; raises `EvalstoreError`.

    Who types the address allows it; a file of settings alone does not.
    """
    boundary = WorkspaceBoundary(root, allow_all=True, tell=location.warn)
    if is_folder(address):
        boundary.require(Path(address), f"the remote '{name}'")
    else:
        boundary.require_address(address, f"the remote '{name}'", whole=is_database(address))


def remove_remote(location: Location, name: str) -> Remote:
    """Remove a remote from the settings; what it has stays. Raises `EvalstoreError`."""
    workspace = open_workspace(location)
    name, remote = find_remote(workspace, name)
    write_remote(workspace, name, None)
    note_excluded_tags(workspace, name, ())
    return Remote(name, hide_passwords(remote.address))


def show_remote(location: Location, name: str | None) -> RemoteReport:
    """Return what a remote has; raises `EvalstoreError`."""
    with open_files_or_database(location, name) as opened:
        if isinstance(opened, OpenRemote):
            require_remote(opened.files)
            opened.cache.refresh(opened.files)
        with opened.ids() as theirs, opened.store.snapshot_ids() as ours:
            to_pull = find_missing(theirs, ours)
            counts = {table: sum(1 for _ in theirs.iterate_ids(table)) for table in COPIED_TABLES}
        chosen, uncounted = _choose_readable(location, opened)
        to_push = find_missing_rows(opened, chosen)
        noted = read_excluded_tags(open_workspace(location), opened.name)
        pushes: list[RemotePush] = []
        if isinstance(opened, OpenRemote):
            counting = opened.cache.list_pushes()
            names = {push.name for push in counting}
            size = opened.cache.count_bytes()
            size += sum(file.size for file in opened.files.iterate(INDEXES) if file.name in names)
            every = sorted([*counting, *opened.cache.list_refused()], key=attrgetter("created"))
            pushes += (
                RemotePush(iso(it.created), it.writer, it.records, it.reason) for it in every
            )
        else:
            size = inspect_database(read_database(opened.address)).size or 0
        return RemoteReport(
            opened.name,
            opened.address,
            count_kinds(counts),
            size,
            count_kinds(count_by_table(to_pull)),
            count_kinds(count_by_table(to_push)),
            pushes,
            uncounted,
            count_excluded_runs(opened, chosen),
            [tag for tag in noted if tag not in opened.exclude_tags],
        )


def _choose_readable(
    location: Location, opened: OpenRemote | OpenDatabase
) -> tuple[ChosenRows, str | None]:
    """Return the rows that a push copies; all, and why, if the tests do not tell."""
    try:
        return choose_rows(location, opened), None
    except WorkspaceError:
        return ChosenRows(), "the tests have errors"
    except EvalstoreError as error:
        if error.exit_code != USAGE:
            raise
        return ChosenRows(), str(error)


def read_remote(location: Location, name: str) -> None:
    """Read which results a remote has; raises `EvalstoreError`."""
    with open_remote(location, name, create=True) as opened:
        require_remote(opened.files)
        opened.cache.refresh(opened.files)


# --- the command `remote gc`


GRACE, LEAST_GRACE = "14d", "1d"
"""How long unneeded files are kept: longer than any push or pull takes. The minimum is that of
packs which no index lists yet."""
_SECOND = 1_000_000


@dataclass(frozen=True, slots=True)
class GarbageReport:
    """What a clean-up has done, or would do."""

    remote: str
    address: str
    grace: str
    """How long files stay that are no longer needed."""
    dry_run: bool
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

    `grace` is a text such as `30d`; None: `GRACE`. One below `LEAST_GRACE` counts as that, as a
    push may use packs of the last hours. All rows stay. Raises `EvalstoreError`; the next clean-up
    completes what this one has begun.
    """
    grace = GRACE if grace is None else grace
    seconds = read_age(grace)
    if seconds is None:
        raise EvalstoreError(f"'--grace {grace}' is not valid", hint=AGE_HINT)
    if seconds < layout.GRACE:
        grace, seconds = LEAST_GRACE, layout.GRACE
    with open_remote(location, remote, to_push=True) as opened:
        collected = collect_garbage(
            opened.files,
            opened.cache,
            grace=int(seconds * _SECOND),
            sign=opened.sign,
            listener=listener or CopyListener(),
            dry_run=dry_run,
        )
        return GarbageReport(opened.name, opened.address, grace.strip(), dry_run, collected)
