"""Finds the labels that came after a run, and the verdicts that its results have with them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Set
from contextlib import suppress
from itertools import chain

from evalstore.core.errors import EvalstoreError
from evalstore.core.results import Result
from evalstore.core.runs import Run
from evalstore.planning.open_project import open_project
from evalstore.planning.options import Location
from evalstore.results.labels.labels import read_labels
from evalstore.store import Store
from evalstore.store.results import SessionResults

LABELLED_LATER = (
    "some labels were added, changed or removed after this run; the workspace counts them, "
    "unless an edit came later"
)


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

    Where the instructions or checks were edited since, only labels on the edited case count.
    """
    labels = read_labels(store)
    sessions = {session for _, session in labels.by_place}
    labelled = [result for result in results if not sessions.isdisjoint(result.sessions)]
    if not labelled:
        return {}
    # A system prompt may have another number now, and its answers are of no other one.
    now = {
        (each.file, each.row, each.model, each.sessions): each
        for each in _results_now(location, labelled)
    }
    return {
        was: found
        for was in labelled
        if (found := now.get((was.file, was.row, was.model, was.sessions)))
        and (labels.later(was) if found.evaluation == was.evaluation else labels.decides(found))
    }


def find_counted_labels(
    location: Location, store: Store, results: Collection[Result]
) -> Set[str] | None:
    """Return the ids of the labels that count in the workspace on the cases of these results.

    None if the workspace has none of the cases, or has errors.
    """
    labels, now = read_labels(store), _results_now(location, results)
    return {label.id for each in now for label in labels.of(each)} if now else None


def _results_now(location: Location, results: Iterable[Result]) -> list[Result]:
    """Return the results that the workspace has of these cases; none if it has errors."""
    from evalstore.planning.status_report import results_at

    places = dict.fromkeys((each.file, each.row) for each in results)
    with suppress(EvalstoreError), open_project(location) as project:
        return [*results_at(project, places)]
    return []
