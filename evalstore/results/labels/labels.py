"""Finds the labels of people for results.

A recorded run does not change. A label that is added later is shown beside its verdict, and counts
in the workspace and in later runs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain

from evalstore.checks.aggregation import combine_votes
from evalstore.core.errors import EvalstoreError
from evalstore.core.results import Evaluation, Result
from evalstore.core.runs import Run
from evalstore.core.values import Word
from evalstore.planning.open_project import open_project
from evalstore.planning.options import Location
from evalstore.planning.plan import Plan
from evalstore.results.verdict_order import PERSON, SIGNS
from evalstore.store import Store
from evalstore.store.results import SessionResults
from evalstore.store.rows.result_sums import open_sums


@dataclass(frozen=True, slots=True)
class PersonLabel:
    """The label of a person on an answer."""

    id: str
    """The id of the judgement."""
    person: str
    verdict: Word
    """The verdict; `none` if the label is removed."""
    note: str
    at: int
    """Microseconds since 1970, UTC."""
    sessions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LabelIndex:
    """An index of all labels by the results to which they belong."""

    by_place: Mapping[tuple[str, str], Sequence[PersonLabel]] = field(default_factory=dict)
    """The labels by evaluation version and first session, oldest first."""

    def of(self, result: Result) -> list[PersonLabel]:
        """Return the labels on a result under its evaluation version.

        These are the labels that count in its verdict, and the last later label of each person. A
        later label that was removed again is left out.
        """
        if not self.by_place or result.evaluation is None:
            return []
        given = [
            label
            for session in dict.fromkeys(result.sessions)
            for label in self.by_place.get((result.evaluation, session), ())
        ]
        if not given:
            return []
        together = {*result.subjects}
        words = [
            each for each in given if each.id in result.evaluations or each.sessions in together
        ]
        last = {(word.person, word.sessions): word.id for word in words}
        counted = {(word.person, word.sessions) for word in words if word.id in result.evaluations}
        return [
            word
            for word in words
            if word.id in result.evaluations
            or (
                word.id == last[word.person, word.sessions]
                and (word.verdict != "none" or (word.person, word.sessions) in counted)
            )
        ]

    def current(self, result: Result, session: str | None = None) -> list[PersonLabel]:
        """Return the last label of each person, if not removed, on each attempt or on one."""
        last = {(label.person, label.sessions): label for label in self.of(result)}
        given = (label for label in last.values() if label.verdict != "none")
        return [label for label in given if session in (None, *label.sessions)]

    def later(self, result: Result) -> list[PersonLabel]:
        """Return the labels that were added after the run and do not count in its verdict."""
        return [label for label in self.of(result) if label.id not in result.evaluations]

    def word(self, result: Result) -> Word | None:
        """Return the verdict of all labels if there are later ones, of which the majority decides.

        None without later labels, and `none` if they only remove labels.
        """
        if not self.later(result):
            return None
        words = [(each.verdict, None) for each in self.current(result) if each.verdict != "none"]
        return combine_votes(words).verdict if words else "none"

    def decides(self, result: Result) -> bool:
        """Return whether the verdict on a result is that of a label."""
        return any(label.id in result.evaluations for label in self.of(result))

    def signs(self, result: Result) -> str:
        """Return the sign of a person who decided a result, or labelled it after the run."""
        if word := self.word(result):
            return f"{PERSON}{SIGNS[word]}"
        return PERSON if self.decides(result) else ""


def read_labels(store: Store) -> LabelIndex:
    """Read all labels in the store."""
    labels_of: dict[tuple[str, str], list[PersonLabel]] = {}
    for label in store.find_labels():
        evaluation = label.evaluation
        said = evaluation.verdict, evaluation.feedback
        person_label = PersonLabel(label.id, label.person, *said, label.at, evaluation.sessions)
        place = evaluation.evaluation, evaluation.sessions[0]
        labels_of.setdefault(place, []).append(person_label)
    return LabelIndex(labels_of)


def current_labels(store: Store) -> list[Evaluation]:
    """Return the last label of each person on each answer, without those that were removed."""
    labels = {
        (label.person, label.evaluation.evaluation, label.evaluation.sessions): label.evaluation
        for label in store.find_labels()
    }
    return [label for label in labels.values() if label.verdict != "none"]


def count_labelled(store: Store, root: str) -> int:
    """Return how many results of a tree a label decides; they are read only if there are labels."""
    if not store.find_labels():
        return 0
    with open_sums(store, root) as sums:
        return sums.count_labelled()


# --- counts the labels on planned cases that were given, or removed, since a run


_Subject = tuple[str, tuple[str, ...]]
"""An evaluation version, and the sessions that are judged by it."""


class NewLabels:
    """Counts them in the plans of all cells, batch by batch."""

    def __init__(self, store: Store, since: int) -> None:
        """`since` is when the run ended."""
        self._since = since
        self._labels = store.find_labels()
        if not self._labels or self._labels[-1].at <= since:
            self._labels = []
        self._places: set[_Subject] = {
            (label.evaluation.evaluation, label.evaluation.sessions) for label in self._labels
        }
        self._planned: set[_Subject] = set()

    def add(self, plan: Plan) -> None:
        """Add the plan of a batch."""
        self._planned |= self._places.intersection(
            (cell.case.evaluation, tuple(subject))
            for cell in (plan.cells if self._places else ())
            if cell.case.evaluation
            for subject in cell.subjects(plan.sessions)
        )

    def count(self) -> int:
        """Return how many labels there are, after all plans were added."""
        before: dict[tuple[str, str, tuple[str, ...]], str] = {}
        now = before.copy()
        for label in self._labels:
            place = label.evaluation.evaluation, label.evaluation.sessions
            if place in self._planned:
                now[label.person, *place] = "" if label.evaluation.verdict == "none" else label.id
                if label.at <= self._since:
                    before |= now
        return sum(before.get(key, "") != last for key, last in now.items())


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
