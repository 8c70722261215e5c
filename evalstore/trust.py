"""Which Python files may run on this machine: by the hash of their bytes, and by nothing else.

The list belongs to the user and the machine, never to a workspace: no file of a workspace, not
even its `.env`, can say what is trusted or where the list is. The hash is SHA-256, because the
ids of the store are no protection from somebody who looks for two files with one id.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from evalstore.user_lists import VARIABLE, default_place, read_list, write_list

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["DECIDING", "TrustList", "Trusted", "default_place", "digest"]

DECIDING = frozenset({VARIABLE, "XDG_STATE_HOME", "HOME"})
"""Variables that decide where the list is: only the real environment may set them."""
_HEX = 64
_NAME = "trusted files"


@dataclass(frozen=True, slots=True)
class Trusted:
    """One file that may run."""

    sha256: str
    network: bool = False
    """Whether it may use the network when a check asks for it."""
    path: str = ""
    """Where it was when it was trusted; a note for people."""
    size: int = 0
    at: int = 0
    """Microseconds since 1970."""


def digest(data: bytes) -> str:
    """What a file is known by: the SHA-256 of its bytes."""
    return hashlib.sha256(data).hexdigest()


class TrustList:
    """The files that may run, by hash; read once."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._entries = _read(path)

    @property
    def entries(self) -> list[Trusted]:
        """All files, in the order in which they were trusted."""
        return list(self._entries.values())

    def find(self, sha256: str) -> Trusted | None:
        """A file of this hash."""
        return self._entries.get(sha256)

    def allows(self, sha256: str, *, network: bool) -> bool:
        """Whether a file may run, and with `network` whether it may run with one."""
        found = self._entries.get(sha256)
        return found is not None and (found.network or not network)

    def add(self, one: Trusted) -> None:
        """Trust a file; what was said of the same bytes before is forgotten."""
        self._entries.pop(one.sha256, None)
        self._entries[one.sha256] = one
        self._write()

    def remove(self, sha256: str) -> bool:
        """Trust a file no longer; whether it was trusted."""
        found = self._entries.pop(sha256, None)
        if found:
            self._write()
        return found is not None

    def _write(self) -> None:
        write_list(self.path, _NAME, [asdict(one) for one in self._entries.values()])


def _read(path: Path) -> dict[str, Trusted]:
    return {one.sha256: one for one in read_list(path, _NAME, _entry)}


def _entry(value: Mapping[str, object]) -> Trusted:
    sha256, network = value["sha256"], value.get("network", False)
    path, size, at = value.get("path", ""), value.get("size", 0), value.get("at", 0)
    if not (
        isinstance(sha256, str)
        and len(sha256) == _HEX
        and isinstance(network, bool)
        and isinstance(path, str)
        and isinstance(size, int)
        and isinstance(at, int)
    ):
        raise ValueError("an entry of another shape")
    return Trusted(sha256, network, path, size, at)
