"""Opens a remote that may be a database together with the store of the workspace.

What only a database needs is imported when one is opened, to keep other remotes quick.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from shlex import quote
from typing import TYPE_CHECKING

from evalstore.errors import EvalstoreError, RemoteError
from evalstore.operations.ignored_variables import warn_of_ignored_variables
from evalstore.operations.open_remote import OpenRemote, open_remote
from evalstore.planning.open_project import open_store, open_workspace
from evalstore.workspace.remote_names import is_database
from evalstore.workspace.remotes import find_remote, locate_database

if TYPE_CHECKING:
    from evalstore.planning.options import Location
    from evalstore.sharing.differences import IdSource
    from evalstore.store import Store
    from evalstore.store.location import DatabaseAddress
    from evalstore.workspace.settings import RemoteSettings


@dataclass(frozen=True, slots=True)
class OpenDatabase:
    """A database that is a remote, and the store of the workspace."""

    name: str
    place: DatabaseAddress
    database: Store | None
    """None where the tables are not made yet."""
    store: Store
    exclude_tags: Sequence[str] = ()
    """The results of cases with these tags are not pushed."""

    @property
    def address(self) -> str:
        """Return its address, without a password."""
        return str(self.place)

    def ids(self) -> AbstractContextManager[IdSource]:
        """Return the ids of the rows of the database as they are now."""
        if self.database is None:
            from evalstore.sharing.reachable import ReachedIds

            return nullcontext(ReachedIds({}))
        return self.database.snapshot_ids()


@contextmanager
def open_files_or_database(
    location: Location,
    name: str | None,
    *,
    create: bool = False,
    to_push: bool = False,
    may_lack: bool = False,
) -> Iterator[OpenRemote | OpenDatabase]:
    """Open a remote as `open_remote` does, or a database.

    With `may_lack`, the tables of the database may be missing. Raises `EvalstoreError`.
    """
    workspace = open_workspace(location)
    name, remote = find_remote(workspace, name)
    if not is_database(remote.address):
        with open_remote(location, name, create=create, to_push=to_push) as opened:
            yield opened
        return
    warn_of_ignored_variables(location, remote)
    address = locate_database(workspace, name, remote.address)
    _refuse_rules(name, remote)
    with open_store(location, create=create) as store:
        if store.path == str(address):
            raise EvalstoreError(
                f"the remote '{name}' is the store of this workspace",
                hint="there is nothing to copy: all who use the store have its rows",
            )
        with open_typed_database(
            name, address, store, location, exclude_tags=remote.exclude_tags, may_lack=may_lack
        ) as database:
            yield database


@contextmanager
def open_typed_database(
    name: str,
    address: DatabaseAddress,
    store: Store,
    location: Location,
    *,
    exclude_tags: Sequence[str] = (),
    may_lack: bool = False,
) -> Iterator[OpenDatabase]:
    """Open a database that may be used, to copy rows between it and a store.

    Raises `EvalstoreError`.
    """
    from evalstore.sharing.database_remote import open_database

    with ExitStack() as stack:
        try:
            database = stack.enter_context(open_database(address))
        except RemoteError:
            if not may_lack:
                raise
            database = None
        for extra in database.foreign if database else ():
            location.warn(
                f"{extra.words} in the remote '{address}'; "
                f"'evalstore fsck --store {quote(str(address))}' lists what is wrong"
            )
        yield OpenDatabase(name, address, database, store, exclude_tags)


def _refuse_rules(name: str, remote: RemoteSettings) -> None:
    """Raise `EvalstoreError` where only some pushes would count: rows of a database have none."""
    rules = {
        "sign": remote.sign,
        "allowedSigners": remote.allowed_signers,
        "trust": remote.trust,
    }
    if given := [f"'{key}'" for key, value in rules.items() if value]:
        raise EvalstoreError(
            f"the remote '{name}' is a database, where no push is signed and nobody is named, "
            f"so it cannot have {' and '.join(given)}",
            hint="share through a folder or a bucket where signatures are needed",
        )
