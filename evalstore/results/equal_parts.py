"""Finds the parts of long files whose results are the same on both sides of a comparison.

Their sums are in the cache of settled parts, so that their results need not be read.
"""

from __future__ import annotations

from array import array
from dataclasses import replace
from itertools import chain, islice
from typing import TYPE_CHECKING

from evalstore.comparison.comparison import EqualPart
from evalstore.comparison.statistics import Counts, count_rows
from evalstore.planning.cells.settled_cache import CACHE, SettledPart, read_settled_cache
from evalstore.planning.cells.settled_parts import SettledParts, find_settled
from evalstore.planning.options import is_partial
from evalstore.store.results import read_cells
from evalstore.store.trees.case_files import StoredCases, long_parts_of
from evalstore.store.trees.cases_of_parts import cases_of_parts
from evalstore.store.trees.path_trees import find_entry, read_tree
from evalstore.workspace.digest_set import digest_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from evalstore.core.results import Result
    from evalstore.core.runs import Run
    from evalstore.core.values import CaseFile
    from evalstore.planning.options import SelectionOptions
    from evalstore.planning.project import Project
    from evalstore.store import Store
    from evalstore.store.trees.case_finder import CaseFinder

_AT_ONCE = 10_000
"""Answers whose questions are read together."""


def find_equal_parts(
    project: Project, was: Run, now: Run | None, selection: SelectionOptions
) -> SettledParts:
    """Return the parts that have the same results in both runs, and lack none.

    Those that are not cached are read. Without the newer run they are the settled parts that a run
    would leave as they were in the older one. There are none when the sides have other test files,
    as rows of theirs may be those of other files, nor when some cases or candidates are selected.
    """
    store, load = project.store, project.store.load_nodes
    workspace, nodes = project.workspace, project.reading.nodes
    if selection.paths or selection.models:
        return SettledParts()
    if now is None and not (workspace.private / CACHE).exists():
        return SettledParts()
    if is_partial(was) or (now and is_partial(now)):
        return SettledParts()
    before = read_tree(was.snapshot, load)
    if before.keys() != (read_tree(now.snapshot, load) if now else nodes).keys():
        return SettledParts()
    entries = read_tree(was.results, load)
    equal, elsewhere = SettledParts(), set[str]()
    if now is None:
        settled = find_settled(project, selection)
        for path in settled.by_file.keys() & entries.keys():
            ids = find_parts(store, [entries[path]])
            same = {first: part for first, part in settled.of(path).items() if part.results in ids}
            equal.by_file |= {path: same} if same else {}
        for path in entries if equal else ():
            if before.get(path) != nodes.get(path):
                here = {part.results for part in equal.of(path).values()}
                elsewhere |= find_parts(store, [entries[path]]) - here
        return _without_results(equal, elsewhere)
    leaves = read_tree(now.results, load)
    long = store.find_divided({*entries.values(), *leaves.values()})
    parts = {leaf: find_parts(store, [leaf]) for leaf in long}
    known = _known_parts(project) if parts else {}
    for path in sorted(entries.keys() | leaves.keys()) if parts else ():
        was_ids, now_ids = (parts.get(side.get(path, ""), set()) for side in (entries, leaves))
        elsewhere |= was_ids ^ now_ids
        in_both = sorted(was_ids & now_ids)
        unknown = [node for node in in_both if node not in known]
        sums = {node: _sum_part(node, read_cells(store, node)) for node in unknown}
        shared = (known.get(node) or sums[node] for node in in_both)
        if found := dict(enumerate(part for part in shared if part)):
            equal.by_file[path] = found
    return _without_results(equal, elsewhere)


def _sum_part(id: str, results: Sequence[Result]) -> SettledPart | None:
    """Return the sums of the results of a part; None if some answers or judgements are missing.

    It has digests of its answers in the place of those of its questions, which are not read.
    """
    if not results or any(result.is_missing for result in results):
        return None
    verdicts = count_rows([each.row for each in results], [each.verdict for each in results])
    sessions = dict.fromkeys(chain.from_iterable(each.sessions for each in results))
    return SettledPart(
        "",
        "",
        id,
        cells=len(results),
        clusters=[(*counts, times) for counts, times in verdicts.items()],
        prompts=[*dict.fromkeys((each.prompt, each.prompt_number) for each in results)],
        sessions=array("Q", map(digest_of, sessions)),
    )


def _without_results(parts: SettledParts, ids: Collection[str]) -> SettledParts:
    """Return the parts without those with one of these nodes as their results.

    Another file has the same results on one side only, and there they must not be left out.
    """
    return parts.only(
        [(path, first) for path, first, part in parts.places() if part.results not in ids]
    )


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


def find_parts(store: Store, leaves: Collection[str]) -> set[str]:
    """Return the ids of the results of the parts of long files with these results."""
    roots = store.load_leaves(leaves).values() if leaves else ()
    return {id for root in roots for id in long_parts_of(root, store.load_leaves)}


def _known_parts(project: Project) -> dict[str, SettledPart]:
    """Return the settled parts that are cached, by the node of their results."""
    workspace = project.workspace
    cache = read_settled_cache(workspace.private / CACHE, workspace.boundary)
    return {part.results: part for part in cache.parts.values()} if cache else {}


def without_rows_of(store: Store, parts: SettledParts, *sides: Iterable[Result]) -> SettledParts:
    """Return the parts that share no rows with these results, as `share_rows` finds them."""
    if not parts:
        return parts
    ids = (id for results in sides for result in results for id in result.sessions)
    asked, answers = set[int](), set[int]()
    has_answers = any(part.sessions for part in parts)
    while batch := list(islice(ids, _AT_ONCE)):
        questions = {*store.find_questions_of(batch).values()}
        asked |= set(map(digest_of, questions))
        for samples in store.find_samples(questions if has_answers else ()).values():
            answers |= {digest_of(sample.id) for sample in samples}
    return parts.without(asked, answers)


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
    with_names = finder.parts_sharing([part for part in new if part.node in same], [*kept, *others])
    same -= {part.node for part in with_names}
    before, after = (
        cases_of_parts(cases, [part for part in parts if part.node not in same])
        for cases, parts in ((was.cases, old), (now.cases, new))
    )
    return replace(was, cases=before), replace(now, cases=after)


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
