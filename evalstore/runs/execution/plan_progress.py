"""Tracks the progress of a plan: outstanding, answered, queued and failed work.

It depends neither on calls and leases nor on the event loop.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from evalstore.core.hashing import subject_of
from evalstore.core.results import Session, Vote
from evalstore.planning.cells import Cell, Subject
from evalstore.planning.plan import Plan, PlannedAsk, missing_judgements
from evalstore.runs.execution.execution_counts import ExecutionCounts
from evalstore.runs.execution.sharing.work_sharing import Item, lease_key_of


class NewAnswer(NamedTuple):
    """An answer that has arrived, and a cell that judges it."""

    cell: Cell
    id: str
    session: Session


class PlanProgress:
    """The state of one plan while it is carried out; keys are those of `key_of`."""

    def __init__(self, plan: Plan, outcome: ExecutionCounts, failures: Counter[str]) -> None:
        """`failures` counts the failures of each key in this run; plans may share a key."""
        self.plan = plan
        self.outcome = outcome
        self._failures = failures
        self._outstanding: dict[str, int] = {}
        """Key -> how many of its answers or judgements are outstanding."""
        self._queued: set[str] = set()
        """Keys of all judgements that have been queued."""
        self.answers: dict[str, Session] = {}
        """New sessions, by id, of questions with outstanding answers."""
        self._answered: set[str] = set()
        """Questions of groups whose answers were completed since `take_answered`."""
        self._grouped: set[str] = set()
        """Questions whose answers are judged together with others."""
        self._cells: dict[str, list[Cell]] = {}
        """Question id -> the cells it answers."""
        self._single: dict[str, list[Cell]] = {}
        """Question id -> those of them that judge its answers one by one."""
        self._most_required: dict[str, int] = {}
        """Question id -> the most answers that one of these cells needs."""
        for cell in plan.cells:
            for question, _, count in cell.distinct_questions():
                self._cells.setdefault(question, []).append(cell)
                self._most_required[question] = max(count, self._most_required.get(question, 0))
            if len(cell.questions) > 1:
                self._grouped.update(cell.questions)
            else:
                self._single.setdefault(cell.questions[0], []).append(cell)

    # --- outstanding answers and judgements

    def begin(self, key: str, count: int) -> None:
        """Note that `count` answers or judgements are outstanding."""
        self._outstanding[key] = count

    def finish_call(self, key: str) -> bool:
        """Note that one answer or judgement has arrived or failed; returns if none is left."""
        self._outstanding[key] -= 1
        if self._outstanding[key]:
            return False
        del self._outstanding[key]
        return True

    def fail(self, key: str, count: int = 1) -> None:
        """Count failed answers or judgements, also of another runner: they are not tried again."""
        self._failures[key] += count

    def queue(self, key: str) -> bool:
        """Note that a judgement is queued; returns False if it already was."""
        if key in self._queued:
            return False
        self._queued.add(key)
        return True

    def take_open(self, items: Iterable[Item]) -> Iterator[Item]:
        """Yield the items that are still open with their open counts, and queue their judgements.

        Answers and judgements that have failed in this run are not tried again.
        """
        for item in items:
            if isinstance(item, PlannedAsk):
                if (count := item.count - self._failures[item.question_id]) > 0:
                    yield replace(item, count=count) if count < item.count else item
            elif (key := lease_key_of(item)) not in self._failures and self.queue(key):
                yield item

    # --- questions and their cells

    def is_question(self, key: str) -> bool:
        """Return whether a key is that of a question, not of a judgement."""
        return key in self._cells

    def has_outstanding(self, question: str) -> bool:
        """Return whether answers to a question are outstanding."""
        return question in self._outstanding

    def single_cells(self, question: str) -> Sequence[Cell]:
        """Return the cells that judge the answers to a question one by one."""
        return self._single.get(question, ())

    def cells_requiring_all(self, question: str) -> list[Cell]:
        """Return the cells among them that judge every answer."""
        most = self._most_required[question]
        return [cell for cell in self.single_cells(question) if cell.required_answers == most]

    def take_oldest(self, question: str) -> list[NewAnswer]:
        """Return the answers for cells that judge only some, once none is outstanding.

        These are the oldest answers, which are known only when all have arrived.
        """
        new = self.outcome.sessions.get(question, ())
        most = self._most_required[question]
        some = [cell for cell in self.single_cells(question) if cell.required_answers != most]
        oldest = []
        if some:
            stored = len(self.plan.sessions.get(question, ()))
            first = sorted(new, key=lambda sample: sample[:2])
            oldest = [
                NewAnswer(cell, sample.id, self.answers[sample.id])
                for cell in some
                for sample in first[: max(cell.required_answers - stored, 0)]
            ]
        for sample in new:
            del self.answers[sample.id]
        return oldest

    # --- questions whose answers are judged together

    def add_answered(self, question: str) -> None:
        """Note that no more answers to a question are expected."""
        if question in self._grouped:
            self._answered.add(question)

    def take_answered(self) -> dict[Subject, list[Cell]]:
        """Return the groups that can be judged now, with the cells that lack their judgement."""
        answered, self._answered = self._answered, set()
        cells = {
            (cell.file, cell.number, cell.prompt, cell.candidate.id): cell
            for question in answered
            for cell in self._cells[question]
            if len(cell.questions) > 1 and self._outstanding.keys().isdisjoint(cell.questions)
        }
        due: dict[Subject, list[Cell]] = {}
        for cell in cells.values():
            for subject in cell.subjects(self._answers_of(cell)):
                if any(missing_judgements(cell, self.votes(subject_of(subject)))):
                    due.setdefault(subject, []).append(cell)
        return due

    def _answers_of(self, cell: Cell) -> Mapping[str, Sequence[str]]:
        """Return the ids of the sessions of a cell by question, those that count first."""
        return {
            question: [
                *self.plan.sessions.get(question, ()),
                *(sample.id for sample in sorted(self.outcome.sessions.get(question, ()))),
            ]
            for question in dict.fromkeys(cell.questions)
        }

    # --- votes

    def votes(self, subject: str) -> list[Vote]:
        """Return the stored votes on a subject that count, then the new ones."""
        return [*self.plan.votes.get(subject, ()), *self.outcome.votes.get(subject, ())]

    def newest_vote(self, subject: str) -> int:
        """Return when the newest vote on a subject was made; 0 if there is none."""
        return max((vote.started for vote in self.votes(subject)), default=0)


def group_by_account(plan: Plan, account_of: Callable[[Item], str]) -> dict[str, list[Item]]:
    """Return the calls of a plan that can begin at once, by account: judgements, then questions."""
    to_check = {
        (judgement.sessions, judgement.cell.case.evaluation)
        for judgement in plan.judgements
        if judgement.judge is None
    }
    items: dict[str, list[Item]] = {}
    for judgement in plan.judgements:
        if not judgement.sessions or judgement.judge is None:
            continue  # a missing session is judged when it has arrived
        if (judgement.sessions, judgement.cell.case.evaluation) in to_check:
            continue  # whether a model judges depends on the checks
        items.setdefault(account_of(judgement), []).append(judgement)
    for ask in plan.asks:
        if not ask.cell.case.recorded:
            items.setdefault(account_of(ask), []).append(ask)
    return items
