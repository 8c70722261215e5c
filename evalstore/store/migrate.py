"""Brings a store's tables to the version of this program.

Ordinary opening compares one number and does not import alembic. An older store is
copied first, then migrated; a newer one is refused.
"""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection, text
from sqlalchemy.exc import DatabaseError

from evalstore.errors import StoreError

HEAD = "0003"
"""The newest migration; a test compares it with the folder."""
KNOWN = ("0001", "0002", "0003")
"""All migrations this program has, oldest first."""


def migrations() -> Path:
    """The folder of migrations: beside this package when installed, else in the checkout."""
    package = Path(__file__).parent.parent
    installed = package / "migrations"
    return installed if installed.is_dir() else package.parent / "migrations"


def version_of(connection: Connection) -> str | None:
    """The migration a store is at; None for one without tables."""
    try:
        return connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    except DatabaseError as error:
        if "no such table" in str(error.orig):
            return None
        raise


def upgrade(connection: Connection, folder: Path | None = None, head: str | None = None) -> None:
    """Run the missing migrations; the caller's transaction holds them all."""
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(folder or migrations()).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, head or HEAD)


def refuse_newer(found: str, path: str) -> None:
    """Raise when a store has been written by a newer program."""
    if found not in KNOWN:
        raise StoreError(
            f"the store '{path}' is newer than this program "
            f"(its version is {found}, ours is {HEAD})",
            hint="upgrade evalstore, or name another store with --store",
        )
