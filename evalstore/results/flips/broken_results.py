"""Finds the results that broke in the newest runs and are not fixed, as the browser marks them."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain, islice
from typing import TYPE_CHECKING, NamedTuple

from evalstore.core.display import case_name
from evalstore.planning.open_project import open_store, open_workspace
from evalstore.planning.reasons.path_history import PathHistory
from evalstore.results.compare.diff import diff
from evalstore.results.flips.run_differences import has_several_prompts
from evalstore.results.flips.verdict_changes import find_verdict_changes
from evalstore.results.growing_results import cell_of
from evalstore.results.labels.labels import read_labels
from evalstore.results.prompt_names import name_prompts
from evalstore.results.result_version import version_of
from evalstore.store.revisions import WORK, resolve_run
from evalstore.store.trees.path_trees import read_tree

if TYPE_CHECKING:
    from collections.abc import Collection

    from evalstore.core.results import Result
    from evalstore.core.runs import Run
    from evalstore.planning.options import Location
    from evalstore.results.growing_results import CellKey
    from evalstore.results.labels.labels import LabelIndex
    from evalstore.results.result_version import BrokenResults, ResultVersion
    from evalstore.workspace.folder import WorkspaceFolder

_RUNS = 10
"""Runs that are searched for cases that broke."""
_LISTED = 20
"""Cases that broke, at most."""


def find_broken_results(
    location: Location, revision: str | None, go_on: Callable[[], bool]
) -> BrokenResults | None:
    """Return the results that broke in a run; without a revision, in the newest ones.

    Of these, later labels and taken back edits are not looked at: each has the version that did not
    pass in the newest run that had it. `@work`: also those that broke since without a call, as by a
    label. None once `go_on` returns False.
    """
    workspace = open_workspace(location)
    if revision in (None, WORK):
        cases = find_broken_cases(location, workspace, go_on)
        broken = {cell: case.version for cell, case in cases.items()}
        if revision and go_on():
            broken |= {cell_of(it): version_of(it) for it in find_broken_now(location)}
        return broken if go_on() else None
    folder = workspace.settings.paths["tests"]
    with open_store(location) as store:
        changes = find_verdict_changes(store, folder, resolve_run(store, revision))
    return {cell_of(it): version_of(it) for it in changes.broke} if changes else {}


def find_broken_now(location: Location) -> list[Result]:
    """Return the results of the workspace that broke since the last run, without a call."""
    with open_store(location) as store:
        if not store.count_runs():
            return []
    return [pair.now for pair in diff(location).broke if pair.now]


class BrokenCase(NamedTuple):
    """A case that broke, and has not been fixed in a later run."""

    name: str
    """The case, with its system prompt where the file has several, and its candidate."""
    run: str
    """The run in which it broke; empty if that was since the last run, without a call."""
    started: int
    """When the run started: microseconds since 1970, UTC; 0 without one."""
    file_node: str
    """The node of its test file in that run, or in the last one."""
    version: ResultVersion
    """What did not pass in the newest run that had it."""


def find_broken_cases(
    location: Location,
    workspace: WorkspaceFolder,
    go_on: Callable[[], bool],
    now: Collection[Result] = (),
) -> dict[CellKey, BrokenCase]:
    """Return the cases that broke in the newest runs and that no later run has passed.

    Those are left out, too, whose newest answer in these runs was labelled as a pass. First come
    those that broke `now`, since the last run.
    """
    broken: dict[CellKey, tuple[Run, Result]] = {}
    newest = {cell_of(result): result for result in now}
    """The results that did not pass, in the newest run that had them."""
    since = frozenset(newest)
    fixed: set[CellKey] = set()
    folder = workspace.settings.paths["tests"]
    with open_store(location) as store:
        history: PathHistory | None = None
        labels: LabelIndex | None = None
        for run in store.find_recent_runs(limit=_RUNS):
            if len(broken) >= _LISTED or not go_on():
                break
            if history is None:
                history = PathHistory(store, folder, run.snapshot, {})
                tree = read_tree(run.snapshot, store.load_nodes) if now else {}
                broken = {it: (run, newest[it]) for it in newest if newest[it].file in tree}
            history.step(run.snapshot)
            changes = find_verdict_changes(store, folder, run)
            if changes is None:
                continue
            for result in chain(changes.broke, changes.undecided, changes.failed_again):
                newest.setdefault(_newest_cell(history, result), result)
            labels = labels or (read_labels(store) if changes.broke else None)
            for result in changes.broke:
                cell = _newest_cell(history, result)
                if labels and labels.word(newest[cell]) == "pass":
                    continue
                if cell not in fixed and cell not in broken:
                    broken[cell] = run, result
            fixed.update(_newest_cell(history, result) for result in changes.fixed)
        listed = dict(islice(broken.items(), _LISTED))
        runs = {run.id: run for run, _ in listed.values()}
        files = {(run.id, result.file) for run, result in listed.values()}
        several = {pair for pair in files if has_several_prompts(store, runs[pair[0]], pair[1])}
        nodes = {run.id: read_tree(run.snapshot, store.load_nodes) for run in runs.values()}
    prompts = {result.prompt for run, result in listed.values() if (run.id, result.file) in several}
    names = name_prompts(location, prompts)
    cases = {}
    for cell, (run, result) in listed.items():
        file, row, _, model = cell
        prompt = names.get(result.prompt) if (run.id, result.file) in several else None
        name = f"{case_name(file, row, prompt)} {model}"
        node, version = nodes[run.id][result.file], version_of(newest[cell])
        place = ("", 0) if cell in since else (run.id, run.started)
        cases[cell] = BrokenCase(name, *place, node, version)
    return cases


def _newest_cell(history: PathHistory, result: Result) -> CellKey:
    """Return the place of a result under the newest path of its file."""
    return cell_of(result._replace(file=history.newest_path(result.file) or result.file))
