"""Lists of this user, such as that of trusted files: JSON lines that only the user can write.

They are in the user's configuration, never in a workspace. The module imports nothing slow.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TypeVar

from evalstore.core.errors import EvalstoreError
from evalstore.files.atomic_write import write_whole

VARIABLE = "EVALSTORE_TRUST_FILE"
T = TypeVar("T")


def default_place() -> Path:
    """Return the path of the user's list of trusted files; other lists are beside it."""
    if named := os.environ.get(VARIABLE):
        return Path(named)
    state = os.environ.get("XDG_STATE_HOME", "")
    # The XDG specification requires that relative paths are ignored.
    base = Path(state) if os.path.isabs(state) else Path.home() / ".local" / "state"  # noqa: PTH117
    return base / "evalstore" / "trusted"


def write_list(path: Path, name: str, entries: Iterable[Mapping[str, object]]) -> None:
    """Write a list of this user atomically, readable and writable only by the user.

    `name` is the name of the list in messages. Raises `EvalstoreError`.
    """
    lines = [json.dumps(entry, ensure_ascii=False) for entry in entries]
    # A path that is not UTF-8 has surrogates; JSON writes them as escapes.
    data = "".join(f"{line}\n" for line in lines).encode(errors="backslashreplace")
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_whole(path, data, mode=0o600)
    except OSError as error:
        raise EvalstoreError(
            f"the list of {name} '{path}' cannot be written: {error.strerror}",
            hint=f"name another place in {VARIABLE}",
        ) from error


def read_user_list(path: Path, name: str, entry: Callable[[Mapping[str, object]], T]) -> list[T]:
    """Read the entries of a list of this user; empty if the file does not exist.

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
