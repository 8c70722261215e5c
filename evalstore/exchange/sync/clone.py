"""The command `clone`: a new workspace with everything that a remote has."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from evalstore.core.errors import EvalstoreError
from evalstore.core.values import Json
from evalstore.exchange.init import init
from evalstore.exchange.sync.open_remote import OpenRemote, open_typed, open_typed_database
from evalstore.exchange.sync.pull import PullReport, pull, pull_missing
from evalstore.exchange.sync.remotes import allow_address, typed_address
from evalstore.files.atomic_write import temporary_folder
from evalstore.files.json_output import fields_to_json
from evalstore.planning.open_project import open_store, open_workspace, warn_outside
from evalstore.planning.options import Location
from evalstore.remotes.differences import CopyListener
from evalstore.remotes.index_cache import IndexCache, cache_path
from evalstore.remotes.places.layout import require_remote
from evalstore.workspace.settings.remote_names import (
    DEFAULT_REMOTE,
    is_database,
    is_folder,
    path_of,
)
from evalstore.workspace.settings.remote_urls import read_database
from evalstore.workspace.settings.remotes import write_remote


def _describe(report: PullReport) -> dict[str, Json]:
    """Return the members of a pull that a clone has, too."""
    document = fields_to_json(report)
    return {name: document[name] for name in document if name not in ("dryRun", "leftOut")}


@dataclass(frozen=True, slots=True)
class CloneReport:
    """The workspace that was made, and what was pulled into it."""

    workspace: str
    """Its folder, as it was given or chosen."""
    pulled: PullReport = field(metadata={"json_as": _describe, "json_inline": True})


def clone(
    location: Location,
    address: str,
    directory: Path | None = None,
    *,
    listener: CopyListener | None = None,
) -> CloneReport:
    """Make a workspace without tests, and copy all rows of a remote or a bundle into its store.

    `directory` is a folder that does not exist yet, is empty or is a clone of the same address
    (default: one with the last name of the address, without the suffix of a file, or that of the
    database). A bundle becomes no remote. Warns of variables in the `.env` of the current folder
    that have no effect. Raises `EvalstoreError`, and then no folder is created.
    """
    address = typed_address(location, address)
    bundle = Path(path_of(address)) if is_folder(address) else None
    if bundle and not bundle.is_file():
        bundle = None
    database = read_database(address) if is_database(address) else None
    if directory is None:
        name = database.options.get("dbname", "") if database else Path(address).name
        directory = Path((bundle.stem if bundle else Path(name).name) or "results")
    target = location.directory / directory
    is_used = any(target.iterdir()) if target.is_dir() else target.exists()
    is_new = not target.is_symlink() and not is_used
    if not is_new:
        _require_cloned(target, directory, address, bundle)
    warn_outside(location.directory, location.warn, is_database=database is not None)
    files = None if bundle or database else open_typed(address)
    if files:
        require_remote(files)

    def fill(folder: Path) -> PullReport:
        inside = Location(folder, warn=location.warn)
        if bundle:
            return pull(inside, str(bundle), listener=listener)
        with open_store(inside) as store:
            if files:
                cache = cache_path(open_workspace(inside), DEFAULT_REMOTE, files.address)
                with IndexCache.open(cache, files.address) as indexes:
                    opened = OpenRemote(DEFAULT_REMOTE, address, files, indexes, store)
                    return pull_missing(opened, dry_run=False, listener=listener)
            place = read_database(address)
            with open_typed_database(DEFAULT_REMOTE, place, store, location) as typed:
                return pull_missing(typed, dry_run=False, listener=listener)

    try:
        if is_new:
            with _made_parents(target), temporary_folder(target) as folder:
                _make(folder, None if bundle else address)
                report = fill(folder)
        else:
            report = fill(target)
        if not bundle:
            allow_address(location, target, DEFAULT_REMOTE, address)
    except OSError as error:
        raise EvalstoreError(
            f"the folder '{directory}' cannot be made: {error.strerror or error}"
        ) from error
    report.address = address
    return CloneReport(str(directory), report)


def _make(folder: Path, address: str | None) -> None:
    """Make a workspace without tests, with the address as its remote if there is one."""
    init(folder, bare=True)
    if address:
        write_remote(open_workspace(Location(folder)), DEFAULT_REMOTE, address)


def _require_cloned(target: Path, directory: Path, address: str, bundle: Path | None) -> None:
    """Raise `EvalstoreError` unless a folder is as a clone of the same address has made it.

    A clone that was killed may have been complete, and is repeated.
    """
    with TemporaryDirectory(prefix="evalstore-") as folder:
        made = Path(folder).resolve()
        _make(made, None if bundle else address)
        is_same = target.is_dir() and _read_made(target) == _read_made(made)
    if is_same and bundle:
        lacking = pull(Location(target), str(bundle), dry_run=True).records
        is_same = not any(lacking.values())
    if is_same:
        return
    same = (
        f"'evalstore pull {address}' gets"
        if bundle
        else f"'evalstore remote add origin {address}' and 'evalstore pull' get"
    )
    reason = "is not empty" if target.is_dir() else "is not a folder"
    raise EvalstoreError(
        f"'{directory}' exists already and {reason}",
        hint=f"name another folder; in a workspace, {same} the same results",
    )


def _read_made(folder: Path) -> dict[str, bytes | None]:
    """Return what is in a folder, with the contents of its files."""
    return {path.name: path.read_bytes() if path.is_file() else None for path in folder.iterdir()}


@contextmanager
def _made_parents(path: Path) -> Iterator[None]:
    """Make the missing folders above a path; they are removed again if the block fails."""
    missing = [parent for parent in path.parents if not parent.exists()]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield
    except BaseException:
        for parent in missing:
            with suppress(OSError):
                parent.rmdir()
        raise
