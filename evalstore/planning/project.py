"""A project: an open workspace with its store, its participants and the contents of versions."""

from __future__ import annotations

import json
import os
import shlex
import zlib
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

from evalstore.checks.types.python import CodeFile
from evalstore.core.deserialize import versions_in
from evalstore.core.display import shorten
from evalstore.core.errors import FileProblem, Problem, StoreError
from evalstore.core.values import CaseFile, FileVersion, Json
from evalstore.files.atomic_write import default_place
from evalstore.files.processes.application import Application
from evalstore.planning.cells import Cell
from evalstore.planning.options import Location
from evalstore.planning.participants import Participants
from evalstore.planning.selection import Target, find_targets, place_paths
from evalstore.store import Store
from evalstore.store.contents import require
from evalstore.store.driver import UnwantedError
from evalstore.store.trees.tree_nodes import build_tree, restore_case_files
from evalstore.workspace.folder import WorkspaceFolder
from evalstore.workspace.model_files import Model
from evalstore.workspace.reader import Reading
from evalstore.workspace.trust import TrustList, digest


@dataclass(frozen=True, slots=True)
class Untrusted:
    """A file that is not trusted, and that checks or models need."""

    path: str
    """Relative to the workspace, with forward slashes."""
    typed: str
    """The path relative to the folder in which the command was started."""
    network: bool
    """Whether the check needs the network."""
    was_trusted: bool = False
    """Whether the file was trusted with other content."""
    runs: str = ""
    """What a model file runs, if it is that of an application."""

    @property
    def command(self) -> str:
        """Return the command that trusts the file."""
        options = "--network " if self.network and not self.runs else ""
        return f"evalstore trust {options}{shlex.quote(self.typed)}"

    @property
    def words(self) -> str:
        """Return why checks of the file are not run, or the model not called, as a message."""
        return f"{self.fact}, so {'it is not called' if self.runs else 'its checks wait'}"

    @property
    def words_of_model(self) -> str:
        """Return why the model is not called, as a message about its file that is named before."""
        return f"{self._fact_of_model('it')}, so it is not called"

    @property
    def fact(self) -> str:
        """Return a message that the file is not trusted."""
        if self.runs:
            return self._fact_of_model(self.path)
        if self.was_trusted:
            return f"{self.path} has changed since you trusted it"
        trust = "trusted with the network" if self.network else "trusted"
        return f"{self.path} is not {trust} on this machine"

    def _fact_of_model(self, name: str) -> str:
        if self.was_trusted:
            return f"what {name} runs ({self.runs}) has changed since you trusted it"
        return f"{name} runs {self.runs}, which is not trusted on this machine"


class CodeTrust:
    """Looks up whether the files that cases run are trusted; each file once."""

    def __init__(
        self, location: Location, workspace: WorkspaceFolder, store: Store | None, reading: Reading
    ) -> None:
        self._directory = location.directory
        self._workspace = workspace
        self._store = store
        self._reading = reading
        self._list: TrustList | None = None
        self._answers: dict[str, bool] = {}
        self.untrusted: dict[str, Untrusted] = {}
        """The files that are not trusted, by their text in `Case.code` or the id of a model."""

    @property
    def named(self) -> list[Untrusted]:
        """Return the files that are not trusted, sorted, each once."""
        return sorted(set(self.untrusted.values()), key=lambda file: (file.path, file.network))

    def allows(self, sha256: str, network: bool) -> bool:
        """Return whether a file of this hash may run."""
        return self._trusted().allows(sha256, network=network)

    def allows_application(self, application: Application) -> bool:
        """Return whether an application may run as it is."""
        return self._trusted().allows_application(application.digest)

    def note_models(self, ids: Iterable[str]) -> None:
        """Note the applications of these models, which are not trusted and are needed."""
        for id in ids:
            if untrusted := self.find_untrusted(id):
                self.untrusted[f"model {id}"] = untrusted

    def find_untrusted(self, id: str) -> Untrusted | None:
        """Return the model file of an application that is not trusted; None for any other model."""
        model = self._reading.models.get(id)
        if model is None or model.application is None:
            return None
        application, path = model.application, self._reading.model_files[id]
        if self.allows_application(application):
            return None
        place = os.path.realpath(self._workspace.root / path)
        typed = os.path.relpath(self._workspace.root / path, self._directory)
        was_trusted = any(
            entry.application and entry.path == place for entry in self._trusted().entries
        )
        return Untrusted(path, typed, True, was_trusted, shorten(application.code))

    def find_blocked(self, cells: Iterable[Cell]) -> set[str]:
        """Return ids of the evaluation versions that run a file which is not trusted."""
        return {
            cell.case.evaluation or ""
            for cell in cells
            if cell.case.code and not all(map(self._may_run, cell.case.code))
        }

    def note_waiting(self, cells: Iterable[Cell], waiting: Collection[str]) -> None:
        """Note the files that these evaluation versions need and that are not trusted."""
        for cell in cells if waiting else ():
            if cell.case.evaluation in waiting:
                for text in cell.case.code:
                    if not self._may_run(text):
                        self._note(text, cell.file)

    def look_at(self, files: Iterable[tuple[str, CaseFile]]) -> list[tuple[str, Untrusted]]:
        """Return pairs of a test file and a file that it runs and that is not trusted."""
        by_text: dict[tuple[str, str], Untrusted] = {}
        for path, file in files:
            for text in file.runs:
                if not self._may_run(text):
                    by_text[path, text] = self._note(text, path)
        return [(path, untrusted) for (path, _), untrusted in by_text.items()]

    def _trusted(self) -> TrustList:
        if self._list is None:
            self._list = TrustList(default_place())
        return self._list

    def _may_run(self, text: str) -> bool:
        if text not in self._answers:
            code = CodeFile.read(text)
            version = self._reading.blobs.get(code.id)
            if version is None and self._store is not None:
                version = self._store.load_files([code.id])[code.id]
            self._answers[text] = version is not None and self.allows(
                digest(version.data), code.network
            )
        return self._answers[text]

    def _note(self, text: str, test: str) -> Untrusted:
        """Note a file that is not trusted, by its path as this test file names it."""
        code = CodeFile.read(text)
        if text not in self.untrusted:
            depends = self._reading.depends.get(test, {})
            mentioned = next(
                (name.partition(":")[2] for name, id in depends.items() if id == code.id), code.id
            )
            try:
                path = self._reading.references.locate(mentioned, test)
            except FileProblem:
                path = mentioned
            typed = os.path.relpath(self._workspace.root / path, self._directory)
            version, trusted = self._reading.blobs.get(code.id), self._trusted()
            now = digest(version.data) if version else None
            place = os.path.realpath(self._workspace.root / path)
            was_trusted = any(it.path == place and it.sha256 != now for it in trusted.entries)
            was_trusted = was_trusted and (now is None or trusted.find(now) is None)
            self.untrusted[text] = Untrusted(path, typed, code.network, was_trusted)
        return self.untrusted[text]


class Project(Participants):
    """An open workspace whose files have been read, with its store."""

    def __init__(
        self, location: Location, workspace: WorkspaceFolder, store: Store, reading: Reading
    ) -> None:
        super().__init__(workspace.settings, reading)
        self.location = location
        self.workspace = workspace
        self.store = store
        self.code = CodeTrust(location, workspace, store, reading)
        self.versions = VersionReader(store, reading.contents, self.contents)
        self.left_out: list[Problem] = []
        """Errors of test files that are left out."""
        self._places: dict[str, dict[str, tuple[str, int]]] = {}
        """Kind -> the names and numbers of versions by id."""

    def is_trusted(self, model: Model) -> bool:
        """Return whether a model's application may run; always true for models without one."""
        return model.application is None or self.code.allows_application(model.application)

    def snapshot(self) -> tuple[str, dict[str, tuple[str, str]]]:
        """Return the id of the tree of the current cases, and its nodes."""
        return build_tree(self.reading.nodes)

    def store_versions(self) -> str:
        """Store the versions of the workspace and its snapshot; returns the id of the snapshot."""
        root, tree = self.snapshot()
        contents = {**self.reading.contents, **self.contents, **tree}
        self.store.ensure_versions(contents, self.reading.blobs)
        return root

    def targets(self, paths: tuple[str, ...]) -> tuple[Target, ...]:
        """Return the targets of paths on the command line; raises as `find_targets`."""
        reading = self.reading
        return find_targets(self.location, self.workspace, reading.tests, reading.files, paths)

    def place_paths(self, paths: tuple[str, ...]) -> tuple[str, ...]:
        """Return paths on the command line as they are named from the workspace's folder."""
        return place_paths(self.location, self.workspace, self.reading.tests, paths)

    def leave_out(self, files: Collection[str]) -> None:
        """Remove test files from what was read."""
        reading = self.reading
        for path in files:
            reading.files.pop(path, None)
            reading.nodes.pop(path, None)
        self.left_out = [error for error in reading.errors if error.file in files]
        reading.problems = [problem for problem in reading.problems if problem.file not in files]

    def name_of_version(self, kind: str, id: str) -> str | None:
        """Return the current name of a version in the files; None when it has none."""
        place = self.place_of_version(kind, id)
        return place[0] if place else None

    def place_of_version(self, kind: str, id: str) -> tuple[str, int] | None:
        """Return the current name of a version, and its number among the versions of that name."""
        if kind not in self._places:
            places = self._places.setdefault(kind, {})
            for name, ids in self.reading.names.get(f"{kind}s", {}).items():
                for number, version in enumerate(ids):
                    places.setdefault(version, (name, number))
        return self._places[kind].get(id)


def files_of(reading: Reading) -> Mapping[str, CaseFile]:
    """Return the cases by file, in order of the paths."""
    return dict(sorted(reading.files.items()))


# --- the contents of versions, from the store or the workspace


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
