"""Finds the parts of long files that are the same as before, so that they need not be read."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING

from evalstore.planning.cells.settled_parts import SettledParts, find_settled
from evalstore.planning.options import SelectionOptions
from evalstore.results.edits.participant_edits import differ_participants
from evalstore.store.trees.case_files import StoredCases, long_parts_of
from evalstore.store.trees.path_trees import find_entry, read_tree

if TYPE_CHECKING:
    from evalstore.core.runs import Run
    from evalstore.core.values import CaseFile
    from evalstore.planning.project import Project
    from evalstore.store import Store
    from evalstore.store.trees.case_finder import CaseFinder


_FEW = 10_000
"""The most cases of a version that are read together."""


def find_unchanged_parts(project: Project, selection: SelectionOptions) -> SettledParts:
    """Return the settled parts of which there is nothing to tell since the last run.

    Their cases are in the same file of the last run, and their results in the newest run with
    results of the file. There are none when people gave labels since: these are counted case by
    case.
    """
    store, nodes, load = project.store, project.reading.nodes, project.store.load_nodes
    last = store.find_runs(limit=1)
    settled = find_settled(project, selection) if last else SettledParts()
    if not settled:
        return settled
    labels = store.find_labels()
    if labels and labels[-1].at > last[0].ended:
        return SettledParts()
    root = last[0].snapshot
    before = {path: find_entry([root], path, load).get(root) for path in settled.by_file}
    waiting = {path: leaf for path, leaf in before.items() if leaf}
    unchanged: list[tuple[str, int]] = []
    for run in store.find_recent_runs() if waiting else ():
        for path in sorted(waiting):
            leaf = find_entry([run.results], path, load).get(run.results)
            if leaf:
                ids, node = find_parts(store, {leaf}), waiting.pop(path)
                content = store.load_cases([node])[node] if node != nodes[path] else None
                cases = {*long_parts_of(content, store.load_cases)} if content else None
                unchanged += [
                    (path, first)
                    for first, part in settled.of(path).items()
                    if part.results in ids and (cases is None or part.node in cases)
                ]
        if not waiting:
            break
    return settled.only(unchanged)


def find_unedited_run(project: Project) -> Run | None:
    """Return the last run unless files, settings or labels changed since; nothing is planned."""
    from evalstore.planning.status.workspace_results import workspace_as_run

    store = project.store
    last = store.find_runs(limit=1)
    if not last or last[0].snapshot != project.snapshot()[0]:
        return None
    now = workspace_as_run(project)
    ids, current = ({each.id for each in run.candidates} for run in (last[0], now))
    edits = differ_participants(last[0], now, project.versions.find, project.name_of_version)
    is_edited = ids != current or any(edits) or store.count_labels()[1] > last[0].ended
    return None if is_edited else last[0]


def find_equal_run(project: Project) -> Run | None:
    """Return the last run if a run of the workspace would store the very results of it.

    It would not after a label, also one that agrees with the judges.
    """
    from evalstore.planning.planner import resolve_scope
    from evalstore.planning.results import LeafBuilder
    from evalstore.planning.status.workspace_results import compute_workspace

    store, every = project.store, SelectionOptions()
    last = find_unedited_run(project)
    if last is None:
        return None
    scope = resolve_scope(project, every, settled=find_unchanged_parts(project, every))
    leaves = LeafBuilder(project.reading, store.load_cases, scope.settled)
    for _, results in compute_workspace(project, scope):
        leaves.add(results)
        leaves.forget()
    is_equal = leaves.finish_all() == read_tree(last.results, store.load_nodes)
    return last if is_equal else None


def find_parts(store: Store, leaves: Collection[str]) -> set[str]:
    """Return the ids of the results of the parts of long files with these results."""
    roots = store.load_leaves(leaves).values() if leaves else ()
    return {id for root in roots for id in long_parts_of(root, store.load_leaves)}


def leave_out_same(was: CaseFile, now: CaseFile, finder: CaseFinder) -> tuple[CaseFile, CaseFile]:
    """Return two versions of a file without the parts of a long one that both have.

    Such parts stay if some of the other rows have names of theirs, so that these are paired as in
    the whole files. Where the others have many cases, all stay: few would be left out.
    """
    if not (isinstance(was.cases, StoredCases) and isinstance(now.cases, StoredCases)):
        return was, now
    old, new = (list(cases.smallest_parts()) for cases in (was.cases, now.cases))
    same = {part.node for part in old} & {part.node for part in new}
    if not same:
        return was, now
    kept, others = ([part for part in parts if part.node not in same] for parts in (old, new))
    same = finder.find_apart(same, (part.node for part in (*kept, *others)))
    kept, others = ([part for part in parts if part.node not in same] for parts in (old, new))
    if sum(part.size for part in (*kept, *others)) > 2 * _FEW:
        return was, now
    before, after = tuple(was.cases.read(kept)), tuple(now.cases.read(others))
    return replace(was, cases=before), replace(now, cases=after)
