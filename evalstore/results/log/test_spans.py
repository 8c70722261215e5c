"""Groups consecutive runs in which a test was the same, with its results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from evalstore.comparison.candidate_edits import Candidates, candidates_after
from evalstore.core.errors import EvalstoreError
from evalstore.core.values import Case, CaseFile
from evalstore.planning.cells.row_index import RowIndex
from evalstore.planning.options import SelectionOptions
from evalstore.planning.reasons.path_history import follow_file
from evalstore.planning.results import as_result, compute_results
from evalstore.store.results import results_of
from evalstore.store.trees.case_chunks import find_same
from evalstore.store.trees.path_trees import find_entry

if TYPE_CHECKING:
    from evalstore.core.results import Result
    from evalstore.core.runs import Run
    from evalstore.planning.project import Project
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
    judged_in: dict[str, str] = field(default_factory=dict)
    """The run that has the results, by candidate."""
    last_run: str | None = None
    """The newest run with results of the case."""
    is_limited: bool = False
    """Whether all runs so far were limited to some candidates, so that others are unknown."""
    named: frozenset[str] = frozenset()
    """The candidates that only `-m` has named, for runs since the last one that was not limited."""
    unnamed: frozenset[str] = frozenset()
    """Those of the span before that a run which was not limited lacks: they were not removed."""

    def has_candidates(self, candidates: Candidates) -> bool:
        """Return whether candidates of a later run are the same, as far as they were known."""
        if not self.is_limited:
            return self.candidates == candidates
        return all(candidates.get(id) == known for id, known in self.candidates.items())

    @property
    def lacks_verdicts(self) -> bool:
        """Return whether a candidate has no verdict on the case, with one of its prompts."""
        assert self.case
        judged = {_cell(result) for result in self.results if result.word != "pending"}
        prompts = range(len(self.case.prompts))
        return any((model, prompt) not in judged for model in self.candidates for prompt in prompts)

    def add_older(self, results: Iterable[Result], runs: Mapping[str, str]) -> None:
        """Add older results for the cells without a verdict; `runs` has the run by candidate."""
        known = {_cell(result): result for result in self.results}
        for result in results:
            newer = known.get(_cell(result))
            if newer is None or (newer.word == "pending" and result.word != "pending"):
                known[_cell(result)] = result
                self.judged_in[result.model] = runs[result.model]
        self.results = list(known.values())

    def add_newer(self, span: VersionSpan) -> None:
        """Add the results of a later span, in which the version is the same."""
        span.add_older(self.results, self.judged_in)
        self.results, self.judged_in = span.results, span.judged_in
        self.last_run = span.last_run or self.last_run


def _cell(result: Result) -> tuple[str, int]:
    return result.model, result.prompt_number


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
        is_limited = (last is None or last.is_limited) and "models" in run.selection
        named, unnamed = _find_named(last, run)
        if last is None or node != last.node or not last.has_candidates(candidates):
            last = VersionSpan(run.id, run.started, node, candidates, unnamed=unnamed)
            spans.append(last)
        last.candidates, last.is_limited, last.named = candidates, is_limited, named
        if node and run.results in leaves:
            last.leaves.append((run.id, leaves[run.results]))
    return spans


def _find_named(last: VersionSpan | None, run: Run) -> tuple[frozenset[str], frozenset[str]]:
    """Return the candidates that only `-m` has named, and those that it names no longer."""
    candidates = frozenset(candidate.id for candidate in run.candidates)
    if last is None:
        return frozenset(), frozenset()
    if "models" in run.selection:
        return last.named | (candidates - last.candidates.keys()), frozenset()
    return frozenset(), last.named - candidates


def join_spans(spans: Iterable[VersionSpan], files: Mapping[str, CaseFile]) -> list[VersionSpan]:
    """Return the spans, joining neighbours with the same cases in different nodes."""
    joined: list[VersionSpan] = []
    for span in spans:
        last = joined[-1] if joined else None
        if (
            last
            and last.node
            and span.node
            and last.has_candidates(span.candidates)
            and find_same(span.node, files[span.node], {last.node: files[last.node]})
        ):
            last.leaves += span.leaves
            last.candidates, last.is_limited = span.candidates, span.is_limited
            last.named = span.named
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
    """Add the results of each span: of each candidate those of the newest run with a verdict.

    Older runs are read only while a candidate of the span has no verdict.
    """
    waiting = {
        number: iter(_newest_first(span.leaves)) for number, span in enumerate(spans) if span.case
    }
    while waiting:
        read = {number: entry for number, left in waiting.items() if (entry := next(left, None))}
        rows: dict[str, set[str]] = {}
        for number, (_, leaf) in read.items():
            rows.setdefault(leaf, set()).add(_row(spans[number]))
        results = results_of(store, file, rows) if rows else {}
        for number, (run, leaf) in read.items():
            row = _row(spans[number])
            found = [result for result in results[leaf] if result.row == row]
            spans[number].last_run = spans[number].last_run or (run if found else None)
            spans[number].add_older(found, {result.model: run for result in found})
        waiting = {number: waiting[number] for number in read if spans[number].lacks_verdicts}


def _newest_first(leaves: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return each leaf once, with the newest run that has it."""
    newest: dict[str, str] = {}
    for run, leaf in leaves[::-1]:
        newest.setdefault(leaf, run)
    return [(run, leaf) for leaf, run in newest.items()]


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
