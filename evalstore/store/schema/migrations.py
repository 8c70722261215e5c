"""Migrates the tables of a store to the version of this program.

To open a current store, one number is compared; neither SQLAlchemy nor alembic is imported. An
older store is copied first, then migrated; a newer one is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalstore.core.errors import StoreError

if TYPE_CHECKING:
    from sqlalchemy import Connection

HEAD = "0009"
"""The newest migration; a test compares it with the folder of migrations."""
KNOWN = ("0001", "0002", "0003", "0004", "0005", "0006", "0007", "0008", "0009")
"""All migrations of this program, oldest first."""


def migrations() -> Path:
    """Return the folder of migrations: beside this package when installed, else in the checkout."""
    package = Path(__file__).parents[2]
    installed = package / "migrations"
    return installed if installed.is_dir() else package.parent / "migrations"


@contextmanager
def joined(
    dialect: str, raw: Any, error_class: type[Exception], begin: str | None = None
) -> Iterator[Connection]:
    """Return a transaction of SQLAlchemy on a connection of a driver.

    It begins with the statement `begin`, or as the driver does. Errors of the database are raised
    as those of the driver. An interrupt closes a connection of sqlite3.
    """
    import logging

    from sqlalchemy import create_engine, event
    from sqlalchemy.exc import SQLAlchemyError
    from sqlalchemy.pool import StaticPool

    # SQLAlchemy logs an interrupt of a rollback with a traceback, and raises it as well.
    logging.getLogger("sqlalchemy").addHandler(logging.NullHandler())
    engine = create_engine(dialect, creator=lambda: raw, poolclass=StaticPool)
    if begin:

        @event.listens_for(engine, "begin")
        def _begin(connection: Connection) -> None:
            connection.exec_driver_sql(begin)

    try:
        with engine.begin() as connection:
            yield connection
    except SQLAlchemyError as error:
        cause = getattr(error, "orig", None)
        raise cause or error_class(str(error)) from error


def upgrade(connection: Connection, folder: Path | None = None, head: str | None = None) -> None:
    """Run the missing migrations in the caller's transaction."""
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(folder or migrations()).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, head or HEAD)


def refuse_newer(version: str, path: str) -> None:
    """Raise `StoreError` when a newer version of evalstore has written the store."""
    if version not in KNOWN:
        raise StoreError(
            f"the store '{path}' is newer than this program (version {version}, not {HEAD})",
            hint="upgrade evalstore, or name another store with --store",
        )


def refuse_migrated(version: str | None, opened: str | None, path: str) -> None:
    """Raise `StoreError` when the store is not as it was when it was opened."""
    if version != opened:
        raise StoreError(
            f"the store '{path}' was migrated while it was open (its version is "
            f"{version or 'missing'} now, ours is {opened})",
            hint="upgrade evalstore and run again: what was answered before is stored",
        )


def refuse_replaced(path: str) -> None:
    """Raise `StoreError` for a store that has lost rows since it was opened."""
    raise StoreError(
        f"the store '{path}' has lost its newest rows: an earlier copy seems to have replaced it",
        hint="run again; 'evalstore fsck --repair' removes verdicts whose answers are gone",
    )


def refuse_older(version: str, path: str) -> None:
    """Raise `StoreError` when the store must not be migrated and is older than this program."""
    if version != HEAD:
        raise StoreError(
            f"the store '{path}' is older than this program (its version is {version}, ours is "
            f"{HEAD}), and may be in use",
            hint="runners need the version of evalstore that has begun the run; any other command "
            "with this store in --store brings it up to date",
        )
