"""The index: what each file of the workspace was read as, so that unchanged files are not read again.

As git's index does, it trusts a file whose size, times and inode are what they were; a
file that was young when it was read is read again, because it may have changed within
the clock's grain. It lives beside the store, belongs to this machine, and losing it
loses nothing.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evalstore import __version__

_GRAIN = 1_000_000_000
"""Nanoseconds: a file younger than this when it was read may change without a trace."""
_FORMAT = [1, __version__]
"""Raise the number when files are read in another way."""

Stamp = tuple[int, int, int, int]
"""Size, modification time, change time (nanoseconds), inode."""


def stamp(status: os.stat_result) -> Stamp:
    """What identifies the state of a file without reading it."""
    return (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)


@dataclass(slots=True)
class Entry:
    """What one file was read as."""

    stamp: Stamp
    settled: bool
    """Whether the stamp alone shows that the file is unchanged."""
    digest: str
    """Of the bytes."""
    node: str
    """Test files: id of the leaf of the snapshot. Other files: their id."""
    depends: dict[str, Any] = field(default_factory=dict)
    """What the file referred to, with the ids it had."""


def is_settled(stamp: Stamp, read_at: int) -> bool:
    """Whether a file with this stamp, read at that time, cannot have changed since unseen."""
    return max(stamp[1], stamp[2]) + _GRAIN < read_at


@dataclass
class Index:
    """All entries, by path relative to the workspace."""

    files: dict[str, Entry] = field(default_factory=dict)
    schemas: set[str] = field(default_factory=set)
    """Ids of JSON Schemas that were found to be valid."""
    changed: bool = False

    def put(self, path: str, entry: Entry) -> None:
        """Remember an entry."""
        self.files[path] = entry
        self.changed = True

    def keep_only(self, paths: set[str]) -> None:
        """Forget all other files."""
        gone = self.files.keys() - paths
        for path in gone:
            del self.files[path]
        self.changed = self.changed or bool(gone)

    @classmethod
    def read(cls, path: Path) -> Index:
        """The index at a path; empty when there is none, or none that this version reads."""
        try:
            content = json.loads(path.read_bytes())
            if content["format"] != _FORMAT:
                return cls()
            depends = content["depends"]
            files = {
                name: Entry((a, b, c, d), settled, digest, node, depends[number])
                for name, (a, b, c, d, settled, digest, node, number) in content["files"].items()
            }
            return cls(files, set(content["schemas"]))
        except (OSError, ValueError, KeyError, TypeError, IndexError):
            return cls()

    def write(self, path: Path) -> None:
        """Write it in one step; a workspace that cannot be written to is left alone."""
        numbers: dict[str, int] = {}
        depends: list[dict[str, Any]] = []
        files = {}
        for name, entry in self.files.items():
            text = json.dumps(entry.depends, sort_keys=True) if entry.depends else ""
            if text not in numbers:
                numbers[text] = len(depends)
                depends.append(entry.depends)
            files[name] = [*entry.stamp, entry.settled, entry.digest, entry.node, numbers[text]]
        content = {
            "format": _FORMAT,
            "files": files,
            "depends": depends,
            "schemas": sorted(self.schemas),
        }
        temporary = path.with_suffix(f".{os.getpid()}.tmp")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            temporary.write_text(json.dumps(content, separators=(",", ":")), encoding="utf-8")
            temporary.replace(path)
        except OSError:
            temporary.unlink(missing_ok=True)
        self.changed = False
