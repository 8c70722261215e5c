"""`status` from memory: the last answer stands while nothing it was made from has moved.

A `status` that finds nothing to do leaves behind what it saw: the stamps of the settings, of
every file of the workspace, of every place where a mentioned file was looked for, and of the
store. While all of them are what they were, the answer is the same, and neither the files nor
the store are opened; with `maxAge` it stands until the first answer becomes too old. The
memory lives beside the index, belongs to this machine, and losing it loses nothing.
"""

# Paths are texts here: thousands of files are looked at when nothing has changed.
# ruff: noqa: PTH116, PTH118, PTH120

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from typing import TYPE_CHECKING

from evalstore import __version__
from evalstore.errors import EvalstoreError
from evalstore.index import GRAIN, SUFFIXES, Seen, scan, stamp
from evalstore.operations.orders import Wanted
from evalstore.operations.summary import Status
from evalstore.operations.times import now

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from evalstore.operations.orders import Where
    from evalstore.workspace import Workspace

_FORMAT = [2, __version__]
"""Raise the number when the answer comes from anything else, or is made in another way."""
_FILE = "quiet.json"
_PROMPTS = os.path.join(os.path.dirname(os.path.dirname(__file__)), "prompts")


def status(where: Where, wanted: Wanted) -> Status:
    """What a run would do, and what changed; no model is called."""
    if wanted == Wanted() and (found := _recall(where)):
        return found
    from evalstore.operations import status as operation

    return operation.status(where, wanted)


def _recall(where: Where) -> Status | None:
    """The remembered answer, when it still stands."""
    for root in (where.directory, *where.directory.parents):
        if (root / "evalstore.yaml").is_file():
            break
    else:
        return None
    try:
        memory = json.loads((root / ".evalstore" / _FILE).read_bytes())
        if memory["format"] != _FORMAT or memory["asked"] != _asked(root, where):
            return None
        digest = _Digest()
        look(digest, memory["root"], memory["config"], memory["folders"], memory["store"])
        for name in memory["mentioned"]:
            digest.add([see_mentioned(name)])
        if memory["digest"] != digest.hexdigest():
            return None
        found = Status(items=[], ask=0, record=0, judge=0, skipped=[], **memory["status"])
        return found if now() < found.stands_until else None
    except (OSError, ValueError, KeyError, TypeError, EvalstoreError):
        return None


def _asked(root: Path, where: Where) -> list[str | None]:
    """What of the command line decides which files and which store are meant."""
    config = None if where.config is None else str(where.config)
    return [str(root), config, where.store, str(where.directory) if where.store else None]


class _Digest:
    """Of names and stamps, in the order in which they come."""

    def __init__(self) -> None:
        self._hash = hashlib.blake2b(digest_size=16)

    def add(self, seen: Sequence[Seen]) -> None:
        """Take these in."""
        self._hash.update(json.dumps(seen).encode())

    def hexdigest(self) -> str:
        """32 hexadecimal digits."""
        return self._hash.hexdigest()


class _Newest(_Digest):
    """The same, with the newest of all times in nanoseconds."""

    newest = 0

    def add(self, seen: Sequence[Seen]) -> None:
        """Take these in."""
        for _, _, modified, changed, _ in seen:
            self.newest = max(self.newest, modified, changed)
        super().add(seen)


def look(digest: _Digest, root: str, config: str, folders: Mapping[str, str], store: str) -> None:
    """Add the stamps of the settings, the files of the workspace and the store as they are now."""
    real = os.path.realpath(store)
    digest.add([see(name) for name in (config, store, real, f"{real}-wal", f"{real}-journal")])
    for kind, suffixes in {"": (".md",), **SUFFIXES}.items():
        folder = os.path.join(root, folders[kind]) if kind else _PROMPTS
        for under, files in scan(folder, f"{folder}/", suffixes):
            digest.add([(under, 0, 0, 0, 0), *files])


def see(name: str) -> Seen:
    """A path with the stamp of what is there; all zero when nothing is."""
    try:
        return (name, *stamp(os.stat(name)))
    except (OSError, ValueError):
        return (name, 0, 0, 0, 0)


def see_mentioned(name: str) -> Seen:
    """Where a path leads to, with the stamp of what is there."""
    return see(os.path.realpath(name))


class Memory:
    """Takes note of everything before it is read, and keeps it when the answer is `nothing`."""

    def __init__(
        self, where: Where, wanted: Wanted, workspace: Workspace, store: Path, began: int
    ) -> None:
        """`began` is the time (nanoseconds) before the settings were read."""
        self._wanted = wanted
        self._began = began
        self._path = workspace.private / _FILE
        self._memory = {
            "format": _FORMAT,
            "asked": _asked(workspace.root, where),
            "root": str(workspace.root),
            "config": str(workspace.config),
            "folders": workspace.settings.paths,
            "store": str(store),
        }
        self._digest = _Newest()
        try:
            look(
                self._digest,
                str(workspace.root),
                str(workspace.config),
                workspace.settings.paths,
                str(store),
            )
        except EvalstoreError:
            self._digest.newest = began  # the reading will say what is wrong

    def keep(self, found: Status, mentioned: Mapping[str, Seen]) -> None:
        """Remember an answer that says that there is nothing to do or to tell.

        Only when all stamps are settled: what is younger may change without a trace.
        """
        if (
            self._wanted != Wanted()
            or found.items
            or found.changes
            or found.skipped
            or found.warnings
            or found.untrusted
        ):
            return
        digest = self._digest
        for _, seen in sorted(mentioned.items()):
            digest.add([seen])
        if digest.newest + GRAIN >= self._began:
            return
        memory = self._memory | {
            "mentioned": sorted(mentioned),
            "digest": digest.hexdigest(),
            "status": {
                "reuse": found.reuse,
                "cost": found.cost,
                "models": found.models,
                "cells": found.cells,
                "last_run": found.last_run,
                "last_started": found.last_started,
                "stands_until": found.stands_until,
            },
        }
        temporary = self._path.with_suffix(f".{os.getpid()}.tmp")
        try:
            temporary.write_text(json.dumps(memory), encoding="utf-8")
            temporary.replace(self._path)
        except OSError:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
