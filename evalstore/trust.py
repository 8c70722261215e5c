"""Which Python files may run on this machine: by the hash of their bytes, and by nothing else.

The list belongs to the user and the machine, never to a workspace: no file of a workspace, not
even its `.env`, can say what is trusted or where the list is. The hash is SHA-256, because the
ids of the store are no protection from somebody who looks for two files with one id.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeVar

from evalstore.errors import EvalstoreError

VARIABLE = "EVALSTORE_TRUST_FILE"
DECIDING = frozenset({VARIABLE, "XDG_STATE_HOME", "HOME"})
"""Variables that decide where the list is: only the real environment may set them."""
_HEX = 64
_NAME = "trusted files"
T = TypeVar("T")


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


def default_place() -> Path:
    """Where the list of this user is."""
    if named := os.environ.get(VARIABLE):
        return Path(named)
    state = os.environ.get("XDG_STATE_HOME", "")
    # A relative path there counts for nothing, says the XDG specification.
    base = Path(state) if os.path.isabs(state) else Path.home() / ".local" / "state"  # noqa: PTH117
    return base / "evalstore" / "trusted"


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


def write_list(path: Path, name: str, entries: Iterable[Mapping[str, object]]) -> None:
    """Write a list of this user in one step, for nobody else to read or write.

    `name` says in messages what the list is of. Raises `EvalstoreError`.
    """
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    lines = [json.dumps(one, ensure_ascii=False) for one in entries]
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.writelines(f"{line}\n" for line in lines)
        temporary.replace(path)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise EvalstoreError(
            f"the list of {name} '{path}' cannot be written: {error.strerror}",
            hint=f"name another place in {VARIABLE}",
        ) from error


def read_list(path: Path, name: str, entry: Callable[[Mapping[str, object]], T]) -> list[T]:
    """The entries of a list of this user; none when there is no list.

    Raises `EvalstoreError` when it is damaged, and when others can write to it.
    """
    try:
        with path.open(encoding="utf-8", errors="surrogateescape") as file:
            if os.fstat(file.fileno()).st_mode & 0o022:
                raise EvalstoreError(
                    f"others can write to the list of {name} '{path}'",
                    hint=f"see whether it is right, then 'chmod go-w {path}'",
                )
            return [entry(json.loads(line)) for line in file if line.strip()]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise EvalstoreError(
            f"the list of {name} '{path}' cannot be read: {error.strerror}"
        ) from error
    except (ValueError, TypeError, KeyError) as error:
        raise EvalstoreError(
            f"the list of {name} '{path}' is damaged",
            hint="remove it, and allow again what it allowed",
        ) from error


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
