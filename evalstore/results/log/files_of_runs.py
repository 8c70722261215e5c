"""Finds the test file of a run, or of the workspace, that a path on the command line names."""

from __future__ import annotations

from collections.abc import Collection

from evalstore.core.display import short, side_name
from evalstore.core.errors import RevisionError
from evalstore.core.runs import Run
from evalstore.files.fields import suggest_file
from evalstore.planning.open_project import open_workspace
from evalstore.planning.options import Location
from evalstore.planning.path_targets import name_file
from evalstore.planning.reasons.path_history import find_later_name
from evalstore.store import Store
from evalstore.store.trees.path_trees import find_entry
from evalstore.workspace.folder import WorkspaceFolder


def find_test_file(
    location: Location, workspace: WorkspaceFolder, files: Collection[str], path: str, side: str
) -> str:
    """Return the test file that a path names; `files` are those of a run or of the workspace.

    The path is relative to the workspace, to the current folder or to the folder of the tests.
    Raises `RevisionError` when there is no such file.
    """
    names = _possible_names(location, workspace, path)
    name = next((name for name in names if name in files), None)
    if name is None:
        raise RevisionError(
            f"{side_name(side)} has no test file '{path}'",
            hint=suggest_file(path, files),
        )
    return name


def find_file_of_run(
    location: Location, store: Store, run: Run, files: Collection[str], path: str
) -> str:
    """Return the test file of a run that a path names, as `find_test_file` does.

    Raises `RevisionError` if the file does not exist; if it was renamed, the hint has its new path.
    """
    workspace = open_workspace(location)
    try:
        return find_test_file(location, workspace, files, path, run.id)
    except RevisionError as error:
        names, folder = (
            _possible_names(location, workspace, path),
            workspace.settings.paths["tests"],
        )
        later = find_later_name(store, run, names, folder)
        if later is not None:
            raise RevisionError(str(error), hint=f"it was renamed to '{later}'") from None
        tests = workspace.find_files("tests")
        if now := next((name for name in names if name in tests), None):
            hint = f"the workspace has it now: 'evalstore show @work:{now}' shows it"
            raise RevisionError(str(error), hint=hint) from None
        for older in store.find_recent_runs(before=run):
            for name in names:
                if find_entry({older.snapshot}, name, store.load_nodes):
                    hint = f"'evalstore show {short(older.id)}:{name}' shows its last version"
                    raise RevisionError(f"{error}: it was removed", hint=hint) from None
        raise


def _possible_names(location: Location, workspace: WorkspaceFolder, path: str) -> list[str]:
    """Return the paths in the workspace that a path on the command line may mean."""
    folder = workspace.settings.paths["tests"]
    return [path, name_file(location, workspace, path), f"{folder}/{path}"]
