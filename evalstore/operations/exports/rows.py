"""Yields the rows of an export, while the results are read from the store."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from evalstore.clock import iso
from evalstore.operations.exports.columns import SCHEMA_VERSION, Row
from evalstore.operations.measured_results import measure_results
from evalstore.operations.prompt_names import prompt_label
from evalstore.operations.rendering import answer_text
from evalstore.operations.revision_results import find_results, open_revision
from evalstore.operations.stats_filter import Filter
from evalstore.operations.views.failed_results import Place, failed_in_run, place_of
from evalstore.store.results import iterate_results, join_feedback

if TYPE_CHECKING:
    from evalstore.planning.options import Location
    from evalstore.planning.project import Project
    from evalstore.reports.group_totals import CallFacts, MeasuredResult
    from evalstore.runs import Run
    from evalstore.values import Case

_AT_ONCE = 500
"""Results whose answers are in memory together: one may have megabytes."""


class Export(NamedTuple):
    """The results of a revision, which are read one after the other."""

    project: Project
    run: Run
    """The run; for the workspace, one that is not stored."""
    rows: Iterator[Row]


@contextmanager
def open_export(location: Location, revision: str) -> Iterator[Export]:
    """Open the results of a run, or of the workspace as it is now (`@work`).

    Raises `RevisionError` for an unknown run, and `WorkspaceError` when the workspace has errors.
    """
    with open_revision(location, revision) as project:
        run, batches = find_results(project, revision)
        results = measure_results(
            project.store, run.verdict_rule, batches, Filter(project, run, None), lambda usd, _: usd
        )
        yield Export(project, run, _read_rows(project, run, results))


def _read_rows(
    project: Project, run: Run, results: Iterator[tuple[MeasuredResult, Case]]
) -> Iterator[Row]:
    names: dict[str | None, str | None] = {None: None}
    started = iso(run.started)
    failed = _find_failed(project, run)
    while batch := list(islice(results, _AT_ONCE)):
        cells = [measured.result for measured, _ in batch]
        feedback = project.store.find_feedback(id for cell in cells for id in cell.evaluations)
        answers = project.store.find_answers(cell.sessions[0] for cell in cells if cell.sessions)
        for measured, case in batch:
            cell = measured.result
            if cell.prompt not in names:
                names[cell.prompt] = prompt_label(project, cell.prompt)
            answer = answers.get(cell.sessions[0]) if cell.sessions else None
            yield {
                "schemaVersion": SCHEMA_VERSION,
                "run": run.id,
                "started": started,
                "file": cell.file,
                "row": cell.row,
                "prompt": names[cell.prompt],
                "promptId": cell.prompt,
                "model": cell.model,
                "tags": list(case.tags),
                "verdict": "no reply" if place_of(cell) in failed else cell.word,
                "score": cell.score,
                "feedback": join_feedback(cell.evaluations, feedback),
                "answer": None if answer is None else answer_text(answer),
                "attempts": cell.wanted,
                "answers": len(cell.sessions),
                "judgements": len(cell.evaluations),
                "cost": _sum_costs(measured.answers),
                "judgingCost": _sum_costs(measured.judgements),
                "latency": _mean_seconds(measured.answers),
                "test": cell.test,
                "evaluation": cell.evaluation,
                "sessions": list(cell.sessions),
                "evaluations": list(cell.evaluations),
            }


def _find_failed(project: Project, run: Run) -> set[Place]:
    """Return the places of the results of a run that are missing because a call failed."""
    if not run.failed:
        return set()
    results = (result for batch in iterate_results(project.store, run) for result in batch)
    missing = [result for result in results if result.is_missing]
    return failed_in_run(project.store, run, missing) if missing else set()


def _sum_costs(calls: Sequence[CallFacts]) -> float | None:
    """Return the cost of calls; None if the price of one is not known."""
    total = 0.0
    for call in calls:
        if call.cost is None:
            return None
        total += call.cost
    return round(total, 8)


def _mean_seconds(calls: Sequence[CallFacts]) -> float | None:
    """Return the mean duration of calls; None if no duration is known."""
    known = [call.seconds for call in calls if call.seconds is not None]
    return round(sum(known) / len(known), 6) if known else None
