"""Finds the results that are missing because a call failed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from evalstore.core import hashing
from evalstore.core.results import Result
from evalstore.core.runs import Run
from evalstore.core.values import Question
from evalstore.planning.failed_work import failed_judgements, failed_questions
from evalstore.planning.plan import Plan
from evalstore.planning.project import Project
from evalstore.planning.results import CellResult
from evalstore.results.growing_results import CellKey, cell_of
from evalstore.store import Store
from evalstore.store.trees.tree_nodes import read_tree


def failed_now(project: Project, plan: Plan, settled: Iterable[CellResult]) -> set[CellKey]:
    """Return the places of the workspace's results whose last call failed."""
    questions = failed_questions(project, plan)
    judgements = {
        (judgement.subject, judgement.cell.case.evaluation, judgement.evaluator)
        for judgement in plan.judgements
    }
    subjects = {key[0] for key in judgements & failed_judgements(project, plan).keys()}
    if not questions and not subjects:
        return set()
    return {
        (
            result.cell.file,
            result.cell.case.row,
            result.cell.prompt_number,
            result.cell.candidate.id,
        )
        for result in settled
        if result.pending
        if not questions.keys().isdisjoint(result.cell.questions)
        or not subjects.isdisjoint(map(hashing.subject_of, result.cell.subjects(plan.sessions)))
    }


def mark_failed(result: Result, failed: Collection[CellKey]) -> Result:
    """Return the result, with a mark if a call for it failed."""
    return result._replace(has_failed=True) if failed and cell_of(result) in failed else result


AskedResult = tuple["Result", float | None, int | None]
"""A result with the temperature and the seed of its case."""


def mark_failed_in_run(store: Store, run: Run, asked: Sequence[AskedResult]) -> list[Result]:
    """Return some results of a run, with a mark on those that miss something as a call failed."""
    waiting = [each for each in asked if each[0].is_missing] if run.failed else []
    if not waiting:
        return [result for result, _, _ in asked]
    missing = [result for result, _, _ in waiting]
    questions_of = _questions(run, waiting)
    subjects = judged_subjects(missing)
    failed_places = [
        failure
        for _, failure in store.find_failures_of(
            {id for ids in questions_of.values() for id in ids},
            {id for ids in subjects.values() for id in ids},
        )
        if run.started <= failure.at <= run.ended
    ]
    failed = {failure.question or failure.subject for failure in failed_places}
    marked = {
        place
        for lists in (questions_of, subjects)
        for place, ids in lists.items()
        if not failed.isdisjoint(ids)
    }
    return [mark_failed(result, marked) for result, _, _ in asked]


def judged_subjects(results: Iterable[Result]) -> Mapping[CellKey, set[str]]:
    """Return the ids of what judges see of these results: each answer, and all together."""
    return {
        cell_of(result): {
            hashing.subject_of(sessions) for sessions in (result.sessions, *zip(result.sessions))
        }
        for result in results
        if result.sessions
    }


def questions_in_run(
    store: Store, run: Run, results: Collection[Result]
) -> Mapping[CellKey, tuple[str, ...]]:
    """Return the ids of the questions that a run asked for these results, by place."""
    nodes = read_tree(run.snapshot, store.load_nodes)
    files = store.load_case_files(
        list({nodes[result.file] for result in results if result.file in nodes})
    )
    cases = {id: {case.row: case for case in file.cases} for id, file in files.items()}
    placed = ((it, cases.get(nodes.get(it.file, ""), {}).get(it.row)) for it in results)
    return _questions(run, [(it, case.temperature, case.seed) for it, case in placed if case])


def _questions(run: Run, asked: Iterable[AskedResult]) -> dict[CellKey, tuple[str, ...]]:
    candidates = {candidate.id: candidate for candidate in run.candidates}
    questions_of: dict[CellKey, tuple[str, ...]] = {}
    for result, temperature, seed in asked:
        if candidate := candidates.get(result.model):
            used = candidate.temperature if temperature is None else temperature
            questions_of[cell_of(result)] = tuple(
                hashing.question_id(Question(test, result.prompt, candidate.model, used, seed))
                for test in dict.fromkeys(result.tests)
            )
    return questions_of
