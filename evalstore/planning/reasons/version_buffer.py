"""Stores the versions that are read from files, in batches."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Mapping
from contextlib import suppress

from evalstore.core.errors import StoreError
from evalstore.core.values import CaseFile, FileVersion, Json
from evalstore.store import Store
from evalstore.store.trees.case_files import restore_case_files
from evalstore.store.wanted import UnwantedError
from evalstore.workspace.folder import WorkspaceFolder
from evalstore.workspace.reader import Reading


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
