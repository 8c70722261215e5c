"""Adds up the results of a run batch by batch, so that a long run needs little memory."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from evalstore.operations.prompt_names import prompt_labels
from evalstore.planning.results import (
    CellResult,
    LeafBuilder,
    as_result,
    compute_results,
    feedback_of,
)
from evalstore.reports.statistics import (
    Clusters,
    Counts,
    Questions,
    Rate,
    add_verdict,
    clustered_rate,
)
from evalstore.store.path_trees import build_tree
from evalstore.values import RESULT_WORDS

if TYPE_CHECKING:
    from collections.abc import Set

    from evalstore.execution.execution_counts import ExecutionCounts
    from evalstore.operations.verdict_changes import CellKey
    from evalstore.planning.cells import Cell
    from evalstore.planning.plan import Plan
    from evalstore.planning.project import Project
    from evalstore.results import Result
    from evalstore.values import Verdict

MOST_PENDING = 5
"""The most pending cases that are kept; more are only counted."""
MOST_SHOWN = 20
"""The most judged cases that are kept with their feedback."""


def _cell_key(cell: Cell) -> CellKey:
    return cell.file, cell.case.row, cell.prompt_number, cell.candidate.id


class RunTotals:
    """The verdict counts of a run so far, and the first results that did not pass."""

    def __init__(self, project: Project, started: int, rule: str, shared: Set[str]) -> None:
        """`started` is when the run started; `rule` combines several votes.

        `shared` are the ids of questions that several batches may ask.
        """
        self._shared = shared
        self._project = project
        self._started = started
        self._rule = rule
        self._leaves = LeafBuilder(project.reading, project.store.load_cases)
        self._questions = Clusters()
        self.files: dict[str, Counter[str | None]] = {}
        """Test file -> how many of its cells have each verdict, None for those without one."""
        self.models: dict[str, Counter[str | None]] = {}
        """Candidate -> how many of its cells have each verdict."""
        self.notable: list[Result] = []
        """The first few results that did not pass, and the first few that are pending."""
        self.feedback: dict[str, str] = {}
        """The feedback of the notable results, by id of the vote."""
        self.attempts: dict[CellKey, tuple[Verdict, ...]] = {}
        """The verdicts on the attempts of results with several, of which one did not pass."""
        self.prompts: dict[str, dict[str | None, str]] = {}
        """Test files with several system prompts -> the name of each."""
        self.answers = 0
        """The number of answers that count."""
        self.cases = 0
        """The number of cases."""
        self.saved = 0.0
        """The cost of the reused answers and judgements, in USD."""
        self._answered: dict[str, int] = {}
        """Shared question -> how many of its answers are counted."""
        self._votes: set[str] = set()
        """Ids of the votes of earlier runs on answers to shared questions that are counted."""

    def add(self, plan: Plan, outcome: ExecutionCounts) -> None:
        """Add a batch, and store its results."""
        cells = compute_results(plan, self._rule, outcome.sessions, outcome.votes)
        for cell in cells:
            self.files.setdefault(cell.cell.file, Counter())[cell.word] += 1
            self.models.setdefault(cell.cell.candidate.id, Counter())[cell.word] += 1
            if any(verdict != "pass" for verdict in cell.attempts):
                self.attempts[_cell_key(cell.cell)] = cell.attempts
        self._count_questions(cells)
        self._leaves.add(cells)
        self._project.store.ensure_versions(self._leaves.take_contents())
        self._note([cell for cell in cells if cell.word not in ("pass", None)])
        self.prompts |= prompt_labels(self._project, cells)
        self._count_answers(plan, outcome)
        self._count_votes(cells)

    def _count_votes(self, cells: list[CellResult]) -> None:
        """Add the cost of the votes of earlier runs, each once."""
        reused: set[str] = set()
        shared: set[str] = set()
        for cell in cells:
            earlier = [vote.id for vote in cell.votes if vote.started < self._started]
            reused.update(earlier)
            if not self._shared.isdisjoint(cell.cell.questions):
                shared.update(earlier)
        self.saved += self._project.store.sum_costs("judgement", reused - self._votes)
        self._votes |= shared

    def _count_questions(self, cells: list[CellResult]) -> None:
        """Count the verdicts on each case, whose cells are all in one batch."""
        questions: Questions = {}
        none = Counts()
        for cell in cells:
            question = cell.cell.file, cell.cell.case.row
            questions[question] = add_verdict(questions.get(question, none), cell.verdict)
        self.cases += len(questions)
        for counts in questions.values():
            self._questions.add(counts)

    def _count_answers(self, plan: Plan, outcome: ExecutionCounts) -> None:
        reused: list[str] = []
        for question in plan.questions:
            counted = self._answered.get(question, 0)
            stored = plan.sessions.get(question, ())[counted:]
            made = len(outcome.sessions.get(question, ()))
            self.answers += len(stored) + made
            reused += stored
            if question in self._shared:
                self._answered[question] = counted + len(stored) + made
        self.saved += self._project.store.sum_costs("session", reused)

    def _note(self, cells: list[CellResult]) -> None:
        pending = sum(1 for result in self.notable if result.word == "pending")
        room = {True: MOST_PENDING - pending, False: MOST_SHOWN - len(self.notable) + pending}
        kept = []
        for cell in cells:
            is_pending = cell.word == "pending"
            if room[is_pending] > 0:
                room[is_pending] -= 1
                kept.append(cell)
        self.feedback |= feedback_of(self._project.store, kept)
        self.notable += map(as_result, kept)

    def count(self, word: str | None) -> int:
        """Return the number of cells with a verdict, or `pending`."""
        return sum(words[word] for words in self.files.values())

    @property
    def verdicts(self) -> dict[str, int]:
        """Return the number of cells with each verdict, and `pending`."""
        return {word: self.count(word) for word in RESULT_WORDS}

    @property
    def rate(self) -> Rate:
        """Return the share of passes among the judged cases."""
        files = Clusters()
        for words in self.files.values():
            unresolved = words["undecided"] + words["error"]
            files.add(Counts(words["pass"] + words["fail"] + unresolved, words["pass"], unresolved))
        return clustered_rate(files, self._questions)

    def store_tree(self) -> str:
        """Store the tree of all results; returns the id of its root."""
        root, contents = build_tree(self._leaves.finish())
        self._project.store.ensure_versions({**self._leaves.take_contents(), **contents})
        return root
