"""The option `--watch`: waits until files are saved, and decides whether a run is needed.

Only the stamps of files are compared; the plan determines the effect of a change.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from evalstore.core.errors import EvalstoreError, UnsuitedError
from evalstore.core.runs import ProgressListener
from evalstore.planning.open_project import open_project, open_workspace
from evalstore.planning.options import GO_ON, Location, RunOptions, SelectionOptions
from evalstore.planning.planner import require_sound, select
from evalstore.planning.project import Project
from evalstore.planning.status_report import Status
from evalstore.runs.run import plan_run
from evalstore.runs.run import run as carry_out
from evalstore.runs.run_report import RunReport
from evalstore.workspace.folder import NAMES, WorkspaceFolder
from evalstore.workspace.index import (
    INDEX,
    SUFFIXES,
    Seen,
    Stamp,
    read_cache,
    see,
    see_mentioned,
    walk,
)

# Paths are strings here, because thousands of files are polled.
# ruff: noqa: PTH118


_PAUSE = 0.3
"""Seconds between two polls."""
_IDLE = 10
"""The pause is at least this many times as long as a poll."""
_REST = 20
"""The pause of `ChangeNotifier` is at least this many times as long as a poll."""
_UNREADABLE: Stamp = (-1, 0, 0, 0)


class FileWatcher:
    """Polls the files of a workspace until some of them change."""

    def __init__(self, workspace: WorkspaceFolder) -> None:
        self._root = str(workspace.root)
        self._took = 0.0
        self._single = [str(workspace.config), *(os.path.join(self._root, name) for name in NAMES)]
        self._folders: dict[str, tuple[str, ...]] = {}
        self._mentioned: dict[str, Seen] = {}
        self.follow(workspace)

    def follow(self, workspace: WorkspaceFolder) -> None:
        """Watch the folders of the settings from now on; call it before reading the files."""
        folders = {
            os.path.join(self._root, workspace.settings.paths[kind]): suffixes
            for kind, suffixes in SUFFIXES.items()
        }
        self._boundary = workspace.boundary
        if folders != self._folders:
            self._folders = folders
            self._files = self._look()

    def follow_mentioned(
        self, names: Collection[str], seen: Mapping[str, Seen] | None = None
    ) -> None:
        """Watch also the files that tests mention from now on.

        Those that were `seen` before are changed if they differ from that.
        """
        before = {**(seen or {}), **self._mentioned}
        self._mentioned = {name: before.get(name) or see_mentioned(name) for name in names}

    def wait(self) -> list[str]:
        """Wait until files have changed; returns their relative paths, sorted.

        It also waits until no more files change, because an editor may save a file in two steps.
        """
        changed: set[str] = set()
        latest: set[str] = set()
        while latest or not changed:
            time.sleep(max(_PAUSE, _IDLE * self._took))
            began = time.monotonic()
            latest = self.poll()
            self._took = time.monotonic() - began
            changed |= latest
        return sorted(os.path.relpath(name, self._root) for name in changed)

    def poll(self) -> set[str]:
        """Return the paths of the files that have changed since the last poll."""
        files = self._look()
        mentioned = {name: see_mentioned(name) for name in self._mentioned}
        changed = _differences(self._files, files) | _differences(self._mentioned, mentioned)
        self._files, self._mentioned = files, mentioned
        return changed

    def _look(self) -> dict[str, Stamp]:
        stamps = {name: see(name)[1:] for name in self._single}
        for folder, suffixes in self._folders.items():
            try:
                if not self._boundary.contains(os.path.realpath(folder)):
                    raise EvalstoreError(f"{folder} is outside the workspace")
                walk(folder, f"{folder}/", suffixes, stamps)
            except EvalstoreError:
                stamps[folder] = _UNREADABLE  # reading it will report why
        return stamps


def _differences(before: Mapping[str, object], after: Mapping[str, object]) -> set[str]:
    return {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}


class ChangeNotifier:
    """Tells from time to time whether files of a workspace have changed since it was last asked.

    It may be asked by several threads; what polls take is a small part of the time.
    """

    def __init__(self, location: Callable[[], Location]) -> None:
        self._location = location
        self._watcher: FileWatcher | None = None
        self._index: Seen | None = None
        self._indexed: set[str] = set()
        """The files that tests mention, by the index."""
        self._looked_for: Mapping[str, Seen] = {}
        self._due = 0.0
        self._lock = threading.Lock()

    def follow_mentioned(self, looked_for: Mapping[str, Seen]) -> None:
        """Look also at these paths of files that tests mention, which the index may lack."""
        self._looked_for = looked_for

    def has_changed(self) -> bool:
        """Return whether files have changed; False also when it is too early to look again.

        Raises `EvalstoreError` when the settings cannot be read.
        """
        if not self._lock.acquire(blocking=False):
            return False
        try:
            began = time.monotonic()
            if began < self._due:
                return False
            has_changed = self._poll()
            ended = time.monotonic()
            self._due = ended + _REST * (ended - began)
            return has_changed
        finally:
            self._lock.release()

    def _poll(self) -> bool:
        workspace = open_workspace(self._location())
        if self._watcher is None:
            self._watcher = FileWatcher(workspace)
            self._follow_mentioned(self._watcher, workspace)
            return False
        has_changed = bool(self._watcher.poll())
        self._watcher.follow(workspace)
        self._follow_mentioned(self._watcher, workspace)
        return has_changed

    def _follow_mentioned(self, watcher: FileWatcher, workspace: WorkspaceFolder) -> None:
        """Follow the files that tests mention, by the index of the files as they were last read."""
        path = workspace.private / INDEX
        index = see(str(path))
        if index != self._index:
            self._index = index
            with suppress(ValueError, KeyError, TypeError):
                self._indexed = _mentioned_paths(
                    workspace.root, read_cache(path, workspace.boundary)["files"]
                )
        looked_for = self._looked_for
        watcher.follow_mentioned(self._indexed | looked_for.keys(), looked_for)


def _mentioned_paths(root: str | Path, keys: Iterable[str]) -> set[str]:
    """Return the paths of the mentioned files by their keys in the index."""
    kinds = (key.partition(":") for key in keys)
    names = [name for kind, _, name in kinds if kind in ("file", "data") and name]
    return {
        os.path.join(root, path)
        for name in names
        for path in (name, name.rpartition(":")[0] or name)  # the suffix may follow
    }


class Watch:
    """The runs of one `--watch`, with their total cost."""

    def __init__(
        self, location: Location, selection: SelectionOptions, options: RunOptions
    ) -> None:
        """Raise `EvalstoreError` without a workspace, or for options that do not fit."""
        _refuse(selection)
        workspace = open_workspace(location)
        self._location, self._selection, self._options = location, selection, options
        self._root = workspace.root
        self._file_watcher = FileWatcher(workspace)
        self._seen: object = None
        self._reported: object = None
        self.report: RunReport | None = None
        """The report of the last run."""
        self.runs = 0
        self.spent = 0.0
        """The cost of all runs in USD."""

    def wait(self) -> list[str]:
        """Wait until files have been saved; returns their paths."""
        return self._file_watcher.wait()

    def plan(self) -> Status | None:
        """Return the current plan; None when there is nothing to do and nothing new to report."""
        self._seen = self._read()
        status = plan_run(self._location, self._selection, self._options)
        return status if status.items or self._seen != self._reported else None

    def _read(self) -> object:
        """Update the watched paths; returns a value that identifies the selected cases."""
        workspace = WorkspaceFolder(
            self._root,
            self._location.config,
            allow_outside=self._location.allow_outside,
            overrides=self._location.overrides,
        )
        self._file_watcher.follow(workspace)
        with open_project(self._location, create=True, workspace=workspace) as project:
            self._file_watcher.follow_mentioned(project.reading.references.looked)
            require_sound(project, self._selection, hint=GO_ON)
            return _gist(project, project.with_whole_names(self._selection))

    def run(self, listener: ProgressListener) -> RunReport:
        """Carry out the plan, within the rest of `max_cost`."""
        most = self._options.max_cost
        left = None if most is None else max(0.0, most - self.spent)
        before = listener.usd
        try:
            report = carry_out(
                self._location, self._selection, replace(self._options, max_cost=left), listener
            )
        finally:
            self.spent += listener.usd - before
        self._reported, self.report = self._seen, report
        self.runs += 1
        return report

    @property
    def is_used_up(self) -> bool:
        """Return whether the last run stopped because the rest of `max_cost` was spent."""
        if self.report is None or self.report.status != "over budget":
            return False
        return self._options.max_cost is not None and not self.report.time_is_up


def _refuse(selection: SelectionOptions) -> None:
    if selection.refresh:
        raise UnsuitedError(
            "'--watch' cannot be combined with '--refresh': each save would ask everything again",
            hint="use 'evalstore run --refresh' first, then 'evalstore run --watch'",
        )
    if selection.retry_errors:
        raise UnsuitedError(
            "'--watch' cannot be combined with '--retry-errors': edited cases have not run yet",
            hint="leave it out: what failed is tried again whenever a file is saved",
        )


def _gist(project: Project, selection: SelectionOptions) -> object:
    """Return what the verdicts depend on: if it is unchanged, so is the report."""
    criteria = select(project, selection)
    matches = criteria.matcher()
    files = [
        (
            path,
            file.attempts,
            file.evaluators,
            file.threshold,
            [
                (case.row, case.tests, case.prompts, case.evaluation, case.temperature, case.seed)
                for _, case in criteria.by_name(path, enumerate(file.cases))
                if matches(path, case)
            ],
        )
        for path, file in sorted(project.reading.files.items())
    ]
    return (
        [file for file in files if file[-1]],
        [
            (candidate.id, candidate.model, candidate.temperature, candidate.attempts)
            for candidate in project.candidates(selection)
        ],
        [(judge.evaluator, judge.times) for judge in project.judges(selection)],
        project.settings.verdict,
    )
