"""The names and addresses of remotes."""

from __future__ import annotations

import re

from evalstore.store.location import is_url

DEFAULT_REMOTE = "origin"
BUNDLE = "bundle"
"""What reports have for a bundle in the place of the name of a remote."""
STORE = "store"
"""The same for another store."""
CACHES = "remotes"
"""The folder in `.evalstore` with copies of the indexes of remotes."""
REMOTE_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,49}"
_NAME = re.compile(REMOTE_NAME + r"\Z")
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")
_DATABASES = (None, "postgresql", "postgres")
"""The schemes of databases; texts without one may be misspelt addresses, with a password."""


def is_remote_name(name: str) -> bool:
    """Return whether a text can be the name of a remote."""
    return _NAME.match(name) is not None


def scheme_of(address: str) -> str | None:
    """Return the scheme of a URL such as `s3://bucket/path`; None for the path of a folder."""
    match = _URL.match(address)
    return match[1].lower() if match else None


def path_of(address: str) -> str:
    """Return the path of a folder from an address without a scheme, or with `file://`."""
    return address.partition("://")[2] if scheme_of(address) == "file" else address


def is_folder(address: str) -> bool:
    """Return whether an address is that of a folder."""
    return scheme_of(address) in (None, "file") and not is_database(address)


def is_database(address: str) -> bool:
    """Return whether an address is, or is meant as, that of a PostgreSQL database."""
    return scheme_of(address) in _DATABASES and is_url(address)
