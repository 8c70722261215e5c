"""Finds, identifies and reads the files that tests and prompts mention, each once.

A mentioned file must be inside the workspace, with links resolved, and must not be private
(keys, the store).
"""

# Paths are texts here for speed: thousands of mentions are checked even if nothing has changed.
# ruff: noqa: PTH114, PTH116, PTH118, PTH120, PTH122, PTH206
from __future__ import annotations

import os
import time
from pathlib import Path
from stat import S_ISREG

from evalstore.core import hashing
from evalstore.core.errors import FileProblem
from evalstore.core.values import FileVersion
from evalstore.files import access
from evalstore.files.access import FLAG, LARGEST_DATASET, LARGEST_FILE, too_large
from evalstore.files.datasets import Dataset, DatasetSpec, read_dataset, resolve_path
from evalstore.files.fields import suggest_beside
from evalstore.workspace.folder import WorkspaceFolder
from evalstore.workspace.index import Index, IndexEntry, Seen, file_stamp, is_settled
from evalstore.workspace.trust import PrivateFiles, is_private_name


class References:
    """The mentioned files of one workspace."""

    def __init__(self, workspace: WorkspaceFolder, index: Index) -> None:
        self.seen: set[str] = set()
        """The keys of the mentioned files in the index."""
        self.looked: dict[str, Seen] = {}
        """The real path and the stamp of each place where a file was looked for."""
        self._tests = workspace.settings.paths["tests"]
        self._roots = workspace.settings.dataset_roots
        """The folders of data by prefixes of paths."""
        self._boundary = workspace.boundary
        self._index = index
        self._root = os.path.realpath(workspace.root)
        self._private = PrivateFiles(self._root)
        self._real_folders: dict[str, str] = {}
        self._ids: dict[tuple[str, str], str] = {}
        self._known: dict[tuple[str, str], tuple[FileVersion, str]] = {}

    def identify(self, mentioned: str, file: str) -> str:
        """Return the id of a file that `file` mentions; an unchanged file is not read."""
        place = (os.path.dirname(file), mentioned)
        if place not in self._ids:
            path, status = self._find(mentioned, file)
            key = self._key(path, mentioned)
            entry = self._index.files.get(key)
            if entry and entry.settled and entry.stamp == file_stamp(status):
                self.seen.add(key)
                self._ids[place] = entry.node
            else:
                self._ids[place] = self.read(mentioned, file)[1]
        return self._ids[place]

    def read(self, mentioned: str, file: str) -> tuple[FileVersion, str]:
        """Read a file and its id; the path is relative to the tests folder, else to `file`."""
        place = (os.path.dirname(file), mentioned)
        if place in self._known:
            return self._known[place]
        read_at = time.time_ns()
        path, status = self._find(mentioned, file)
        try:
            data = self._boundary.read(path, LARGEST_FILE)
        except FileProblem as problem:
            raise FileProblem(_of(mentioned, problem), hint=problem.hint) from problem
        version = FileVersion(access.media_type(mentioned, data), data)
        id = hashing.identify(hashing.describe_file(version))[0]
        key = self._key(path, mentioned)
        now = file_stamp(status)
        self.seen.add(key)
        self._index.put(key, IndexEntry(now, is_settled(now, read_at), "", id))
        self._known[place] = version, id
        return version, id

    def open_data(self, spec: DatasetSpec, file: str) -> tuple[Dataset, str]:
        """Open a dataset of `file`; returns its rows and the digest of the data."""
        path, digest = self.find_data(spec, file)
        shown = os.path.relpath(path, self._root).replace(os.sep, "/")
        return read_dataset(spec, lambda: self._boundary.open(path, LARGEST_DATASET), shown), digest

    def find_data(self, spec: DatasetSpec, file: str) -> tuple[str, str]:
        """Find a data file, relative to `file`; returns its path and its digest.

        An unchanged file is not read.
        """
        read_at = time.time_ns()
        named = resolve_path(spec, self._roots)
        rooted = named != spec.path
        name = os.path.join(self._root, "" if rooted else os.path.dirname(file), named)
        path = os.path.realpath(name)
        inside = os.path.relpath(path, self._root).split(os.sep)
        fitting = [
            root for root in self._roots.values() if named.startswith(f"{root.rstrip('/')}/")
        ]
        folder = path
        if rooted:  # that of `datasetRoots`
            folder = os.path.realpath(os.path.join(self._root, max(fitting, key=len)))
        if not (self._boundary.contains(folder) and self._boundary.contains(path)):
            hint = f"copy the data into the workspace, or allow '{folder}' with '{FLAG}'"
            raise spec.problem("path", f"'{spec.path}' is outside the workspace", hint)
        if is_private_name(os.path.join(*inside)):
            raise spec.problem("path", f"'{spec.path}' is private, so it is not data")
        try:
            status = os.stat(path)
        except (OSError, ValueError) as error:
            self.looked[name] = (path, 0, 0, 0, 0)
            reason = getattr(error, "strerror", None) or str(error)
            hint = f"it leads to '{path}'" if rooted else "the path is relative to the test file"
            hint = suggest_beside(Path(name), spec.path) or hint
            raise spec.problem("path", f"'{spec.path}' cannot be read: {reason}", hint) from error
        now = file_stamp(status)
        self.looked[name] = (path, *now)
        if not S_ISREG(status.st_mode):
            raise spec.problem("path", f"'{spec.path}' is not a file")
        if self._private.holds(path, status):
            raise spec.problem("path", f"'{spec.path}' is private, so it is not data")
        if status.st_size > LARGEST_DATASET:
            problem = too_large(status.st_size, LARGEST_DATASET)
            raise spec.problem("path", _of(spec.path, problem), problem.hint)
        key = f"data:{path if rooted else '/'.join(inside)}"
        entry = self._index.files.get(key)
        self.seen.add(key)
        if entry is None or not entry.settled or entry.stamp != now:
            try:
                with self._boundary.open(path, LARGEST_DATASET) as data:
                    digest = hashing.hash_stream(iter(lambda: data.read(1 << 20), b""))
            except FileProblem as problem:
                raise spec.problem("path", _of(spec.path, problem), problem.hint) from problem
            except OSError as error:
                message = f"'{spec.path}' cannot be read: {error.strerror}"
                raise spec.problem("path", message) from error
            entry = IndexEntry(now, is_settled(now, read_at), "", digest)
            self._index.put(key, entry)
        return path, entry.node

    def locate(self, mentioned: str, file: str) -> str:
        """Return the path of a mentioned file relative to the workspace; raises `FileProblem`."""
        path, _ = self._find(mentioned, file)
        return os.path.relpath(path, self._root).replace(os.sep, "/")

    def read_program(self, path: str) -> bytes:
        """Read a file that an application runs; the path is relative to the workspace."""
        real, _ = self._find(path, "", bases=("",))
        try:
            return self._boundary.read(real, LARGEST_FILE)
        except FileProblem as problem:
            raise FileProblem(_of(path, problem), hint=problem.hint) from problem

    def _key(self, path: str, mentioned: str) -> str:
        """Return the key in the index: the real path, and the suffix, which sets the media type."""
        suffix = os.path.splitext(mentioned)[1]
        name = os.path.relpath(path, self._root).replace(os.sep, "/")
        return f"file:{name}" if name.endswith(suffix) else f"file:{name}:{suffix}"

    def _find(
        self, mentioned: str, file: str, bases: tuple[str, ...] | None = None
    ) -> tuple[str, os.stat_result]:
        outside = False
        for base in bases or (self._tests, os.path.dirname(file)):
            name = os.path.join(self._root, base, mentioned)
            try:
                path = self._real_path(name)
                self.looked[name] = (path, 0, 0, 0, 0)
                if not self._boundary.contains(path):
                    outside = True
                    continue
                status = os.stat(path)
                self.looked[name] = (path, *file_stamp(status))
            except (FileNotFoundError, NotADirectoryError):
                continue
            except (OSError, ValueError) as error:
                reason = getattr(error, "strerror", None) or error
                raise FileProblem(f"'{mentioned}' cannot be read: {reason}") from error
            if self._private.holds(path, status):
                raise FileProblem(f"'{mentioned}' is private, so it is not shown to a model")
            if S_ISREG(status.st_mode):
                return path, status
        if outside:
            raise FileProblem(
                f"'{mentioned}' is outside the workspace",
                hint=f"copy the file into the workspace, or allow it with '{FLAG}'",
            )
        raise FileProblem(
            f"file '{mentioned}' not found",
            hint=f"the path is relative to '{self._tests}/', or to the file that mentions it",
        )

    def _real_path(self, path: str) -> str:
        """Resolve a path as `os.path.realpath` does, with a cache for the folders."""
        folder, name = os.path.split(path)
        if name in ("", ".", "..") or os.path.islink(path):
            return os.path.realpath(path)
        real = self._real_folders.get(folder)
        if real is None:
            real = self._real_folders[folder] = os.path.realpath(folder)
        return os.path.join(real, name)


def _of(mentioned: str, problem: FileProblem) -> str:
    return f"'{mentioned}': {problem.message}"
