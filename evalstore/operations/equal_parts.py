"""Finds the parts of long files whose results are the same on both sides of a comparison.

Their sums are in the cache of settled parts, so that their results need not be read.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from evalstore.planning.options import is_partial
from evalstore.planning.settled_cache import CACHE, read_settled_cache
from evalstore.planning.settled_parts import SettledParts, find_settled
from evalstore.reports.comparison import EqualPart
from evalstore.reports.statistics import Counts
from evalstore.store.case_files import StoredCases, long_parts_of
from evalstore.store.path_trees import find_entry, read_tree
from evalstore.workspace.digest_set import digest_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from evalstore.planning.options import SelectionOptions
    from evalstore.planning.project import Project
    from evalstore.planning.settled_cache import SettledPart
    from evalstore.results import Result
    from evalstore.runs import Run
    from evalstore.store import Store
    from evalstore.values import CaseFile
    from evalstore.workspace.folder import WorkspaceFolder

_REPEATED = re.compile(r" #\d+$").search


def find_equal_parts(
    project: Project, was: Run, now: Run | None, selection: SelectionOptions
) -> SettledParts:
    """Return the settled parts that have the same results in both runs.

    Without the newer run they are those that a run would leave as they were in the older one. There
    are none when the sides have other test files, as rows of theirs may be those of other files,
    nor when some cases or candidates are selected.
    """
    store, load = project.store, project.store.load_nodes
    workspace, nodes = project.workspace, project.reading.nodes
    if selection.paths or selection.models or not (workspace.private / CACHE).exists():
        return SettledParts()
    if is_partial(was) or (now and is_partial(now)):
        return SettledParts()
    before = read_tree(was.snapshot, load)
    if before.keys() != (read_tree(now.snapshot, load) if now else nodes).keys():
        return SettledParts()
    entries = read_tree(was.results, load)
    if now is None:
        found = find_settled(project, selection)
        ids = find_parts(store, {entries[path] for path in found.by_file if path in entries})
        return found.only(
            [(path, first) for path, first, part in found.places() if part.results in ids]
        )
    known = known_parts(project)
    equal = SettledParts()
    for path, leaf in read_tree(now.results, load).items() if known else ():
        if path in entries:
            ids = find_parts(store, {leaf})
            if leaf != entries[path]:
                ids &= find_parts(store, {entries[path]})
            parts = [known[id] for id in ids & known.keys()]
            if parts:
                equal.by_file[path] = dict(enumerate(parts))
    return equal


def find_unchanged_parts(project: Project, selection: SelectionOptions) -> SettledParts:
    """Return the settled parts of which there is nothing to tell since the last run.

    Their files are those of the last run, and their results those of the newest run with results of
    the file. There are none when people gave labels since, as these are counted case by case.
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
    waiting = {
        path for path in settled.by_file if find_entry([root], path, load).get(root) == nodes[path]
    }
    unchanged: list[tuple[str, int]] = []
    for run in store.find_recent_runs() if waiting else ():
        for path in sorted(waiting):
            leaf = find_entry([run.results], path, load).get(run.results)
            if leaf:
                ids = find_parts(store, {leaf})
                parts = settled.of(path).items()
                unchanged += [(path, first) for first, part in parts if part.results in ids]
                waiting.discard(path)
        if not waiting:
            break
    return settled.only(unchanged)


def find_parts(store: Store, leaves: Collection[str]) -> set[str]:
    """Return the ids of the results of the parts of long files with these results."""
    roots = store.load_leaves(leaves).values() if leaves else ()
    return {id for root in roots for id in long_parts_of(root, store.load_leaves)}


def known_parts(project: Project) -> dict[str, SettledPart]:
    """Return the settled parts that are cached, by the node of their results."""
    return known_parts_in(project.workspace)


def known_parts_in(workspace: WorkspaceFolder) -> dict[str, SettledPart]:
    """Return those that are cached in a workspace."""
    cache = read_settled_cache(workspace.private / CACHE, workspace.boundary)
    return {part.results: part for part in cache.parts.values()} if cache else {}


def share_rows(store: Store, parts: Iterable[SettledPart], *sides: Iterable[Result]) -> bool:
    """Return whether some of these results may be of rows with the values of rows of the parts.

    Equal rows ask the same question.
    """
    listed = list(parts)
    if not listed:
        return False
    sessions = (id for results in sides for result in results for id in result.sessions)
    asked = set(map(digest_of, store.find_questions_of(sessions).values()))
    return bool(asked) and any(not asked.isdisjoint(part.questions) for part in listed)


def leave_out_same(was: CaseFile, now: CaseFile) -> tuple[CaseFile, CaseFile]:
    """Return two versions of a file without the parts of a long one that both have.

    They are whole if some of the other rows may be those of these parts.
    """
    if not (isinstance(was.cases, StoredCases) and isinstance(now.cases, StoredCases)):
        return was, now
    nodes = {part.node for part in was.cases.parts()} & {part.node for part in now.cases.parts()}
    sides: list[CaseFile] = []
    for file, cases in ((was, was.cases), (now, now.cases)):
        same = {part.first for part in cases.parts() if part.node in nodes}
        others = tuple(case for _, case in cases.iterate_outside(same))
        if any(_REPEATED(case.row) for case in others):
            return was, now
        sides.append(replace(file, cases=others))
    return sides[0], sides[1]


def as_equal(parts: SettledParts) -> list[EqualPart]:
    """Return the sums of these parts for a comparison."""
    return [
        EqualPart(
            path,
            part.cells,
            tuple((Counts(*counts), times) for *counts, times in part.clusters),
        )
        for path, _, part in parts.places()
    ]
