"""Makes names of files from texts of any kind, such as the ids of models."""

from __future__ import annotations

import re

_UNUSUAL = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST = 100


class FileNames:
    """The names of files in one folder; no two differ only in case."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def make(self, text: str, suffix: str = "") -> str:
        """Return a name for a text that no file has yet; it is neither hidden nor a path."""
        stem = _UNUSUAL.sub("-", text)[:_LONGEST].strip(".-") or "unnamed"
        name, number = stem, 1
        while name.casefold() in self._taken:
            number += 1
            name = f"{stem}-{number}"
        self._taken.add(name.casefold())
        return name + suffix
