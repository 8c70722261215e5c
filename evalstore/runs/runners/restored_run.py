"""Restores a run in progress from its description in the store, without its workspace."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from evalstore import __version__
from evalstore.core.errors import EvalstoreError
from evalstore.core.runs import RunCommit
from evalstore.files.atomic_write import write_whole
from evalstore.files.json_output import camel_case
from evalstore.planning.open_project import open_workspace
from evalstore.planning.options import Location, RunOptions, SelectionOptions
from evalstore.planning.planner import resolve_scope
from evalstore.planning.project import Project
from evalstore.runs.run_plans import Plans
from evalstore.runs.run_totals import RunTotals
from evalstore.runs.runners.shared_run import RunOrigin
from evalstore.store import Store
from evalstore.store.run_documents import quoted
from evalstore.store.trees.path_trees import read_tree
from evalstore.store.work.shared_runs import SharedRun
from evalstore.workspace.reader import read_workspace


class RestoredRun(NamedTuple):
    """A run in progress, as the program that began it has described it."""

    project: Project
    origin: RunOrigin
    selection: SelectionOptions
    options: RunOptions

    def plan(self) -> tuple[Plans, RunTotals]:
        """Return the plans of what is missing now, and totals without results."""
        begun = self.origin.started
        judges = self.options.judge_only
        scope = resolve_scope(self.project, self.selection, judge_only=judges, begun=begun)
        plans = Plans(self.project, scope)
        return plans, RunTotals(self.project, begun, plans.shared)


@contextmanager
def restored(store: Store, location: Location, run: SharedRun) -> Iterator[RestoredRun]:
    """Restore a run, whose settings, models and prompts are in a folder for the block.

    Raises `EvalstoreError` where that is not possible.
    """
    with TemporaryDirectory(prefix="evalstore-join-") as folder:
        _write_files(run, Path(folder))
        inner = replace(
            location,
            directory=Path(folder),
            config=Path(folder) / run.description["config"],
            overrides=tuple(run.description["overrides"]),
        )
        origin = _restore_origin(run)
        yield RestoredRun(
            _open(store, inner, origin.snapshot),
            origin,
            _restore_selection(run),
            RunOptions(**run.description["options"]),
        )


def require_joinable(run: SharedRun) -> None:
    """Raise `EvalstoreError` if a run in progress cannot be joined by this program."""
    if run.error:
        raise run.error
    version, problem = run.description["version"], run.description.get("problem")
    if version != __version__:
        raise EvalstoreError(
            f"run {run.id[:8]} was begun by evalstore {quoted(version)}, and this is {__version__}",
            hint="use the same version on all machines",
        )
    if problem:
        raise EvalstoreError(f"run {run.id[:8]} cannot be joined: {quoted(problem, 500)}")


def _write_files(run: SharedRun, folder: Path) -> None:
    """Write the settings, models and prompts of a run in progress into an empty folder."""
    for name, text in run.description["files"].items():
        path, shown = folder / name, quoted(name)
        try:
            if not path.resolve().is_relative_to(folder.resolve()):
                raise EvalstoreError(
                    f"run {run.id[:8]} names a file outside its workspace: '{shown}'"
                )
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, text.encode(), durable=False)
        except (OSError, ValueError) as error:  # such as for a name that no file can have
            raise EvalstoreError(
                f"run {run.id[:8]} has a file that cannot be written here: '{shown}': "
                f"{quoted(str(error))}"
            ) from error


def _restore_origin(run: SharedRun) -> RunOrigin:
    """Return where a run in progress comes from."""
    described = run.description
    return RunOrigin(
        described["cases"],
        described["started"],
        described["selection"],
        described["message"],
        RunCommit(*described["git"]) if described["git"] else None,
        described.get("author"),
        described.get("sources"),
    )


def _open(store: Store, location: Location, snapshot: str) -> Project:
    """Return a project with the cases of a snapshot, and the models and prompts of a folder."""
    workspace = open_workspace(location)
    reading = read_workspace(workspace, store.find_case_files, tests=False)
    reading.nodes = dict(read_tree(snapshot, store.load_nodes))
    leaves = store.load_case_files(reading.nodes.values())
    reading.files = {path: leaves[leaf] for path, leaf in reading.nodes.items()}
    reading.tests = frozenset(reading.nodes)
    return Project(location, workspace, store, reading)


def _restore_selection(run: SharedRun) -> SelectionOptions:
    """Return the selection of a run in progress."""
    names = {camel_case(member.name): member.name for member in fields(SelectionOptions)}
    values: dict[str, Any] = {
        names[name]: tuple(value) if isinstance(value, list) else value
        for name, value in run.description["selection"].items()
    }
    return SelectionOptions(**values)
