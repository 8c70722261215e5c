"""Computes the verdicts of cells and builds the result tree of a run."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache, partial
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from evalstore.checks.judging.aggregation import (
    JudgedSession,
    combine_votes,
    judge_session,
    judge_so_far,
    wants_models,
)
from evalstore.core import hashing
from evalstore.core.display import plural
from evalstore.core.results import Result, Sample, Vote
from evalstore.core.values import Json, Verdict
from evalstore.planning.carried_votes import without_unneeded
from evalstore.planning.plan import CHECKS, UNSETTLED, Plan, counted_votes, is_checked
from evalstore.store.results import conversations_of, describe_cell
from evalstore.store.trees.case_chunks import Load, ResultBuilder, collect, is_tree

if TYPE_CHECKING:
    from evalstore.planning.cells.cells import Cell
    from evalstore.planning.cells.settled_parts import SettledParts
    from evalstore.store import Store
    from evalstore.workspace.reader import Reading


class CellResult(NamedTuple):
    """A cell with its verdict, sessions and votes."""

    cell: Cell
    verdict: Verdict | None
    """None when it is pending or has no evaluation."""
    score: float | None
    sessions: tuple[str, ...]
    votes: tuple[Vote, ...]
    attempts: tuple[Verdict, ...] = ()
    """The verdict on each attempt if several are judged."""

    @property
    def pending(self) -> bool:
        """Return whether an answer or a judgement is missing."""
        return self.verdict is None and (
            self.cell.case.evaluation is not None or len(self.sessions) < self.cell.required_answers
        )

    @property
    def word(self) -> str | None:
        """Return the verdict, or `pending`; None for an answered case without an evaluation."""
        return self.verdict or ("pending" if self.pending else None)


def count_ties(plan: Plan, rule: str) -> int:
    """Return how many results are undecided although each vote on them is decided."""
    several = [
        cell
        for cell in plan.cells
        if cell.attempts > 1
        or any(
            len(plan.votes.get(hashing.subject_of(each), ())) > 1
            for each in cell.subjects(plan.sessions)
        )
    ]
    made = compute_results(Plan(several, sessions=plan.sessions, votes=plan.votes), rule)
    undecided = (result for result in made if result.verdict == "undecided")
    return sum(all(vote.verdict not in UNSETTLED for vote in each.votes) for each in undecided)


def tie_text(count: int) -> str:
    """Return `2 results are undecided because verdicts or labels disagree`."""
    verb = "is" if count == 1 else "are"
    return f"{plural(count, 'result')} {verb} undecided because verdicts or labels disagree"


def compute_results(
    plan: Plan,
    rule: str,
    new_sessions: Mapping[str, Sequence[Sample]] | None = None,
    new_votes: Mapping[str, Sequence[Vote]] | None = None,
) -> list[CellResult]:
    """Return the verdict of every cell, from stored and new sessions and votes."""
    new_sessions, new_votes = new_sessions or {}, new_votes or {}
    single: dict[tuple[Verdict, float | None], JudgedSession] = {}
    """What a single vote means, by its verdict and score."""
    results = []
    for cell in plan.cells:
        evaluation = cell.case.evaluation
        session = plan.only_session(cell)
        if session and cell.questions[0] not in new_sessions and session not in new_votes:
            cast = plan.votes.get(session, [])
            if evaluation and is_checked(cell, cast) and cast[0].verdict != "none":
                word, score = cast[0].verdict, cast[0].score
                combined = single.get((word, score))
                if combined is None:
                    combined = single[word, score] = _combine(JudgedSession(word, score), rule=rule)
                results.append(CellResult(cell, *combined, (session,), (cast[0],)))
                continue
        answers = {
            question: _answers(question, most, plan, new_sessions)
            for question, _, most in cell.distinct_questions()
        }
        sessions = [session for session_ids in answers.values() for session in session_ids]
        votes: list[Vote] = []
        judged: list[JudgedSession] = []
        for together in cell.subjects(answers):
            subject = hashing.subject_of(together)
            cast = [*plan.votes.get(subject, ()), *new_votes.get(subject, ())]
            counted = without_unneeded(cell, counted_votes(cell, cast))
            votes += counted
            if evaluation and _is_complete(cell, counted):
                judged.append(judge_session(counted, cell.case.judged_by, CHECKS, rule))
        if evaluation and len(judged) == cell.attempts:
            verdict, score = _combine(*judged, rule=rule)
        else:
            verdict, score = None, None
        attempts = tuple(each.verdict for each in judged) if len(judged) > 1 else ()
        results.append(CellResult(cell, verdict, score, tuple(sessions), tuple(votes), attempts))
    return results


@lru_cache(maxsize=1024)
def _combine(*judged: JudgedSession, rule: str) -> JudgedSession:
    """Return what `combine_votes` does; most answers have one of few verdicts and scores."""
    return combine_votes(judged, rule)


def _answers(
    question: str, most: int, plan: Plan, new: Mapping[str, Sequence[Sample]]
) -> list[str]:
    """Return the ids of the sessions of a question that count."""
    stored = plan.sessions.get(question, [])
    if question not in new:
        return stored[:most]
    fresh = sorted(new.get(question, ()), key=lambda sample: sample[:2])
    return [*stored, *(sample.id for sample in fresh)][:most]


def _is_complete(cell: Cell, votes: Sequence[Vote]) -> bool:
    """Return whether a subject lacks no judgement."""
    if any(vote.human for vote in votes):
        return True
    if "checks" in cell.case.judged_by:
        checked = next((vote.verdict for vote in votes if vote.evaluator == CHECKS), None)
        if checked is None or not wants_models(cell.case.judged_by, checked):
            return checked is not None
    if "models" not in cell.case.judged_by:
        return True
    expected = sum(judge.times for judge in cell.judges)
    return 0 < expected == len([vote for vote in votes if vote.evaluator != CHECKS])


def verdict_without_labels(cell: Cell, votes: Sequence[Vote], rule: str) -> Verdict | None:
    """Return the verdict of checks and models on a subject; None if a judgement is missing."""
    others = [vote for vote in votes if not vote.human]
    judged = judge_so_far(others, cell.case.judged_by, CHECKS, rule)
    return judged.verdict if judged and _is_complete(cell, others) else None


class LeafBuilder:
    """Builds the leaves of a result tree, one for each test file, batch by batch.

    Of a long file only the results of the last few cases are in memory.
    """

    def __init__(
        self,
        reading: Reading,
        load: Load,
        settled: SettledParts,
        tell: Callable[[str, str, str], object] = lambda _file, _cases, _results: None,
    ) -> None:
        """`load` loads nodes of cases; the results of `settled` parts are taken as they are.

        `tell` is called with the file and the nodes of the cases and of the results of each
        finished part.
        """
        self._reading = reading
        self._load = load
        self._tell = tell
        self._left = {path: sorted(parts.items()) for path, parts in settled.by_file.items()}
        """The settled parts that are not added yet."""
        self._contents: dict[str, tuple[str, str]] = {}
        self._leaves: dict[str, str] = {}
        self._file = ""
        self._builder: ResultBuilder | None = None

    def add(self, results: Iterable[CellResult]) -> None:
        """Add the next cells, in the order of files and rows."""
        for file, of_file in groupby(results, key=lambda result: result.cell.file):
            if self._builder is None or file != self._file:
                self.finish()
                self._file, self._builder = file, self._begin(file)
            if file not in self._left:
                self._builder.add(map(_describe, of_file))
                continue
            for result in of_file:
                self._add_settled(self._builder, result.cell.number)
                self._builder.add([_describe(result)])

    def _begin(self, file: str) -> ResultBuilder:
        load = self._load if is_tree(self._reading.files[file]) else None
        keep = collect(self._contents)
        return ResultBuilder(self._reading.nodes[file], load, keep, partial(self._tell, file))

    def _add_settled(self, builder: ResultBuilder, until: float) -> None:
        """Add the settled parts of the current file that begin before a case."""
        left = self._left.get(self._file, [])
        while left and left[0][0] < until:
            first, part = left.pop(0)
            builder.add_part(first, part.results)

    def store(self, store: Store, others: Mapping[str, tuple[str, str]] = {}) -> None:
        """Store the nodes since the last call, and others; they are kept until this is done."""
        store.ensure_versions({**self._contents, **others})
        self.forget()

    def forget(self) -> None:
        """Drop the nodes since the last call without storing them."""
        self._contents.clear()

    def finish(self) -> dict[str, str]:
        """Finish the last file; returns the leaves by file."""
        if self._builder is not None:
            self._add_settled(self._builder, math.inf)
            self._leaves[self._file] = self._builder.finish()
            self._builder = None
        return self._leaves

    def finish_all(self) -> dict[str, str]:
        """Finish the last file, and those with only settled parts; returns the leaves by file."""
        self.finish()
        for path in [path for path, left in self._left.items() if left]:
            self._file, self._builder = path, self._begin(path)
            self.finish()
        return self._leaves


def _describe(result: CellResult) -> Json:
    cell = result.cell
    return describe_cell(
        cell.number,
        cell.prompt_number,
        cell.candidate.id,
        cell.required_answers,
        result.verdict,
        result.score,
        result.sessions,
        [vote.id for vote in result.votes],
    )


def as_result(result: CellResult) -> Result:
    """Return the result of a cell in the form in which runs are compared."""
    cell = result.cell
    return Result(
        file=cell.file,
        row=cell.case.row,
        key=cell.case.key,
        prompt_number=cell.prompt_number,
        prompt=cell.prompt,
        model=cell.candidate.id,
        test=cell.case.tests[0],
        conversations=conversations_of(cell.case.tests),
        evaluation=cell.case.evaluation,
        verdict=result.verdict,
        score=result.score,
        sessions=result.sessions,
        evaluations=tuple(vote.id for vote in result.votes),
        required_answers=cell.required_answers,
    )
