"""A cache of the last `status`, valid while none of its inputs has changed.

The cache contains the stamps of the settings, of all files of the workspace, of all paths where a
mentioned file was looked for, and of the store. While all of them are unchanged, neither the files
nor the store are opened; with `maxAge`, the cache expires with the first answer that becomes too
old. It contains the numbers of the plan, without the items. It is a file beside the index, for
this machine only, and can be deleted.
"""

# Paths are strings here, because the stamps of thousands of files are compared.
# ruff: noqa: PTH118

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalstore import __version__
from evalstore.comparison.version_diff import Difference
from evalstore.core.clock import now, today
from evalstore.core.errors import EvalstoreError, hide_passwords
from evalstore.files.atomic_write import write_whole
from evalstore.planning.options import SelectionOptions
from evalstore.planning.status.status_report import (
    FileChange,
    OtherReason,
    RemoteAnswers,
    RemoteJudgements,
    Status,
)
from evalstore.store.location import StoreLocation, is_url, read_location
from evalstore.store.schema.stamp import read_stamp
from evalstore.workspace.allowed_paths import AllowedPaths, WorkspaceBoundary
from evalstore.workspace.index import (
    GRAIN,
    SUFFIXES,
    Seen,
    read_cache,
    scan_files,
    see,
    see_mentioned,
)
from evalstore.workspace.settings.remote_names import CACHES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evalstore.files.access import Boundary
    from evalstore.planning.options import Location
    from evalstore.workspace.folder import WorkspaceFolder

_FORMAT = [23, __version__]
"""Increase the number when the inputs or the computation of the status change."""
_FILE = "quiet.json"
_MOST_LISTED = 100
"""The most changed files and skipped pairs that are cached."""
_REMEMBERED = (
    *("ask", "record", "judge", "reuse", "skipped", "cost", "guess", "models", "cells", "last_run"),
    *("last_started", "warnings", "left_asks", "left_judgements", "waiting", "stands_until"),
    *("may_judge_less", "by_checks", "known_cost", "unpriced", "is_simulated"),
    *("pending_models", "is_recorded_pending"),
    *(
        "broke",
        "fixed",
        "undecided",
        "labels",
        "has_recorded",
        "lost_labels",
        "remotes",
        "unread_remotes",
    ),
    "remote_judgements",
)
"""Fields of a status that are stored as they are."""
_NAMES = ("prompts", "edited")
"""Fields of a changed file that are tuples of names."""
_PROMPTS = str(Path(__file__).parents[2] / "prompts")


def recall(location: Location, *, whole: bool) -> Status | None:
    """Return the cached status; None when there is none or it is not valid."""
    for root in (location.directory, *location.directory.parents):
        if (root / "evalstore.yaml").is_file():
            break
    else:
        return None
    try:
        boundary = WorkspaceBoundary(root)
        memory = read_cache(root / ".evalstore" / _FILE, boundary)
        if memory["format"] != _FORMAT or memory["asked"] != _inputs(root, location):
            return None
        if whole and not memory["whole"]:
            return None
        digest = _Digest()
        store = _locate(location, memory["store"])
        look(digest, boundary, root, memory["config"], memory["folders"], store)
        for name in memory["mentioned"]:
            digest.add([see_mentioned(name)])
        if memory["digest"] != digest.hexdigest():
            return None
        content = memory["status"]
        changes = [
            FileChange(**_with_also(each) | {name: tuple(each[name]) for name in _NAMES})
            for each in content.pop("changes")
        ]
        reasons = [OtherReason(**_with_also(each)) for each in content.pop("other_reasons")]
        again = tuple(OtherReason(**_with_also(each)) for each in content.pop("used_again"))
        skipped = [(file, row, model, lacks) for file, row, model, lacks in content.pop("skipped")]
        edits = [Difference(**edit) for edit in content.pop("edits")]
        content["lost_labels"] = [(file, row) for file, row in content["lost_labels"]]
        content["remotes"] = tuple(RemoteAnswers(*each) for each in content["remotes"])
        judged = content["remote_judgements"]
        content["remote_judgements"] = tuple(RemoteJudgements(*each) for each in judged)
        content["unread_remotes"] = tuple(content["unread_remotes"])
        status = Status(
            items=[],
            changes=changes,
            edits=edits,
            other_reasons=reasons,
            used_again=again,
            skipped=skipped,
            **content,
        )
        return status if now() < status.stands_until else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, EvalstoreError):
        return None


def _locate(location: Location, name: str) -> StoreLocation:
    """Return where a store is; its name in the cache has no password."""
    if not is_url(name):
        return Path(name)
    from evalstore.planning.open_project import locate_store, open_workspace

    store = locate_store(open_workspace(location), location)
    if str(store) != name:
        raise ValueError("the settings name another store")
    return store


def _with_also(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a reason, with a tuple where JSON has a list."""
    return {**fields, "also": tuple(fields["also"])}


def _inputs(root: Path, location: Location) -> list[Any]:
    """Return what selects the files and the store, what they may use, and the day."""
    config = None if location.config is None else str(location.config)
    folder = str(location.directory) if location.store else None
    allowed = AllowedPaths().of(os.path.realpath(root))
    store = location.store and str(read_location(location.store))
    # One of them may be the address of a store with its password.
    overrides = list(map(hide_passwords, location.overrides))
    return [str(root), config, store, folder, allowed, today(), overrides]


class _Digest:
    """A hash of names and stamps, in order."""

    def __init__(self) -> None:
        self._hash = hashlib.blake2b(digest_size=16)

    def add(self, seen: Sequence[Seen]) -> None:
        """Add names and stamps."""
        self._hash.update(json.dumps(seen).encode())

    def hexdigest(self) -> str:
        """Return the hash as 32 hexadecimal digits."""
        return self._hash.hexdigest()


class _Newest(_Digest):
    """A digest that records the newest of all times, in nanoseconds."""

    newest = 0

    def add(self, seen: Sequence[Seen]) -> None:
        """Add names and stamps."""
        for _, _, modified, changed, _ in seen:
            self.newest = max(self.newest, modified, changed)
        super().add(seen)


def look(
    digest: _Digest,
    boundary: Boundary,
    root: Path,
    config: str,
    folders: Mapping[str, str],
    store: StoreLocation,
) -> None:
    """Add the stamps of the settings, the workspace, the store and the known remotes as they are.

    Raises `EvalstoreError` for a folder that cannot be read, or that is outside.
    """
    digest.add([see(config)])
    if isinstance(store, Path):
        name, real = str(store), os.path.realpath(store)
        digest.add([see(path) for path in (name, real, f"{real}-wal", f"{real}-journal")])
    else:
        digest.add([(read_stamp(store), 0, 0, 0, 0)])
    caches = os.path.join(root, ".evalstore", CACHES)
    for _, files in scan_files(caches, f"{caches}/", (".db", ".db-wal")):
        digest.add(files)
    for kind, suffixes in {"": (".md",), **SUFFIXES}.items():
        folder = os.path.join(root, folders[kind]) if kind else _PROMPTS
        if kind and not boundary.contains(os.path.realpath(folder)):
            raise EvalstoreError(f"{folder} is outside of the workspace")
        for under, files in scan_files(folder, f"{folder}/", suffixes):
            digest.add([(under, 0, 0, 0, 0), *files])


class StatusCache:
    """Takes the stamps before the files are read, and writes them with the status."""

    def __init__(
        self,
        location: Location,
        selection: SelectionOptions,
        workspace: WorkspaceFolder,
        store: StoreLocation,
        began: int,
    ) -> None:
        """`began` is the time (nanoseconds) before the settings were read."""
        self._selection = selection
        self._began = began
        self._path = workspace.private / _FILE
        self._memory = {
            "format": _FORMAT,
            "asked": _inputs(workspace.root, location),
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
                store,
            )
        except EvalstoreError:
            self._digest.newest = began  # reading the files will report the error

    def keep(self, status: Status, mentioned: Mapping[str, Seen], *, runs_code: bool) -> None:
        """Write a status to the cache.

        It is written only if all stamps are old enough, because a younger file may change without
        a new stamp. With `runs_code` it is written only without items, because trust is not among
        the stamps.
        """
        if (
            self._selection != SelectionOptions()
            or status.untrusted
            or status.refused
            or (status.is_any and runs_code)
            or max(len(status.changes), len(status.skipped), len(status.warnings)) > _MOST_LISTED
            or max(len(status.other_reasons), len(status.used_again)) > _MOST_LISTED
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
            "whole": not status.is_any,
            "status": {
                "changes": [asdict(change) for change in status.changes],
                "edits": [asdict(edit) for edit in status.edits],
                "other_reasons": [asdict(reason) for reason in status.other_reasons],
                "used_again": [asdict(reason) for reason in status.used_again],
                **{name: getattr(status, name) for name in _REMEMBERED},
            },
        }
        with suppress(OSError):
            write_whole(self._path, json.dumps(memory).encode(), durable=False)
