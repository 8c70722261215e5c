"""Where a store is: the path of a SQLite file, or the address of a PostgreSQL database."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlencode, urlsplit

from evalstore.core.errors import EvalstoreError

_URL = re.compile(
    r"\W*(?:[a-z][a-z0-9+.-]*://|postgres(?:ql)?(?:\+\w+)?(?::|//))|.*\bpassword\s*=",
    re.IGNORECASE | re.DOTALL,
)
"""A URL, or what was meant as one: none is taken for a path, which messages show."""
_SCHEMES = ("postgresql", "postgres")
_SCHEMA = "evalstore"
"""The schema of a store whose address names none."""
_SCHEMA_NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}")
_PRIVATE = (
    *("password", "sslpassword", "oauth_client_secret"),
    *("scram_client_key", "scram_server_key"),
)
"""Options of a connection that are never shown."""
_OPTIONS = frozenset(
    f"""
    application_name channel_binding connect_timeout dbname fallback_application_name gssdelegation
    gssencmode gsslib host hostaddr keepalives keepalives_count keepalives_idle keepalives_interval
    krbsrvname load_balance_hosts max_protocol_version min_protocol_version oauth_client_id
    oauth_issuer oauth_scope options passfile port require_auth requirepeer service servicefile
    ssl_max_protocol_version ssl_min_protocol_version sslcert sslcertmode sslcompression sslcrl
    sslcrldir sslkey sslmode sslnegotiation sslrootcert sslsni target_session_attrs
    tcp_user_timeout user {" ".join(_PRIVATE)}
    """.split()
)
"""The options of libpq that a store can have; another one may be a misspelt password."""
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

    @property
    def has_secrets(self) -> bool:
        """Return whether the address had a password."""
        return any(name in self.options for name in _PRIVATE)

    def with_secrets(self) -> str:
        """Return the address with the password that it had; never show it."""
        secrets = {name: self.options[name] for name in _PRIVATE if name in self.options}
        if not secrets:
            return self.shown
        return f"{self.shown}{'&' if '?' in self.shown else '?'}{urlencode(secrets)}"


StoreLocation = Path | DatabaseAddress


def is_url(text: str) -> bool:
    """Return whether a text has the form of a URL, and not of a path."""
    return bool(_URL.match(text))


def read_location(text: str) -> StoreLocation:
    """Return the path, or the parts of the address, of a store; raises `EvalstoreError`."""
    return read_address(text) if is_url(text) else Path(text)


def read_address(text: str, what: str = "the store") -> DatabaseAddress:
    """Return the parts of the address of a database.

    Raises `EvalstoreError`, whose message says `what` has the address, and has no part of it that
    could be a password.
    """
    try:
        return _read_address(text.strip())
    except _UnusableError as error:
        raise EvalstoreError(
            f"the address of {what} cannot be used: {error}",
            hint=f"write it as {_FORM}; PGPASSWORD or ~/.pgpass has the password",
        ) from None


class _UnusableError(Exception):
    """An address cannot be used, for a reason without any part that could be a password."""


def _read_address(text: str) -> DatabaseAddress:
    try:
        parts = urlsplit(text)
        port = parts.port
        query = dict(
            parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
        )
    except ValueError:
        raise _UnusableError("it cannot be read") from None
    if not parts.scheme:
        raise _UnusableError("it is not a URL")
    if parts.scheme.lower() not in _SCHEMES:
        raise EvalstoreError(
            f"the store '{parts.scheme}://…' is neither a file nor a database that evalstore knows",
            hint=f"name a SQLite file, or a PostgreSQL database: {_FORM}",
        )
    if not text.lower().startswith(tuple(f"{scheme}://" for scheme in _SCHEMES)):
        raise _UnusableError("it is not a URL")
    _refuse_unescaped(parts)
    schema = query.pop("schema", _SCHEMA)
    if not _SCHEMA_NAME.fullmatch(schema):
        raise _UnusableError(
            f"{schema!r:.80} is not the name of a schema, of a-z, 0-9 and _, and no digit first"
        )
    if unknown := query.keys() - _OPTIONS:
        raise _UnusableError(f"{min(unknown)!r:.80} is not an option of a connection to PostgreSQL")
    named = {
        "host": unquote(parts.hostname or ""),
        "port": str(port or ""),
        "user": unquote(parts.username or ""),
        "password": unquote(parts.password or ""),
        "dbname": unquote(parts.path.removeprefix("/")),
    }
    options = {**{name: value for name, value in named.items() if value}, **query}
    if any("\0" in value for value in options.values()):
        raise _UnusableError("it has a NUL character")
    return DatabaseAddress(_show(options, schema), options, schema)


def _refuse_unescaped(parts: SplitResult) -> None:
    """Raise `EvalstoreError` where a part of a password may have been read as something else."""
    if parts.fragment:
        raise _UnusableError("a '#' in a password is written as '%23'")
    if "@" in f"{parts.path}{parts.query}" or "?" in parts.query:
        raise _UnusableError("'/', '?' and '@' in a password are written as '%2F', '%3F' and '%40'")
    if "/" in parts.path[1:] or "=" in parts.path:
        raise _UnusableError("a '/' or '=' in the name of a database is written as '%2F' or '%3D'")


def _show(options: dict[str, str], schema: str) -> str:
    user, host, port = (options.get(name, "") for name in ("user", "host", "port"))
    beside = ("user", "host", "port", "dbname", *_PRIVATE)
    query = {name: value for name, value in options.items() if name not in beside}
    if host.startswith("/"):  # a folder with a socket
        query["host"], host = host, ""
    if schema != _SCHEMA:
        query["schema"] = schema
    place = f"[{host}]" if ":" in host else quote(host, safe=",")
    return "".join(
        (
            "postgresql://",
            f"{quote(user, safe='')}@" if user else "",
            place,
            f":{port}" if port else "",
            # Without a '/' in it, so that no address is below another one.
            f"/{quote(options['dbname'], safe='')}" if "dbname" in options else "",
            f"?{urlencode(query, safe='/')}" if query else "",
        )
    )
