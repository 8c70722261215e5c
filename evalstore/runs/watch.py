"""The option `--watch`: waits until files are saved, and decides whether a run is needed.

Only the stamps of files are compared; the plan determines the effect of a change.
"""

from __future__ import annotations

from dataclasses import replace

from evalstore.core.errors import EvalstoreError
from evalstore.core.progress import ProgressListener
from evalstore.planning.open_project import open_project, open_workspace
from evalstore.planning.options import GO_ON, Location, RunOptions, SelectionOptions
from evalstore.planning.planner import require_sound, select
from evalstore.planning.project import Project
from evalstore.planning.status_report import Status
from evalstore.runs.file_watcher import FileWatcher
from evalstore.runs.run import plan_run
from evalstore.runs.run import run as carry_out
from evalstore.runs.run_report import RunReport
from evalstore.workspace.folder import WorkspaceFolder


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
        self._max_time = options.max_time
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
        if self._options.max_time is None:
            self._max_time = workspace.settings.max_time
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
        out_of_time = self._max_time is not None and self.report.seconds >= self._max_time
        return self._options.max_cost is not None and not out_of_time


def _refuse(selection: SelectionOptions) -> None:
    if selection.refresh:
        raise EvalstoreError(
            "'--watch' cannot be combined with '--refresh': each save would ask everything again",
            hint="use 'evalstore run --refresh' first, then 'evalstore run --watch'",
        )
    if selection.retry_errors:
        raise EvalstoreError(
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
                for _, case in criteria.read_ahead(path, enumerate(file.cases))
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
