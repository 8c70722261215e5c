"""Where a store is: the path of a SQLite file, or the address of a PostgreSQL database."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from evalstore.errors import EvalstoreError

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_SCHEMES = ("postgresql", "postgres")
_SCHEMA = "evalstore"
"""The schema of a store whose address names none."""
_SCHEMA_NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}")
_PRIVATE = ("password", "sslpassword", "oauth_client_secret")
"""Options of a connection that are never shown."""
_FORM = "postgresql://USER@HOST/DATABASE"


@dataclass(frozen=True)
class DatabaseAddress:
    """The address of a store in PostgreSQL; as a text it has no password."""

    shown: str
    """The address without a password."""
    options: dict[str, str] = field(repr=False, hash=False)
    """The options of the connection, by the names of libpq."""
    schema: str = _SCHEMA

    def __str__(self) -> str:
        """Return the address without a password."""
        return self.shown


StoreLocation = Path | DatabaseAddress


def is_url(text: str) -> bool:
    """Return whether a text has the form of a URL, and not of a path."""
    return bool(_URL.match(text))


def read_location(text: str) -> StoreLocation:
    """Return the path, or the parts of the address, of a store; raises `EvalstoreError`."""
    return read_address(text) if is_url(text) else Path(text)


def read_address(text: str) -> DatabaseAddress:
    """Return the parts of the address of a database.

    Raises `EvalstoreError`, whose message has no part of the text that could be a password.
    """
    try:
        parts = urlsplit(text)
        port = parts.port
        query = dict(
            parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
        )
    except ValueError:
        raise _unusable(text.partition("://")[0], "it cannot be read") from None
    if parts.scheme.lower() not in _SCHEMES:
        raise EvalstoreError(
            f"the store '{parts.scheme}://…' is neither a file nor a database that evalstore knows",
            hint=f"name a SQLite file, or a PostgreSQL database: {_FORM}",
        )
    if parts.fragment:
        raise _unusable(parts.scheme, "a '#' in a password is written as '%23'")
    schema = query.pop("schema", _SCHEMA)
    if not _SCHEMA_NAME.fullmatch(schema):
        raise _unusable(parts.scheme, f"{schema!r:.80} is not the name of a schema")
    named = {
        "host": unquote(parts.hostname or ""),
        "port": str(port or ""),
        "user": unquote(parts.username or ""),
        "password": unquote(parts.password or ""),
        "dbname": unquote(parts.path.removeprefix("/")),
    }
    options = {**{name: value for name, value in named.items() if value}, **query}
    if any("\0" in value for value in options.values()):
        raise _unusable(parts.scheme, "it has a NUL character")
    return DatabaseAddress(_show(options, schema), options, schema)


def _show(options: dict[str, str], schema: str) -> str:
    user, host, port = (options.get(name, "") for name in ("user", "host", "port"))
    beside = ("user", "host", "port", "dbname", *_PRIVATE)
    query = {name: value for name, value in options.items() if name not in beside}
    if host.startswith("/"):  # a folder with a socket
        query["host"], host = host, ""
    if schema != _SCHEMA:
        query["schema"] = schema
    place = f"[{host}]" if ":" in host else quote(host)
    return "".join(
        (
            "postgresql://",
            f"{quote(user, safe='')}@" if user else "",
            place,
            f":{port}" if port else "",
            f"/{quote(options.get('dbname', ''))}",
            f"?{urlencode(query, safe='/')}" if query else "",
        )
    )


def _unusable(scheme: str, reason: str) -> EvalstoreError:
    return EvalstoreError(
        f"the address of the store ({scheme}://…) cannot be used: {reason}",
        hint=f"write it as {_FORM}; PGPASSWORD or ~/.pgpass has the password",
    )
