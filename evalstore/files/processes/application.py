"""An application that can be a model: a Python function or a program, with its files.

The user trusts an application as a whole: what is started, the bytes of its files, and the
names of the environment variables that it gets. All of that is in `Application.digest`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field

PYTHON, COMMAND = "python", "command"
APPLICATIONS = (PYTHON, COMMAND)
"""The kinds of providers that are applications."""
_MARK = b"\0evalstore application\0"
"""The start of the hashed text, so that its hash differs from that of any file with Python code."""


@dataclass(frozen=True, slots=True)
class Application:
    """The program or function of a model, as it was read from the files of a workspace."""

    kind: str
    """One of `APPLICATIONS`."""
    code: str
    """The file and the function, as in `apps/bot.py:answer`, or the command line."""
    arguments: tuple[str, ...]
    """The path and the name of the function, or the words of the command line."""
    files: Mapping[str, bytes] = field(repr=False)
    """The contents of the files by their paths relative to the workspace."""
    variables: tuple[str, ...] = ()
    """The names of the environment variables that it gets, sorted."""
    hashes: Mapping[str, str] = field(init=False, repr=False)
    """The SHA-256 of each file, by path."""

    def __post_init__(self) -> None:
        """Compute the hashes of the files."""
        hashes = {
            path: hashlib.sha256(data).hexdigest() for path, data in sorted(self.files.items())
        }
        object.__setattr__(self, "hashes", hashes)

    @property
    def digest(self) -> str:
        """Return the SHA-256 of everything that a user trusts; identifies the application."""
        trusted = {
            "kind": self.kind,
            "arguments": list(self.arguments),
            "files": dict(self.hashes),
            "variables": list(self.variables),
        }
        text = json.dumps(trusted, sort_keys=True, ensure_ascii=True)
        return hashlib.sha256(_MARK + text.encode()).hexdigest()

    @property
    def size(self) -> int:
        """Return the bytes of all files."""
        return sum(map(len, self.files.values()))
