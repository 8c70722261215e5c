"""Reads the contents of versions from the store or the workspace, and stores those of files."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from typing import TypeVar

from evalstore.core.deserialize import versions_in
from evalstore.core.errors import StoreError
from evalstore.core.values import CaseFile, FileVersion, Json
from evalstore.store import Store
from evalstore.store.contents import require
from evalstore.store.driver import UnwantedError
from evalstore.store.trees.tree_nodes import restore_case_files
from evalstore.workspace.folder import WorkspaceFolder
from evalstore.workspace.reader import Reading

Fresh = Mapping[str, tuple[str, str]]
"""Versions of the workspace that may not be stored yet, by id: kind and canonical JSON."""

T = TypeVar("T")


class VersionReader:
    """Reads versions from the workspace, then from the store."""

    def __init__(
        self, store: Store, *fresh: Fresh, fallback: Callable[[], Fresh] | None = None
    ) -> None:
        """`fallback` is called once, when a version is neither in `fresh` nor stored."""
        self._store = store
        self._fresh = fresh
        self._fallback = fallback
        self._read: dict[str, Json] = {}

    def find(self, kind: str, id: str | None) -> Json:
        """Return a content, which stays in memory; None when it is not available."""
        if id is None:
            return None
        if id not in self._read:
            self._keep(kind, [id])
        return self._read[id]

    def load(self, kind: str, ids: Iterable[str]) -> dict[str, Json]:
        """Return the contents of those of these versions that are available."""
        unique_ids = list(dict.fromkeys(ids))
        contents = self._load_fresh(unique_ids)
        stored = [id for id in unique_ids if id not in contents]
        if stored:
            contents |= self._store.load_contents(kind, stored)
        if self._fallback and not contents.keys() >= set(unique_ids):
            self._fresh = (*self._fresh, self._fallback())
            self._fallback = None
            contents |= self._load_fresh([id for id in unique_ids if id not in contents])
        return contents

    def require(self, kind: str, ids: Iterable[str]) -> dict[str, Json]:
        """Return the contents of these versions; raises `StoreError` when one is missing."""
        unique_ids = list(dict.fromkeys(ids))
        return require(self.load(kind, unique_ids), unique_ids, kind)

    def measure(self, kind: str, ids: Iterable[str]) -> dict[str, int]:
        """Return the lengths, in characters, of those of these contents that are available."""
        unique_ids = list(dict.fromkeys(ids))
        fresh = {
            id: len(versions[id][1])
            for versions in self._fresh
            for id in unique_ids
            if id in versions
        }
        return fresh | self._store.load_lengths(kind, [id for id in unique_ids if id not in fresh])

    def read_ahead(self, versions: Iterable[tuple[str, str | None]]) -> None:
        """Read versions that `find` will need, by kind and id, and forget those read before.

        Tools and schemas of tests and prompts of checks are read, too.
        """
        self._read.clear()
        self._keep_kinds(versions)
        self._keep_kinds(
            [
                version
                for content in self._read.values()
                if content
                for version in versions_in(content)
            ]
        )

    def _keep_kinds(self, versions: Iterable[tuple[str, str | None]]) -> None:
        by_kind: dict[str, list[str]] = {}
        for kind, id in dict.fromkeys(versions):
            if id and id not in self._read:
                by_kind.setdefault(kind, []).append(id)
        for kind, ids in by_kind.items():
            self._keep(kind, ids)

    def _keep(self, kind: str, ids: list[str]) -> None:
        self._read |= dict.fromkeys(ids) | self.load(kind, ids)

    def _load_fresh(self, ids: Collection[str]) -> dict[str, Json]:
        contents: dict[str, Json] = {}
        for versions in self._fresh:
            if versions:  # usually all are stored
                found = {id: versions[id] for id in ids if id in versions and id not in contents}
                contents |= {id: json.loads(fresh[1]) for id, fresh in found.items()}
        return contents


class VersionBuffer:
    """Stores versions while files are read, to save memory when there are many.

    With `strict` a store that cannot be written to is an error; otherwise they stay in memory.
    Without a store only files and the nodes of cases are kept, the nodes compressed.
    """

    def __init__(self, store: Store | None, *, strict: bool = False) -> None:
        self._store = store
        self._strict = strict
        self._took = False
        self._contents: dict[str, tuple[str, str]] = {}
        self._files: dict[str, FileVersion] = {}
        self._nodes: dict[str, bytes] = {}

    def find_case_files(self, ids: Iterable[str]) -> dict[str, CaseFile]:
        """Return the cases of files by their nodes, from the store or from memory."""
        if self._store is not None:
            return self._store.find_case_files(ids)
        return restore_case_files(self._load(id for id in ids if id in self._nodes), self._load)

    def _load(self, ids: Iterable[str]) -> dict[str, Json]:
        return {id: json.loads(zlib.decompress(self._nodes[id])) for id in ids}

    def take(
        self, contents: Mapping[str, tuple[str, str]], files: Mapping[str, FileVersion]
    ) -> None:
        """Add contents and files by id."""
        if self._store is None:
            self._files |= files
            for id, (kind, content) in contents.items():
                if kind == "cases":
                    self._nodes[id] = zlib.compress(content.encode(), level=1)
            return
        try:
            self._store.ensure_versions(contents, files)
            self._took = True
        except UnwantedError:
            raise
        except StoreError:
            if self._strict:
                raise
            self._contents |= contents
            self._files |= files

    def finish(self, workspace: WorkspaceFolder, reading: Reading) -> None:
        """Add to `reading` what could not be stored; else store the rest and save the index."""
        reading.contents = self._contents | reading.contents
        reading.blobs = self._files | reading.blobs
        if (
            self._store
            and self._took
            and not self._strict
            and not self._contents
            and not reading.errors
        ):
            with suppress(StoreError):
                self._store.ensure_versions(reading.contents, reading.blobs)
                reading.save_index(workspace, is_run=False)
