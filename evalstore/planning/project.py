"""A project: an open workspace with its store and its participants."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from evalstore.core.errors import Problem
from evalstore.core.values import CaseFile
from evalstore.planning.code_trust import CodeTrust
from evalstore.planning.options import Location
from evalstore.planning.participants import Participants
from evalstore.planning.path_targets import find_targets, place_paths
from evalstore.planning.reasons.version_reader import VersionReader
from evalstore.planning.selection import Target
from evalstore.store import Store
from evalstore.store.trees.path_trees import build_tree
from evalstore.workspace.folder import WorkspaceFolder
from evalstore.workspace.model_files import Model
from evalstore.workspace.reader import Reading


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
        reading, prompts = self.reading, self.reading.names.get("prompts", {})
        return find_targets(
            self.location, self.workspace, reading.tests, reading.files, paths, prompts
        )

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
