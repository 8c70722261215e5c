"""The user's permissions on this machine: Python files that may run, and keys for hosts.

A file is identified only by the hash of its bytes. The list is in the user's configuration: no
file of a workspace, not even its `.env`, can change it or its location. The hash is SHA-256,
because the ids of the store are not collision-resistant.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from evalstore.core.errors import EvalstoreError
from evalstore.files.atomic_write import default_place, read_user_list, write_list
from evalstore.providers.base_urls import covers, normalise_host

__all__ = ["Grant", "TrustList", "Trusted", "default_place", "digest", "read_allowed"]

ALLOWED_VARIABLES = "EVALSTORE_ALLOW_ENV"
"""Allows variables for hosts, as in `OPENAI_API_KEY=proxy.example.com,DESK_KEY=localhost`."""
_HEX = 64
_NAME = "trusted files"


@dataclass(frozen=True, slots=True)
class Trusted:
    """One file that may run."""

    sha256: str
    network: bool = False
    """Whether it may use the network when a check asks for it."""
    path: str = ""
    """The path when it was trusted, for display only."""
    size: int = 0
    at: int = 0
    """Microseconds since 1970."""
    application: bool = False
    """Whether this is an application: then the hash is `Application.digest`, the path that of the
    model file."""


@dataclass(frozen=True, slots=True)
class Grant:
    """A variable of the user's environment that may be sent to a host."""

    variable: str
    host: str
    """In the form of `base_urls.host_of`; without a port it means every port. For a litellm
    provider whose host is unknown: the name of the provider."""
    at: int = 0
    """Microseconds since 1970."""


def read_allowed(text: str) -> list[Grant]:
    """Read the grants of `EVALSTORE_ALLOW_ENV`; raises `EvalstoreError`."""
    grants: list[Grant] = []
    for part in filter(None, map(str.strip, text.split(","))):
        variable, equals, host = part.partition("=")
        known = normalise_host(host)
        if not equals or not variable.strip() or known is None:
            raise EvalstoreError(
                f"{ALLOWED_VARIABLES}: entry {len(grants) + 1} is not of the form NAME=HOST",
                hint=f"{ALLOWED_VARIABLES}=OPENAI_API_KEY=proxy.example.com,DESK_KEY=localhost",
            )
        grants.append(Grant(variable.strip(), known))
    return grants


def digest(data: bytes) -> str:
    """Hash the bytes of a file with SHA-256, which identifies it."""
    return hashlib.sha256(data).hexdigest()


class TrustList:
    """The files that may run, by hash, and the variables that may be sent; read once."""

    def __init__(self, path: Path) -> None:
        self.path = path
        entries = read_user_list(path, _NAME, _entry)
        self._entries = {entry.sha256: entry for entry in entries if isinstance(entry, Trusted)}
        self._grants = {
            (entry.variable, entry.host): entry for entry in entries if isinstance(entry, Grant)
        }

    @property
    def entries(self) -> list[Trusted]:
        """Return all files, in the order in which they were trusted."""
        return list(self._entries.values())

    def find(self, sha256: str) -> Trusted | None:
        """Find the trusted file with this hash; None if there is none."""
        return self._entries.get(sha256)

    def allows(self, sha256: str, *, network: bool) -> bool:
        """Return whether a file may run; with `network`, whether it may use the network."""
        entry = self._entries.get(sha256)
        return entry is not None and not entry.application and (entry.network or not network)

    def allows_application(self, digest: str) -> bool:
        """Return whether an application may run, with the network and with its variables."""
        entry = self._entries.get(digest)
        return entry is not None and entry.application

    def add(self, entry: Trusted) -> None:
        """Trust a file; replaces an earlier entry of the same bytes."""
        self._entries.pop(entry.sha256, None)
        self._entries[entry.sha256] = entry
        self._write()

    def remove(self, sha256: str) -> bool:
        """Remove a file from the list, and return whether it was trusted."""
        entry = self._entries.pop(sha256, None)
        if entry:
            self._write()
        return entry is not None

    @property
    def grants(self) -> list[Grant]:
        """Return all variables that may be sent, in the order in which they were allowed."""
        return list(self._grants.values())

    def allows_sending(self, variable: str, host: str) -> bool:
        """Return whether a variable of the environment may be sent to a host."""
        return any(grant.variable == variable and covers(grant.host, host) for grant in self.grants)

    def grant(self, grant: Grant) -> bool:
        """Allow a variable for a host, and return whether it is new."""
        is_new = (grant.variable, grant.host) not in self._grants
        if is_new:
            self._grants[grant.variable, grant.host] = grant
            self._write()
        return is_new

    def withdraw(self, variable: str, host: str) -> Grant | None:
        """Remove a variable of a host, and return the removed grant."""
        grant = self._grants.pop((variable, host), None)
        if grant:
            self._write()
        return grant

    def _write(self) -> None:
        entries: list[Trusted | Grant] = [*self._entries.values(), *self._grants.values()]
        write_list(self.path, _NAME, map(asdict, entries))


def _entry(value: Mapping[str, object]) -> Trusted | Grant:
    if "variable" in value:
        variable, host, at = value["variable"], value["host"], value.get("at", 0)
        if not (isinstance(variable, str) and isinstance(host, str) and isinstance(at, int)):
            raise ValueError("an entry with the wrong fields")
        return Grant(variable, host, at)
    sha256, network = value["sha256"], value.get("network", False)
    path, size, at = value.get("path", ""), value.get("size", 0), value.get("at", 0)
    application = value.get("application", False)
    if not (
        isinstance(sha256, str)
        and len(sha256) == _HEX
        and isinstance(network, bool)
        and isinstance(path, str)
        and isinstance(size, int)
        and isinstance(at, int)
        and isinstance(application, bool)
    ):
        raise ValueError("an entry with the wrong fields")
    return Trusted(sha256, network, path, size, at, application)
