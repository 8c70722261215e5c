"""Which results are missing because a call failed, of those that are missing."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from evalstore import hashing
from evalstore.planning.retries import failed_judgements, failed_questions
from evalstore.store.trees import read_tree
from evalstore.values import Question

if TYPE_CHECKING:
    from evalstore.planning.plan import Plan
    from evalstore.planning.project import Project
    from evalstore.planning.results import CellResult
    from evalstore.store import Store
    from evalstore.values import Json, Result

Place = tuple[str, str, int, str]
"""The file, the row, the number of the system prompt, the candidate."""


def place_of(one: Result) -> Place:
    """Where a result is."""
    return one.file, one.row, one.prompt_number, one.model


def failed_now(project: Project, plan: Plan, settled: Iterable[CellResult]) -> set[Place]:
    """Of the workspace's results those whose last call failed."""
    questions = failed_questions(project, plan)
    wanted = {(one.subject, one.cell.case.evaluation, one.evaluator) for one in plan.judgements}
    subjects = {one[0] for one in wanted & failed_judgements(project, plan).keys()}
    if not questions and not subjects:
        return set()
    return {
        (one.cell.file, one.cell.case.row, one.cell.prompt_number, one.cell.candidate.id)
        for one in settled
        if one.pending
        if not questions.keys().isdisjoint(one.cell.questions)
        or not subjects.isdisjoint(map(hashing.subject_of, one.cell.subjects(plan.sessions)))
    }


def failed_in_run(store: Store, run: Json, missing: Collection[Result]) -> set[Place]:
    """Of these results of a run those for which one of its calls failed."""
    asked = asked_in_run(store, run, missing)
    subjects = {
        place_of(one): {hashing.subject_of(some) for some in (one.sessions, *zip(one.sessions))}
        for one in missing
        if one.sessions
    }
    found = [
        failure
        for _, failure in store.find_failures_of(
            {id for ids in asked.values() for id in ids},
            {id for ids in subjects.values() for id in ids},
        )
        if run["started"] <= failure["at"] <= run["ended"]
    ]
    failed = {one.get("question") or one.get("subject") for one in found}
    return {
        place
        for lists in (asked, subjects)
        for place, ids in lists.items()
        if not failed.isdisjoint(ids)
    }


def asked_in_run(
    store: Store, run: Json, results: Collection[Result]
) -> Mapping[Place, tuple[str, ...]]:
    """The ids of the questions of these results as a run had them, as far as it asked them."""
    nodes = read_tree(run["snapshot"], store.load_nodes)
    files = store.load_case_files(list({nodes[one.file] for one in results if one.file in nodes}))
    cases = {id: {case.row: case for case in file.cases} for id, file in files.items()}
    candidates = {one["id"]: one for one in run.get("candidates", ())}
    found: dict[Place, tuple[str, ...]] = {}
    for one in results:
        case = cases.get(nodes.get(one.file, ""), {}).get(one.row)
        candidate = candidates.get(one.model)
        if case and candidate:
            default = candidate.get("temperature")
            temperature = default if case.temperature is None else case.temperature
            found[place_of(one)] = tuple(
                hashing.question_id(
                    Question(test, one.prompt, candidate["model"], temperature, case.seed)
                )
                for test in dict.fromkeys(case.tests)
            )
    return found
