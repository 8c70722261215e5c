"""`status` from memory: the last answer stands while nothing it was made from has moved.

A `status` leaves behind what it saw: the stamps of the settings, of every file of the
workspace, of every place where a mentioned file was looked for, and of the store. While all of
them are what they were, the answer is the same, and neither the files nor the store are
opened; with `maxAge` it stands until the first answer becomes too old. What would be done is
remembered as numbers, without the list. The memory lives beside the index, belongs to this
machine, and losing it loses nothing.
"""

# Paths are texts here: thousands of files are looked at when nothing has changed.
# ruff: noqa: PTH116, PTH118, PTH120

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from evalstore import __version__
from evalstore.clock import now, today
from evalstore.errors import EvalstoreError
from evalstore.files.atomic_write import write_whole
from evalstore.operations.status_report import FileChange, Status
from evalstore.planning.options import SelectionOptions
from evalstore.workspace.allowed_paths import AllowedPaths, WorkspaceBoundary
from evalstore.workspace.index import GRAIN, SUFFIXES, Seen, read_cache, scan, stamp

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from evalstore.files.access import Boundary
    from evalstore.planning.options import Location
    from evalstore.workspace.folder import WorkspaceFolder

_FORMAT = [5, __version__]
"""Raise the number when the answer comes from anything else, or is made in another way."""
_FILE = "quiet.json"
_MOST_LISTED = 100
"""Changed files, and pairs that lack a capability, that are remembered."""
_REMEMBERED = (
    *("ask", "record", "judge", "reuse", "skipped", "cost", "guess", "models", "cells", "last_run"),
    *("last_started", "warnings", "left_asks", "left_judgements", "waiting", "stands_until"),
)
"""Parts of an answer that are kept as they are."""
_PROMPTS = os.path.join(os.path.dirname(os.path.dirname(__file__)), "prompts")


def recall(location: Location, *, whole: bool) -> Status | None:
    """The remembered answer, when it still stands."""
    for root in (location.directory, *location.directory.parents):
        if (root / "evalstore.yaml").is_file():
            break
    else:
        return None
    try:
        boundary = WorkspaceBoundary(root)
        memory = read_cache(root / ".evalstore" / _FILE, boundary)
        if memory["format"] != _FORMAT or memory["asked"] != _asked(root, location):
            return None
        if whole and not memory["whole"]:
            return None
        digest = _Digest()
        look(digest, boundary, root, memory["config"], memory["folders"], memory["store"])
        for name in memory["mentioned"]:
            digest.add([see_mentioned(name)])
        if memory["digest"] != digest.hexdigest():
            return None
        known = memory["status"]
        changes = [FileChange(**one) for one in known.pop("changes")]
        skipped = [(file, row, model, lacks) for file, row, model, lacks in known.pop("skipped")]
        found = Status(items=[], changes=changes, skipped=skipped, **known)
        return found if now() < found.stands_until else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, EvalstoreError):
        return None


def _asked(root: Path, location: Location) -> list[Any]:
    """What decides which files and which store are meant, and may be used; and the day."""
    config = None if location.config is None else str(location.config)
    folder = str(location.directory) if location.store else None
    allowed = AllowedPaths().of(os.path.realpath(root))
    return [str(root), config, location.store, folder, allowed, today(), list(location.overrides)]


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


def look(
    digest: _Digest,
    boundary: Boundary,
    root: Path,
    config: str,
    folders: Mapping[str, str],
    store: str,
) -> None:
    """Add the stamps of the settings, the files of the workspace and the store as they are now.

    Raises `EvalstoreError` for a folder that cannot be read, or that is outside.
    """
    real = os.path.realpath(store)
    digest.add([see(name) for name in (config, store, real, f"{real}-wal", f"{real}-journal")])
    for kind, suffixes in {"": (".md",), **SUFFIXES}.items():
        folder = os.path.join(root, folders[kind]) if kind else _PROMPTS
        if kind and not boundary.contains(os.path.realpath(folder)):
            raise EvalstoreError(f"{folder} is outside of the workspace")
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


class StatusCache:
    """Takes note of everything before it is read, and keeps it with the answer."""

    def __init__(
        self,
        location: Location,
        selection: SelectionOptions,
        workspace: WorkspaceFolder,
        store: Path,
        began: int,
    ) -> None:
        """`began` is the time (nanoseconds) before the settings were read."""
        self._wanted = selection
        self._began = began
        self._path = workspace.private / _FILE
        self._memory = {
            "format": _FORMAT,
            "asked": _asked(workspace.root, location),
            "config": str(workspace.config),
            "folders": workspace.settings.paths,
            "store": str(store),
        }
        self._digest = _Newest()
        try:
            look(
                self._digest,
                workspace.boundary,
                workspace.root,
                str(workspace.config),
                workspace.settings.paths,
                str(store),
            )
        except EvalstoreError:
            self._digest.newest = began  # the reading will say what is wrong

    def keep(self, found: Status, mentioned: Mapping[str, Seen], *, runs_code: bool) -> None:
        """Remember an answer.

        Only when all stamps are settled: what is younger may change without a trace. Nor when
        something is to be done and `runs_code`: which files are trusted is said elsewhere.
        """
        if (
            self._wanted != SelectionOptions()
            or found.untrusted
            or found.refused
            or (found.items and runs_code)
            or max(len(found.changes), len(found.skipped), len(found.warnings)) > _MOST_LISTED
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
            "whole": not found.items,
            "status": {
                "changes": [asdict(change) for change in found.changes],
                **{name: getattr(found, name) for name in _REMEMBERED},
            },
        }
        with suppress(OSError):
            write_whole(self._path, json.dumps(memory).encode(), durable=False)
