"""Judges a text that a program has, such as the answer in a unit test, by checks and by models.

The text is a recorded answer to a question, as a test file brings one. Its versions have the ids
that those of such a file have, so a judgement of either counts for the other, and a text that has
been judged is not judged again. No run is recorded.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from evalstore.checks.parser import read_check
from evalstore.checks.types.judge import JUDGE
from evalstore.core import clock, hashing
from evalstore.core.display import as_text
from evalstore.core.errors import EvalstoreError, FileProblem, WorkspaceError
from evalstore.core.runs import ProgressListener
from evalstore.core.values import (
    RECORDED,
    Case,
    CaseFile,
    EvaluationVersion,
    Json,
    Message,
    ModelVersion,
    TestVersion,
    Text,
    Verdict,
)
from evalstore.planning.cell_results import CellResult, compute_results
from evalstore.planning.cells import StreamedCells, place_cases
from evalstore.planning.open_project import open_catalogue
from evalstore.planning.options import Location, RunOptions, SelectionOptions
from evalstore.planning.path_history import bounds_of
from evalstore.planning.plan import Plan
from evalstore.planning.planner import Scope
from evalstore.planning.project import Project
from evalstore.results.answer.judgements import Judgement, read_judgements
from evalstore.runs.execution.execution_counts import ExecutionCounts
from evalstore.runs.run_preview import Plans, get_leave

_OF_FILES = (JUDGE, "python")
"""The checks that only a test file can have."""


@dataclass(frozen=True, slots=True)
class TextToJudge:
    """A text with the criteria by which it is judged."""

    answer: Json
    """A text; any other value is judged as JSON."""
    instructions: str = ""
    """What models judge by; no model judges without them."""
    question: str = ""
    """What the text answers, which judges may be shown; empty if it is not known."""
    checks: tuple[Json, ...] = ()
    """Checks as the block `checks` of a test file has them."""


@dataclass(frozen=True, slots=True)
class JudgedText:
    """The verdict on a text that a program has passed, with its judgements."""

    verdict: Verdict
    score: float | None
    """0..1; None if no judgement has one."""
    session: str
    """The id under which the store has the text, for `evalstore show`."""
    judgements: tuple[Judgement, ...]
    """The judgements that count."""
    judged: int
    """The number of judgements that were made now; the others were stored."""
    cost: float | None
    """USD of the judgements that were made now; None if a price is not known."""


def judge_text(
    location: Location,
    text: TextToJudge,
    selection: SelectionOptions,
    options: RunOptions,
    listener: ProgressListener,
) -> JudgedText:
    """Judge a text, unless the store has its verdict.

    Of the selection only `evaluators`, `offline`, `refresh` and `max_age` count. Raises
    `EvalstoreError` when there is no verdict, and `KeyboardInterrupt` when it was interrupted.
    """
    with open_catalogue(location) as project:  # the tests need not be valid
        if project.reading.errors:
            raise WorkspaceError(project.reading.problems)
        contents: dict[str, tuple[str, str]] = {}
        case = _make_case(project, text, contents)
        cells = _make_cells(project, case, selection)
        bounds = bounds_of(selection, project.settings, judge_only=True, begun=clock.now())
        scope = Scope(cells, *bounds, (), None, judge_only=False, run_started=math.inf)
        plans = Plans(project, scope)
        outcome, (result,) = _carry_out(project, plans, contents, options, listener)
        (plan,) = plans.take()
        return _describe(project, plan, outcome, result, selection)


def _make_case(project: Project, text: TextToJudge, contents: dict[str, tuple[str, str]]) -> Case:
    """Return the case of a text; its versions are added to the contents."""

    def keep(kind: str, description: hashing.Description) -> str:
        id, content = hashing.identify(description)
        contents[id] = (kind, content)
        return id

    question, instructions = text.question.strip(), text.instructions.strip()
    checks = tuple(
        _read_check(project, number, check) for number, check in enumerate(text.checks, 1)
    )
    if not (instructions or checks):
        raise EvalstoreError(
            "nothing says how to judge the text", hint="pass instructions, checks or both"
        )
    messages = (Message("user", (Text(question),)),) if question else ()
    evaluation = EvaluationVersion((Text(instructions),) if instructions else (), checks)
    answers = {"answers": [as_text(text.answer)]}
    judged_by = (("checks",) if checks else ()) + (("models",) if instructions else ())
    return Case(
        row="",
        key="",
        tests=(keep("test", hashing.describe_test(TestVersion(messages))),),
        evaluation=keep("evaluation", hashing.describe_evaluation(evaluation)),
        tags=(),
        prompts=(None,),
        judged_by=judged_by,
        recorded=keep(
            "model", hashing.describe_model(ModelVersion(RECORDED, RECORDED, options=answers))
        ),
    )


def _read_check(project: Project, number: int, check: Json) -> Json:
    """Return a check in canonical form; raises `EvalstoreError`."""
    try:
        canonical = read_check(check, None)
    except FileProblem as problem:
        raise EvalstoreError(f"check {number}: {problem.message}", hint=problem.hint) from problem
    type = canonical["type"]
    if type in _OF_FILES or canonical.get("scope") == "group":
        raise EvalstoreError(
            f"check {number}: '{type}' needs a test file",
            hint="write the text into a test file as 'answer', with this check",
        )
    if isinstance(schema := canonical.get("schema"), str):
        assert project.reading.library is not None
        schemas = project.reading.library.schemas
        if schema not in schemas:
            raise EvalstoreError(
                f"check {number}: unknown schema '{schema}'",
                hint="'evalstore ls schemas' lists them",
            )
        canonical["schema"] = schemas[schema]
    return canonical


def _make_cells(project: Project, case: Case, selection: SelectionOptions) -> StreamedCells:
    judges = project.judges(selection) if "models" in case.judged_by else []
    files = {"": CaseFile((case,))}
    cells = StreamedCells(lambda: place_cases(files, [], judges, lambda _path, _case: True))
    if cells.unjudged:
        raise EvalstoreError(
            "no judges for texts",
            hint="list a model under 'evaluators:' in evalstore.yaml, or name one",
        )
    return cells


def _carry_out(
    project: Project,
    plans: Plans,
    contents: dict[str, tuple[str, str]],
    options: RunOptions,
    listener: ProgressListener,
) -> tuple[ExecutionCounts, list[CellResult]]:
    """Return the outcome and the result of the plan, after what is missing has been done."""
    results: list[CellResult] = []

    def finish(plan: Plan, outcome: ExecutionCounts) -> None:
        rule = project.settings.verdict
        results.extend(compute_results(plan, rule, outcome.sessions, outcome.votes))

    survey = plans.survey(lambda plan: None)
    if survey.is_empty:
        for plan in plans.take():
            finish(plan, ExecutionCounts())
        return ExecutionCounts(), results
    from evalstore.runs.run_control import carry_out_plans

    get_leave(project, survey, plans.price, options, listener)
    project.store.ensure_versions(
        {**project.reading.contents, **project.contents, **contents}, project.reading.blobs
    )
    outcome, _ = carry_out_plans(
        project, survey, plans.take(), finish, clock.Clock(), options, listener
    )
    return outcome, results


def _describe(
    project: Project,
    plan: Plan,
    outcome: ExecutionCounts,
    result: CellResult,
    selection: SelectionOptions,
) -> JudgedText:
    if outcome.interrupted:
        raise KeyboardInterrupt
    if result.verdict is None or not result.sessions:
        missing = (
            "; ".join(outcome.failures)
            or ("the limit of cost or time was reached" if outcome.over_budget else "")
            or (f"'{min(plan.waiting_models)}' is not trusted" if plan.waiting_models else "")
            or ("no call was allowed" if selection.offline else "it was not judged")
        )
        raise EvalstoreError(
            f"the text has no verdict: {missing}",
            hint="what was judged is stored; call it again for the rest",
        )
    session, votes = result.sessions[0], [vote.id for vote in result.votes]
    listed = read_judgements(project.store, session, votes, None)[1]
    return JudgedText(
        verdict=result.verdict,
        score=result.score,
        session=session,
        judgements=tuple(judgement for judgement in listed if judgement.id in votes),
        judged=outcome.judged,
        cost=round(outcome.cost + outcome.judge_cost, 8) if outcome.priced else None,
    )
