"""Groups consecutive runs in which a test was the same, with its results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from evalstore.errors import EvalstoreError
from evalstore.planning.options import SelectionOptions
from evalstore.planning.renames import follow_file
from evalstore.planning.results import as_result, compute_results
from evalstore.planning.row_index import RowIndex
from evalstore.store.case_chunks import find_same
from evalstore.store.path_trees import find_entry
from evalstore.store.results import results_of
from evalstore.values import Case, CaseFile, Json

if TYPE_CHECKING:
    from evalstore.planning.project import Project
    from evalstore.results import Result
    from evalstore.store import Store

CandidateModels = Mapping[str, tuple[str, Json]]
"""Display id of a candidate -> the id of its model version and its temperature."""


@dataclass
class VersionSpan:
    """Consecutive runs with the same version of a test file and of its candidates."""

    run: str | None
    started: int
    node: str | None
    candidates: CandidateModels
    leaves: list[str] = field(default_factory=list)
    """The leaves of the result trees with its results, oldest first."""
    case: Case | None = None
    results: list[Result] = field(default_factory=list)


def find_spans(store: Store, file: str, folder: str) -> list[VersionSpan]:
    """Return the spans of the runs that have a file, oldest first.

    `file` is its path in the newest of these runs.
    """
    newest_first = store.find_runs()
    runs = newest_first[::-1]
    then = [*follow_file(store, newest_first, file, folder)][::-1]
    leaves: dict[str, str] = {}
    for path in {path for path, _ in then}:
        roots = {run.results for run, (at, _) in zip(runs, then, strict=True) if at == path}
        leaves |= find_entry(roots, path, store.load_nodes)
    spans: list[VersionSpan] = []
    for run, (_, node) in zip(runs, then, strict=True):
        last = spans[-1] if spans else None
        if last is None and node is None:
            continue
        candidates: CandidateModels = {
            candidate.id: (candidate.model, candidate.temperature) for candidate in run.candidates
        }
        if last and "models" in run.selection:
            candidates = last.candidates  # only this run was limited to some candidates
        if last is None or (node, candidates) != (last.node, last.candidates):
            last = VersionSpan(run.id, run.started, node, candidates)
            spans.append(last)
        if node and run.results in leaves:
            last.leaves.append(leaves[run.results])
    return spans


def join_spans(spans: Iterable[VersionSpan], files: Mapping[str, CaseFile]) -> list[VersionSpan]:
    """Return the spans, joining neighbours with the same cases in different nodes."""
    joined: list[VersionSpan] = []
    for span in spans:
        last = joined[-1] if joined else None
        if (
            last
            and last.node
            and span.node
            and last.candidates == span.candidates
            and find_same(span.node, files[span.node], {last.node: files[last.node]})
        ):
            last.leaves += span.leaves
        else:
            joined.append(span)
    return joined


def add_workspace(
    spans: list[VersionSpan], files: dict[str, CaseFile], project: Project | None, file: str
) -> None:
    """Add the current version of the file if the newest run has another one."""
    if project is None or (file in project.reading.tests and file not in project.reading.files):
        return
    node = project.reading.nodes.get(file)
    last = spans[-1].node if spans else None
    if node == last or (
        node and last and find_same(node, project.reading.files[file], {last: files[last]})
    ):
        return
    candidates = spans[-1].candidates if spans else {}
    now = VersionSpan(None, 0, node, candidates)
    if node is not None:
        files[node] = project.reading.files[file]
    spans.append(now)


def follow_case(spans: Sequence[VersionSpan], files: Mapping[str, CaseFile], row: str) -> None:
    """Find the case in each span: by its label in the newest one, then by its values or label."""
    start = next(
        (
            number
            for number in range(len(spans) - 1, -1, -1)
            if _labelled(spans[number], files, row)
        ),
        None,
    )
    if start is None:
        return
    spans[start].case = _labelled(spans[start], files, row)
    for numbers in (range(start - 1, -1, -1), range(start + 1, len(spans))):
        known = spans[start].case
        assert known is not None
        for number in numbers:
            node = spans[number].node
            spans[number].case = (
                RowIndex(files[node]).find(known) if node and node in files else None
            )
            known = spans[number].case or known


def _labelled(span: VersionSpan, files: Mapping[str, CaseFile], row: str) -> Case | None:
    if span.node is None or span.node not in files:
        return None
    return next((case for case in files[span.node].cases if case.row == row), None)


def add_results(store: Store, spans: Sequence[VersionSpan], file: str) -> None:
    """Add the results of each span: those of its first and its last run."""
    rows: dict[str, set[str]] = {}
    for span in spans:
        for id in _ends(span):
            rows.setdefault(id, set()).update([span.case.row] if span.case else ())
    results = results_of(store, file, rows)
    for span in spans:
        if span.case:
            row = span.case.row
            span.results += [seen for id in _ends(span) for seen in results[id] if seen.row == row]


def _ends(span: VersionSpan) -> list[str]:
    """Return the result leaves of the first and the last run of a span with the case."""
    leaves = (*span.leaves[:1], *span.leaves[-1:]) if span.case else ()
    return list(dict.fromkeys(leaves))


def results_now(project: Project, file: str, row: str) -> list[Result]:
    """Return the results of a case in the workspace, from stored answers and judgements."""
    from evalstore.planning.planner import make_plan

    with suppress(EvalstoreError):
        plan = make_plan(project, SelectionOptions(paths=(f"{file}::{row}",)))
        settled = compute_results(plan, project.settings.verdict)
        return [
            as_result(result)
            for result in settled
            if (result.cell.file, result.cell.case.row) == (file, row)
        ]
    return []
