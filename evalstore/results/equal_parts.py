"""Finds the parts of long files that are the same as before, so that they need not be read."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import TYPE_CHECKING

from evalstore.core import batches
from evalstore.core.runs import Run
from evalstore.core.values import Case, CaseFile
from evalstore.files.temporary_list import NumberedSequence
from evalstore.planning.options import SelectionOptions
from evalstore.planning.settled_parts import SettledParts, find_settled
from evalstore.results.edits.participant_edits import differ_participants
from evalstore.store.trees.tree_nodes import (
    CasePart,
    StoredCases,
    find_entry,
    long_parts_of,
    read_tree,
)

if TYPE_CHECKING:
    from evalstore.planning.project import Project
    from evalstore.store import Store
    from evalstore.store.trees.tree_nodes import CaseFinder


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
    from evalstore.planning.status_report import workspace_as_run

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
    from evalstore.planning.status_report import compute_workspace

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
    the whole files.
    """
    if not (isinstance(was.cases, StoredCases) and isinstance(now.cases, StoredCases)):
        return was, now
    old, new = (list(cases.smallest_parts()) for cases in (was.cases, now.cases))
    same = {part.node for part in old} & {part.node for part in new}
    if not same:
        return was, now
    kept, others = ([part for part in parts if part.node not in same] for parts in (old, new))
    same = finder.store.find_apart(same, (part.node for part in (*kept, *others)))
    before, after = (
        cases_of_parts(cases, [part for part in parts if part.node not in same])
        for cases, parts in ((was.cases, old), (now.cases, new))
    )
    return replace(was, cases=before), replace(now, cases=after)


# --- the cases of some parts of a file with many of them


_FEW = 10_000
"""The most cases that stay in memory."""


def cases_of_parts(cases: StoredCases, parts: Sequence[CasePart]) -> Sequence[Case]:
    """Return the cases of those of the smallest parts that are given; many are read later."""
    if sum(part.size for part in parts) <= _FEW:
        return tuple(cases.read(parts))
    return _CasesOfParts(cases, parts)


class _CasesOfParts(NumberedSequence["Case"]):
    """Cases that are read when they are used; those next to each other are read together."""

    def __init__(self, cases: StoredCases, parts: Sequence[CasePart]) -> None:
        self._cases, self._parts = cases, parts
        self._starts = [0, *accumulate(part.size for part in parts)]
        """The number of the first case of each part, and how many cases there are."""
        self._first = 0
        self._block: Sequence[Case] = ()
        """The cases that were read last, from number `_first` on."""

    def __len__(self) -> int:
        return self._starts[-1]

    def __iter__(self) -> Iterator[Case]:
        return self._cases.read(self._parts)

    def read_one(self, number: int) -> Case:
        """Return the case with a number."""
        if not 0 <= number - self._first < len(self._block):
            part = bisect_right(self._starts, number) - 1
            start = part - part % batches.SMALL_SIZE
            self._first = self._starts[start]
            self._block = tuple(self._cases.read(self._parts[start : start + batches.SMALL_SIZE]))
        return self._block[number - self._first]
