"""Records which files imports wrote, to distinguish them from files that were edited since.

The record is a file in the folder of the imported tests, so that it is kept and shared with them.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from evalstore import hashing
from evalstore.errors import EvalstoreError, FileProblem
from evalstore.files.access import LARGEST_SOURCE, read_file
from evalstore.files.atomic_write import write_whole

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

NAME = ".imported.json"
_FORMAT = 1


class ImportRecord:
    """The digests of the files that imports into one folder have written, by path."""

    def __init__(self, path: Path, digests: Mapping[str, str]) -> None:
        self._path = path
        self._digests = dict(digests)
        self._read = dict(digests)

    @classmethod
    def load(cls, folder: Path) -> ImportRecord:
        """Return the record of a folder; raises `EvalstoreError` when it cannot be read."""
        path = folder / NAME
        if not path.exists():
            return cls(path, {})
        try:
            document = json.loads(read_file(path, LARGEST_SOURCE))
            files = document["files"] if document["format"] == _FORMAT else None
        except (FileProblem, ValueError, TypeError, KeyError):
            files = None
        if not isinstance(files, dict):
            raise EvalstoreError(
                f"{path}: this is not a record of imports that can be read",
                hint="remove it: files that are there are then kept as if they were edited",
            )
        return cls(path, files)

    def is_untouched(self, place: str, path: Path) -> bool:
        """Return whether a file has not changed since an import wrote it; `place` is its path."""
        if place not in self._digests or path.is_symlink() or not path.is_file():
            return False
        try:
            return hashing.hash_bytes(read_file(path, LARGEST_SOURCE)) == self._digests[place]
        except FileProblem:
            return False

    def places(self) -> frozenset[str]:
        """Return the paths of the files in the record."""
        return frozenset(self._digests)

    def note(self, place: str, content: bytes) -> None:
        """Record the content that a file is written with."""
        self._digests[place] = hashing.hash_bytes(content)

    def take_back(self, place: str) -> None:
        """Restore the previous record of a file that was restored."""
        if place in self._read:
            self._digests[place] = self._read[place]
        else:
            self._digests.pop(place, None)

    def save(self) -> None:
        """Write the record if it has changed; raises `OSError`."""
        if self._digests == self._read:
            return
        document = {"format": _FORMAT, "files": dict(sorted(self._digests.items()))}
        self._path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(
            self._path, (json.dumps(document, indent=1, ensure_ascii=False) + "\n").encode()
        )
