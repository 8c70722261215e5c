"""Finds the labels that came after a run, and the verdicts that its results have with them."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from itertools import chain
from typing import TYPE_CHECKING

from evalstore.core.errors import EvalstoreError
from evalstore.planning.open_project import open_project
from evalstore.planning.options import SelectionOptions
from evalstore.results.growing_results import cell_of
from evalstore.results.labels.labels import read_labels
from evalstore.store.results import SessionResults

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from evalstore.core.results import Result
    from evalstore.core.runs import Run
    from evalstore.planning.options import Location
    from evalstore.store import Store


def describe_later_labels(store: Store, run: Run) -> Iterator[tuple[Result, str]]:
    """Yield each result of a run that was labelled after it, with how and by whom."""
    labels, sessions = read_labels(store), SessionResults(store)
    newer = {each.sessions[0] for each in chain(*labels.by_place.values()) if each.at > run.started}
    for session in newer:
        for result in sessions.find(run.results, session):
            later = Counter((each.verdict, each.person) for each in labels.later(result))
            total = len(result.sessions) // len(result.tests)
            if texts := [_text(*label, count, total) for label, count in later.items()]:
                yield result, f"{', '.join(texts)} after the run"


def _text(verdict: str, person: str, count: int, total: int) -> str:
    """Return who gave or removed labels, and on how many of several attempts."""
    attempts = f"{count} of {total} attempts" if total > 1 else ""
    if verdict == "none":
        return f"label by {person} removed{f' from {attempts}' * bool(attempts)}"
    return f"{attempts} labelled {verdict} by {person}".lstrip()


def with_later_labels(
    location: Location, store: Store, results: Collection[Result]
) -> Mapping[Result, Result]:
    """Return the results of runs that were labelled later, each with its verdict in the workspace.

    Those whose case was edited since are left out: the label is not about the edited case.
    """
    labels = read_labels(store)
    labelled = [result for result in results if labels.later(result)]
    with suppress(EvalstoreError):  # what a run says is shown where the workspace cannot be read
        if labelled:
            return _count_now(location, labelled)
    return {}


def _count_now(location: Location, results: Collection[Result]) -> Mapping[Result, Result]:
    from evalstore.planning.planner import resolve_scope
    from evalstore.planning.results import as_result
    from evalstore.planning.status.workspace_results import compute_workspace

    with open_project(location) as project:
        root = project.workspace.root
        names = (f"{root / each.file}" + f"::{each.row}" * bool(each.row) for each in results)
        scope = resolve_scope(project, SelectionOptions(tuple(dict.fromkeys(names))))
        now = {
            (cell_of(result), result.sessions, result.evaluation): result
            for _, cells in compute_workspace(project, scope)
            for result in map(as_result, cells)
        }
    found = ((each, now.get((cell_of(each), each.sessions, each.evaluation))) for each in results)
    return {was: counted for was, counted in found if counted}
