"""Finds the test files that differ from the snapshot of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from evalstore.core.runs import Run
from evalstore.core.values import CaseFile
from evalstore.planning.path_history import compare_sources, pair_with_workspace
from evalstore.planning.plan import Plan
from evalstore.planning.project import Project
from evalstore.planning.status_report import (
    FileChange,
    StoredOutcomes,
    lacks_row_id,
    plan_rows,
)
from evalstore.planning.version_reader import VersionReader
from evalstore.results.edits.edited_files import EditedFile, FileItems, WasRun
from evalstore.results.edits.edited_sources import EditedSources, Versions, name_by_bytes
from evalstore.store.results import SourcesReader
from evalstore.store.trees.tree_nodes import CaseFinder, read_tree
from evalstore.workspace.reader import read_sources

_MOST_READ = 50
"""The most edited files of which it is found out whether they were edited themselves."""


class FileChanges:
    """Finds the test files that differ from a run, from the plans of all cells, batch by batch."""

    def __init__(self, project: Project, run: Run, was_run: WasRun, *, narrows: bool) -> None:
        """Compare the files of the workspace with those of the run.

        With `narrows`, only files in which the command would do something are among the changes.
        """
        self._project, self._run, self._was_run = project, run, was_run
        self._narrows = narrows
        self._pairs: dict[str, str] = {}
        self._edited: dict[str, EditedFile] = {}
        """The files whose cases differ."""
        self._selected: set[str] = set()
        self._busy: set[str] = set()
        """Files with items of the plan."""
        self._gone: dict[str, int] = {}
        """How many cases each file had that is gone."""
        self._is_same = project.snapshot()[0] == run.snapshot
        if self._is_same:
            return
        nodes, store = project.reading.nodes, project.store
        before = read_tree(run.snapshot, store.load_nodes)
        old_files: dict[str, CaseFile] = {}
        self._pairs = pair_with_workspace(project, before, old_files)
        changed = {path: old for path, old in self._pairs.items() if before[old] != nodes[path]}
        gone = before.keys() - set(self._pairs.values())
        broken = {problem.file for problem in (*project.reading.errors, *project.left_out)}
        leaves = {before[path] for path in (*changed.values(), *gone)}
        old_files |= store.load_case_files(leaves - old_files.keys())
        for path, old in changed.items():
            now = project.reading.files[path]
            finder, name = CaseFinder(store), project.name_of_version
            edited = EditedFile(path, old_files[before[old]], now, finder, name)
            if edited.differs:
                self._edited[path] = edited
        self._gone = {path: len(old_files[before[path]].cases) for path in gone - broken}

    def lists(self, file: str) -> bool:
        """Return whether a file is among the changes, if it has an item of the plan."""
        if self._is_same:
            return False
        return file not in self._pairs or file in self._edited or self._pairs[file] != file

    def add(self, plan: Plan, items: Mapping[str, FileItems]) -> None:
        """Add the plan of a batch, with its items by file."""
        if self._is_same:
            return
        self._selected.update(cell.file for cell in plan.cells)
        self._busy |= {file for file, own in items.items() if own.asks or own.judgements}
        edited = {file for file in {cell.file for cell in plan.cells} if file in self._edited}
        if not edited:
            return
        rows = plan_rows(plan, edited, self._project.settings.verdict)
        for file in edited:
            self._edited[file].add(rows[file], items.get(file) or FileItems())

    def finish(self) -> list[FileChange]:
        """Return the changes, as git shows them."""
        if self._is_same:
            return []
        reading, narrows = self._project.reading, self._narrows
        changes = [
            FileChange("A ", path, len(reading.files[path].cases), 0, 0, "new")
            for path in reading.nodes.keys() - self._pairs.keys()
            if not narrows or path in self._selected
        ]
        sources = self._find_sources()
        for path, old in self._pairs.items():
            change = None
            if path in self._edited:
                change = self._edited[path].describe(self._was_run)
                change = replace(change, edited=sources[path])
                if narrows:  # nothing is known of the cases that were not selected
                    change = replace(change, settled=0, used_again=0)
            workspace = self._project.workspace
            if change and change.gone and change.new and lacks_row_id(workspace, path):
                change = replace(change, may_be_edited_rows=True)
            if path != old:
                change = change or FileChange("R ", path, 0, 0, 0, "")
                reason = "; ".join(part for part in (f"was {old}", change.reason) if part)
                change = replace(change, reason=reason, old_file=old)
            if change:
                changes.append(change)
        changes += [
            FileChange("D ", path, 0, 0, count, "removed") for path, count in self._gone.items()
        ]
        if narrows:
            changes = [
                change
                for change in changes
                if change.file in self._busy or change.new or change.asked or change.judged
            ]
        return sorted(changes, key=lambda change: (change.file, change.code))

    def _find_sources(self) -> dict[str, tuple[str, ...]]:
        """Return what was edited, by test file; of many, what of it has other bytes."""
        project = self._project
        was = SourcesReader(project.store).find(self._run) if self._edited else None
        now = read_sources(project.workspace, project.reading) if was else None
        files = {
            path: Versions(path, it.was, it.now, compare_sources(was, now, path, self._pairs[path]))
            for path, it in self._edited.items()
        }
        if len(files) > _MOST_READ:
            return {path: name_by_bytes(path, it.changes) for path, it in files.items()}
        versions = VersionReader(project.store, project.reading.contents, project.contents)
        finder = CaseFinder(project.store)
        return EditedSources(finder, versions, project.name_of_version).find(files)


def with_outcomes(change: FileChange, outcomes: StoredOutcomes) -> FileChange:
    """Return a change with how many of its results broke and were fixed without a call."""
    if not change.settled:
        return change
    file = change.file
    return replace(change, broke=outcomes.broke[file], fixed=outcomes.fixed[file])
