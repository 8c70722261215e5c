"""Groups consecutive runs in which a test was the same, with its results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from evalstore.errors import EvalstoreError
from evalstore.planning.options import SelectionOptions
from evalstore.planning.path_history import follow_file
from evalstore.planning.results import as_result, compute_results
from evalstore.planning.row_index import RowIndex
from evalstore.reports.candidate_edits import Candidates, candidates_after
from evalstore.store.case_chunks import find_same
from evalstore.store.path_trees import find_entry
from evalstore.store.results import results_of
from evalstore.values import Case, CaseFile

if TYPE_CHECKING:
    from evalstore.planning.project import Project
    from evalstore.results import Result
    from evalstore.store import Store


@dataclass
class VersionSpan:
    """Consecutive runs with the same version of a test file and of its candidates."""

    run: str | None
    started: int
    node: str | None
    candidates: Candidates
    leaves: list[tuple[str, str]] = field(default_factory=list)
    """The runs with results of the file, oldest first: their ids and the leaves of the results."""
    case: Case | None = None
    results: list[Result] = field(default_factory=list)
    judged_in: str | None = None
    """The run that has the results: the first with results of the case."""


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
        candidates = candidates_after(last.candidates if last else {}, run)
        if last is None or (node, candidates) != (last.node, last.candidates):
            last = VersionSpan(run.id, run.started, node, candidates)
            spans.append(last)
        if node and run.results in leaves:
            last.leaves.append((run.id, leaves[run.results]))
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
    """Add the results of each span: those of its first run that has results of the case."""
    waiting = {number: iter(span.leaves) for number, span in enumerate(spans) if span.case}
    while waiting:
        tried: dict[int, tuple[str, str]] = {}
        for number, leaves in waiting.items():
            if leaf := next(leaves, None):
                tried[number] = leaf
        rows: dict[str, set[str]] = {}
        for number, (_, id) in tried.items():
            rows.setdefault(id, set()).add(_row(spans[number]))
        results = results_of(store, file, rows) if rows else {}
        for number, (run, id) in tried.items():
            span = spans[number]
            span.results = [seen for seen in results[id] if seen.row == _row(span)]
            span.judged_in = run if span.results else None
        waiting = {number: waiting[number] for number in tried if spans[number].judged_in is None}


def _row(span: VersionSpan) -> str:
    assert span.case
    return span.case.row


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
