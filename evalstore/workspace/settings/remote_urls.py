"""The addresses of remotes that are URLs, such as `s3://bucket/path` or `sftp://host/path`."""

from __future__ import annotations

import re
import unicodedata
from typing import NamedTuple
from urllib.parse import quote, unquote_to_bytes

from evalstore.core.errors import EvalstoreError
from evalstore.store.location import DatabaseAddress, read_address

BUCKETS = ("s3", "gs", "az")
SFTP = ("sftp", "ssh")
SCHEMES = (*BUCKETS, *SFTP)
_PARTS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://([^/]*)(/.*)?\Z", re.DOTALL)
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,254}\Z")
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}\Z")
_HOST = re.compile(r"(?:[A-Za-z0-9_][A-Za-z0-9._-]{0,252}|\[[0-9A-Fa-f:.]{2,45}\])\Z")
_PORT = re.compile(r"[0-9]{1,5}\Z")
_LONGEST_PATH = 500
"""Bytes; a line of a batch for `sftp` has room for two paths."""


class RemoteUrl(NamedTuple):
    """The parts of a URL, each checked: none begins with `-` or has a control character."""

    scheme: str
    """One of `s3`, `gs`, `az` and `sftp`."""
    host: str
    """The bucket or the host; an IPv6 address is in brackets."""
    path: str
    """Without a slash at the end; empty, or beginning with one."""
    user: str = ""
    port: int | None = None

    @property
    def address(self) -> str:
        """Return the URL in its one form, by which it is allowed."""
        user = f"{self.user}@" if self.user else ""
        port = f":{self.port}" if self.port is not None else ""
        return f"{self.scheme}://{user}{self.host}{port}{quote(self.path, safe='/~')}"


def read_url(address: str) -> RemoteUrl:
    """Return the parts of the URL of a remote; raises `EvalstoreError`."""
    match = _PARTS.match(address)
    if match is None:
        raise _unusable(address, "it is not a URL")
    scheme, authority, path = match[1].lower(), match[2], match[3] or ""
    if scheme not in SCHEMES:
        raise _unusable(
            address,
            f"this version cannot use '{scheme}://'",
            hint="a remote is a folder, such as /mnt/team/results, or a URL with one of "
            f"{', '.join(f'{known}://' for known in (*SCHEMES, 'postgresql'))}",
        )
    user, at, host = authority.rpartition("@")
    if at and (":" in user or scheme in BUCKETS):
        # The address itself is not repeated: it may contain a password.
        raise EvalstoreError(
            "the address of a remote must not contain a password or a key",
            hint="keys of buckets are read from the environment, and those of SSH by ssh",
        )
    if "?" in path or "#" in path:
        raise _unusable(address, "write '?' as %3F and '#' as %23")
    path = _read_path(address, path)
    if scheme in BUCKETS:
        if not _BUCKET.match(host):
            raise _unusable(address, f"'{host}' cannot be the name of a bucket")
        return RemoteUrl(scheme, host, path)
    return _read_host(address, user if at else None, host, path)


def read_database(address: str, what: str = "the remote") -> DatabaseAddress:
    """Return the parts of the address of a database that is a remote.

    Raises `EvalstoreError`, also when it has a password: evalstore.yaml is for everybody.
    """
    found = read_address(address, what)
    if found.has_secrets:
        raise EvalstoreError(
            "the address of a remote must not contain a password or a key",
            hint="PGPASSWORD or ~/.pgpass has the password of a database",
        )
    return found


def _read_host(address: str, user: str | None, host: str, path: str) -> RemoteUrl:
    name, colon, port = host.rpartition(":") if not host.endswith("]") else (host, "", "")
    name = name if colon else host
    if not _HOST.match(name):
        raise _unusable(address, f"'{name}' cannot be the name of a host")
    if user is not None and not _USER.match(user):
        raise _unusable(address, f"'{user}' cannot be the name of a user")
    if colon and not (_PORT.match(port) and 0 < int(port) < 65_536):
        raise _unusable(address, f"'{port}' is not a port")
    if not path:
        raise _unusable(
            address, "it names no folder", hint="sftp://user@host/folder, or sftp://host/~/folder"
        )
    return RemoteUrl("sftp", name, path, user or "", int(port) if colon else None)


def _read_path(address: str, path: str) -> str:
    try:
        decoded = unquote_to_bytes(path).decode().rstrip("/")
    except UnicodeError as error:
        raise _unusable(address, "its path is not UTF-8") from error
    if any(unicodedata.category(character) == "Cc" for character in decoded):
        raise _unusable(address, "its path has a control character")
    if not {".", "..", ""}.isdisjoint(decoded.split("/")[1:]):
        raise _unusable(address, "its path has '.', '..' or nothing between two slashes")
    if len(decoded.encode()) > _LONGEST_PATH:
        raise _unusable(address, f"its path has more than {_LONGEST_PATH} bytes")
    return decoded


def _unusable(address: str, reason: str, *, hint: str | None = None) -> EvalstoreError:
    return EvalstoreError(f"'{address}' cannot be the address of a remote: {reason}", hint=hint)
