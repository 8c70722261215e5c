"""Why a case has its verdict: question, answer, expectation, difference, and its history.

With what a run would do about it. All of it follows from what is stored; no model is called and
no code of the workspace runs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import NamedTuple

from evalstore.checks.check_verdict import HeldConversation, failing_number, schemas_of
from evalstore.checks.difference_locator import AnswerDifference, flat_checks, locate_difference
from evalstore.checks.types.judge import without_judge
from evalstore.core.clock import iso
from evalstore.core.display import WORKSPACE
from evalstore.core.errors import EvalstoreError
from evalstore.core.runs import Run
from evalstore.core.values import Case, Json, Result
from evalstore.files.json_output import to_json
from evalstore.planning.cells import Cell
from evalstore.planning.open_project import open_project, open_store, open_workspace
from evalstore.planning.options import Location, SelectionOptions
from evalstore.planning.path_history import name_in_newest_run
from evalstore.planning.plan import CHECKS
from evalstore.planning.planner import make_plan
from evalstore.planning.project import Project
from evalstore.planning.reasons import Explainer
from evalstore.planning.status_report import results_at, workspace_as_run
from evalstore.results.answer.answer import AnswerView, ResultView, question_of, read_answer
from evalstore.results.answer.judgements import Attempt, Judgement, shown_session
from evalstore.results.flips.result_history import ResultHistory, VerdictCounts, find_history
from evalstore.results.labels import with_later_labels
from evalstore.results.names import name_prompts
from evalstore.results.show.show import cells_with
from evalstore.store import Store
from evalstore.store.events import RUNS_SEARCHED
from evalstore.store.results import RowResults, read_results
from evalstore.store.trees.tree_nodes import StoredCases, find_entry


class PlannedWork(NamedTuple):
    """What a run would do about a result that is answered and judged already."""

    kind: str
    """`ask` or `judge`."""
    reason: str
    """The reason as `status` gives it."""

    @property
    def text(self) -> str:
        """Return `a run would ask it again: system prompt changed: line 1: a -> b`."""
        return f"a run would {self.kind} it again: {self.reason}"


def find_planned_work(
    location: Location, result: Result, prompts: Collection[str | None]
) -> PlannedWork | None:
    """Return what a run would do about a result; None if nothing, or if files have errors.

    `prompts` are the system prompts that its case had.
    """
    if result.is_missing:
        return None
    try:
        with open_project(location) as project:
            if result.file not in project.reading.files:
                return None
            path = f"{project.workspace.root / result.file}"
            path = f"{path}::{result.row}" if result.row else path
            plan = make_plan(project, SelectionOptions((path,)))
            explainer, find = Explainer(project), former_results([result], prompts)
            for kind, explain in (("ask", explainer.asks), ("judge", explainer.judgements)):
                for planned, reason in explain(plan):
                    if find(planned.cell.case, planned.cell):
                        also = f"; also changed: {', '.join(reason.also)}" if reason.also else ""
                        return PlannedWork(kind, reason.text + also)
    except EvalstoreError:
        return None  # 'check' lists errors of files; what is stored can be shown all the same
    return None


def find_edit(location: Location, file: str, node: str) -> str:
    """Return in words what became of a test file; empty if its cases still have this node."""
    with open_project(location) as project:
        is_same = project.reading.nodes.get(file) == node
        return _unread(project, file) or ("" if is_same else "its cases have changed since")


def find_edit_of(location: Location, result: Result) -> str:
    """Return in words what became of the test of a result, or that other answers count now.

    Empty if it is the same.
    """
    with open_project(location) as project:
        if unread := _unread(project, result.file):
            return unread
        case = find_case(project, result)
        if case is None:
            return "the row was removed since"
        if (case.tests[0], case.evaluation) != (result.test, result.evaluation):
            return "the test has changed since"
        if result.prompt not in case.prompts:
            return "the system prompt has changed since"
        with suppress(EvalstoreError):  # as for 'find_planned_work'
            for now in results_at(project, [(result.file, result.row)]):
                is_same = (now.prompt, now.model) == (result.prompt, result.model)
                if is_same and now.verdict and now.sessions != result.sessions:
                    answer = "another answer" if len(now.sessions) == 1 else "other answers"
                    return f"the workspace counts {answer} now: {now.verdict}"
        return ""


def _unread(project: Project, file: str) -> str:
    """Return why the cases that a test file has now are not known; empty if they are."""
    if file not in project.reading.tests:
        return "the test file was removed since"
    return "" if file in project.reading.files else "the test file has errors now"


def former_results(
    results: Iterable[Result], prompts: Collection[str | None]
) -> Callable[[Case, Cell | Result], Result | None]:
    """Return what finds that of these results which a cell had when these were recorded.

    An edited system prompt is at the number of the former one; `prompts`, which were there before,
    are not edited ones, wherever they are now.
    """
    by_prompt = {(each.file, each.row, each.model, each.prompt): each for each in results}
    by_number = {each.cell: each for each in by_prompt.values()}

    def find(case: Case, cell: Cell | Result) -> Result | None:
        model = cell.model if isinstance(cell, Result) else cell.candidate.id
        found = by_prompt.get((cell.file, case.row, model, cell.prompt))
        if found or cell.prompt in prompts:
            return found
        former = by_number.get((cell.file, case.row, cell.prompt_number, model))
        return former if former and former.prompt not in case.prompts else None

    return find


@dataclass(frozen=True, slots=True)
class OtherResult:
    """The result of the same case with another system prompt or candidate."""

    prompt: str
    """The name of the system prompt when the case has several; else empty."""
    result: Result

    @property
    def model(self) -> str:
        """Return the candidate."""
        return self.result.model

    @property
    def verdict(self) -> str | None:
        """Return the verdict, or `pending`; None for an answer that nothing judges."""
        return self.result.word


class VerdictReasons(NamedTuple):
    """What an answer failed, and since when."""

    result: Result
    session: str | None
    """The answer that stands for it; None without one."""
    failed_checks: tuple[FailedCheck, ...]
    history: ResultHistory | None
    prompt_name: str | None = None


@dataclass(frozen=True, slots=True)
class VerdictExplanation:
    """Why a result has its verdict."""

    result: Result
    run: str | None
    """The id of the run; None: the result is that of the workspace."""
    prompt: str
    """The name of the system prompt when the case has several; else empty."""
    answer: AnswerView
    """The question, the answer, every judgement, the instructions and checks."""
    failed_checks: tuple[FailedCheck, ...]
    history: ResultHistory | None
    """None when no run has judged the case."""
    others: tuple[OtherResult, ...] = ()
    """The results of the same case with other system prompts and candidates."""
    planned: PlannedWork | None = None
    """What a run would do about the result, such as after an edit of its test."""
    only_prompt: str | None = None
    """The name of the system prompt when the case has no other."""
    edit: str = ""
    """What became of the test since the run, in words; empty if nothing, or if it is not known."""

    @property
    def prompt_name(self) -> str | None:
        """Return the name of the system prompt; None without one."""
        return self.prompt or self.only_prompt

    @property
    def model(self) -> str:
        """Return the candidate."""
        return self.result.model

    @property
    def verdict(self) -> str | None:
        """Return the verdict, or `pending`; None for an answer that nothing judges."""
        return self.result.word

    @property
    def session(self) -> str | None:
        """Return the id of the answer that is shown."""
        return self.answer.id

    @property
    def since(self) -> Run | None:
        """Return the first run of those without a break that passed or failed alike."""
        return self.history.since if self.history else None

    @property
    def counts(self) -> VerdictCounts:
        """Return the newest verdicts on this version of the case."""
        return self.history.counts if self.history else VerdictCounts(())

    def document(self) -> dict[str, Json]:
        """Return the fields as JSON."""
        result, answer = self.result, self.answer
        return {
            "run": self.run,
            "file": result.file,
            "row": result.row,
            "prompt": result.prompt,
            "promptName": self.prompt_name,
            "model": result.model,
            "verdict": result.word,
            "session": answer.id,
            "conversation": [
                {"role": turn.role, "text": turn.text} for turn in answer.conversation
            ],
            "answer": answer.answer,
            "together": [to_json(member) for member in answer.together],
            "judgements": [
                {
                    "judgement": each.id,
                    "verdict": each.verdict,
                    "by": each.by,
                    "counts": each.counts,
                    "feedback": each.feedback,
                    "reasoning": each.reasoning,
                }
                for each in answer.judgements
            ],
            **self.document_of_history(),
        }

    def document_of_history(self) -> dict[str, Json]:
        """Return as JSON what the page of the answer does not have."""
        return {
            "failedChecks": [_describe_check(check) for check in self.failed_checks],
            "history": _describe_history(self.history) if self.history else None,
            "others": [
                {
                    "prompt": other.result.prompt,
                    "promptName": other.prompt or self.only_prompt,
                    "model": other.model,
                    "verdict": other.verdict,
                    "session": next(iter(other.result.sessions), None),
                }
                for other in self.others
            ],
            **({"planned": to_json(self.planned)} if self.planned else {}),
        }


def _describe_check(check: FailedCheck) -> Json:
    difference = check.difference
    return {
        "check": check.name,
        "feedback": check.feedback,
        "difference": None
        if difference is None
        else {
            "expected": difference.expected,
            "found": difference.actual,
            "place": difference.place,
            "note": difference.note,
        },
    }


def _describe_history(history: ResultHistory) -> Json:
    later = {"changes": to_json(history.later), "run": _describe_run(history.later_run)}
    return {
        "passes": history.passes,
        "since": _describe_run(history.since),
        "before": _describe_run(history.before),
        "changes": to_json(history.changes),
        "verdicts": list(history.counts.verdicts),
        "judged": len(history.counts.verdicts),
        "passed": history.counts.verdicts.count("pass"),
        "flips": history.counts.changes,
        "runsSearched": history.searched,
        "isCut": history.is_cut,
        **({"later": later} if history.later else {}),
        **({"pending": True} if history.is_pending else {}),
        **({"attempts": to_json(history.attempts)} if history.attempts else {}),
    }


def _describe_run(run: Run | None) -> Json:
    return run and {
        "run": run.id,
        "started": iso(run.started),
        "author": run.author,
        "gitCommit": run.git.commit if run.git else None,
        "gitDirty": run.git.dirty if run.git else None,
    }


def explain_result(
    location: Location,
    result: Result,
    run: str | None,
    *,
    session: str | None = None,
    view: AnswerView | None = None,
    cells: Sequence[Result] = (),
) -> VerdictExplanation:
    """Explain a result of a run, or of the workspace when `run` is None.

    Of several attempts `session` names one; without it, the first that did not pass is explained.
    `view` is the page of the answer, `cells` all results of its case, if they have been read.
    """
    with open_store(location) as store:
        # What the newest run has is known without reading the workspace.
        if stored := store.load_run(run) if run else _newest_run_with(store, result):
            explanation = explain_stored_result(
                location, store, result, stored, session=session, view=view, cells=cells
            )
            return explanation if run else replace(explanation, run=None)
    with open_project(location) as project:
        is_gone = find_case(project, result) is None  # then a run has what is shown of it
        if is_gone and (stored := _newest_run_with(project.store, result, among=RUNS_SEARCHED)):
            explanation = explain_stored_result(
                location, project.store, result, stored, session=session, view=view, cells=cells
            )
            return replace(explanation, run=None)
        here = cells or (() if is_gone else [*results_at(project, [(result.file, result.row)])])
        return explain_workspace_result(project, result, here, session=session, view=view)


def _newest_run_with(store: Store, result: Result, among: int = 1) -> Run | None:
    """Return the newest of these runs that has this very result."""
    runs = store.find_recent_runs(limit=among)
    return next((run for run in runs if result in read_results(store, run, only=result.file)), None)


def explain_session(
    location: Location, store: Store, view: AnswerView
) -> VerdictExplanation | None:
    """Explain an answer that was read; None when no recent run has it."""
    for result, run in cells_with(store, view.id or "").items():
        if (result.file, result.row) == (view.file, view.row):
            if now := with_later_labels(location, store, [result]).get(result):
                return explain_result(location, now, None, view=view)
            return explain_stored_result(location, store, result, run, view=view)
    return None


def explain_stored_result(
    location: Location,
    store: Store,
    result: Result,
    run: Run,
    *,
    session: str | None = None,
    view: AnswerView | None = None,
    cells: Sequence[Result] | None = None,
) -> VerdictExplanation:
    """Explain a result of a run; `view` is the page of its answer, if it has been read.

    `cells` are all results of its case; None: those in the run.
    """
    folder = open_workspace(location).settings.paths["tests"]
    history = find_history(store, folder, result, run)
    if cells is None:
        file = result.file
        leaf = find_entry([run.results], file, store.load_nodes).get(run.results)
        found = RowResults(store).find({file: leaf}, {file: [result.row]}) if leaf else {}
        cells = [cell for cell, _ in found[file].cells if cell.row == result.row] if leaf else []
    return _explain(location, store, result, run.id, cells, view, session, history)


def explain_workspace_result(
    project: Project,
    result: Result,
    cells: Sequence[Result],
    *,
    session: str | None = None,
    view: AnswerView | None = None,
) -> VerdictExplanation:
    """Explain a result of the workspace; `cells` are all results of its case."""
    store, location = project.store, project.location
    case = find_case(project, result)
    now = workspace_as_run(project)
    history = find_history_in(project, now, result, case) if case else None
    return _explain(location, store, result, None, cells, view, session, history)


def _explain(
    location: Location,
    store: Store,
    result: Result,
    run: str | None,
    cells: Sequence[Result],
    view: AnswerView | None,
    session: str | None,
    history: ResultHistory | None,
) -> VerdictExplanation:
    """Return the explanation of a result; `cells` are all results of its case.

    Without a `view`, it is of the named session, or of the one that stands for the result.
    """
    if view is None:
        session = session or _find_shown(store, result, history)
        view = (
            read_answer(location, store, session, result)
            if session
            else question_of(location, result, run)
        )
    prompts = list(dict.fromkeys(cell.prompt for cell in cells))
    names = name_prompts(location, prompts) if len(prompts) > 1 else {}
    place = result.prompt_number, result.model
    return VerdictExplanation(
        result=result,
        run=run,
        prompt=names.get(result.prompt, ""),
        answer=view,
        failed_checks=tuple(find_failed_checks(store, view.judgements)),
        history=history,
        others=tuple(
            OtherResult(names.get(cell.prompt, ""), cell)
            for cell in sorted(cells, key=lambda cell: cell.model != result.model)
            if (cell.prompt_number, cell.model) != place
        ),
    )


def explain_view(project: Project, view: ResultView, run: Run, rows: RowResults) -> VerdictReasons:
    """Explain a result of a run or of the workspace whose judgements have been read.

    Those who explain several results share `rows`.
    """
    store, result = project.store, view.result
    history = find_history_in(project, run, result, view.case, rows)
    session = _find_shown(store, result, history)
    judged = (each for each in view.judgements if session in each.sessions)
    return VerdictReasons(result, session, tuple(find_failed_checks(store, judged)), history)


def find_history_in(
    project: Project, run: Run, result: Result, case: Case | None, rows: RowResults | None = None
) -> ResultHistory | None:
    """Return the history of a result of a run; of the workspace as one, with its `case`."""
    folder = project.settings.paths["tests"]
    if run.id != WORKSPACE:
        return find_history(project.store, folder, result, run, rows=rows)
    return find_history(
        project.store,
        folder,
        result,
        run,
        case=case,
        file=name_in_newest_run(project, result.file),
        project=project,
        rows=rows,
    )


def find_case(project: Project, result: Result) -> Case | None:
    """Return the case of a result, if the workspace has it."""
    file = project.reading.files.get(result.file)
    cases: Iterable[Case] = file.cases if file else ()
    if isinstance(cases, StoredCases):
        cases = (case for _, case in cases.labelled([result.row]))
    return next((case for case in cases if case.row == result.row), None)


def _find_shown(store: Store, result: Result, history: ResultHistory | None) -> str | None:
    """Return the session that stands for a result; None without one.

    Of answers that are judged together, it is the first that fails.
    """
    attempts = history.attempts if history and not history.is_pending else ()
    if not attempts and len(result.sessions) > 1:
        made = store.find_evaluations(result.evaluations)
        judged = (made[id] for id in result.evaluations if id in made)
        attempts = tuple(Attempt(it.sessions, it.verdict) for it in judged if it.verdict != "none")
    session = shown_session(result, attempts)
    return session and find_failing_answer(store, result, session)


# --- the checks that an answer failed, where it differs from what they expect, and which it is


_MOST_LOCATED = 20
"""The most failed checks of a judgement that are compared with the answer again."""


@dataclass(frozen=True, slots=True)
class FailedCheck:
    """A check that did not pass, and where the answer differs from what it expects."""

    name: str
    feedback: str
    difference: AnswerDifference | None
    """None when the check has no place to show, or is not among the first that failed."""


def find_failed_checks(store: Store, judgements: Iterable[Judgement]) -> Iterator[FailedCheck]:
    """Yield the checks that did not pass in those of the judgements that count."""
    for judgement in judgements:
        failed = [number for number, each in enumerate(judgement.checks) if each.verdict == "fail"]
        if judgement.evaluator != CHECKS or judgement.why_not or not failed:
            continue
        content = store.load_contents("evaluation", [judgement.evaluation])
        stored = content.get(judgement.evaluation, {}).get("checks", ())
        checks = list(flat_checks(without_judge(stored)))  # in the order of their results
        loaded = store.load_contents("schema", schemas_of(checks))
        schemas = {id: schema.get("schema") for id, schema in loaded.items()}
        sessions = store.find_sessions(judgement.sessions)
        conversations = [
            HeldConversation(sessions[id].turns) for id in judgement.sessions if id in sessions
        ]
        for position, number in enumerate(failed):
            result, difference = judgement.checks[number], None
            if len(checks) == len(judgement.checks) and position < _MOST_LOCATED:
                check = checks[number]
                difference = locate_difference(check, conversations, schemas)
                if difference and any(
                    it.get("ignoreCase") for it in (check, check.get("check", {}))
                ):
                    difference = difference._replace(
                        is_text=False
                    )  # words may differ in case alone
            yield FailedCheck(result.name, result.feedback, difference)


def find_failing_answer(store: Store, result: Result, session: str) -> str:
    """Return the first answer that fails of those that are judged together with `session`.

    It is `session` itself when the result passes, or when no check names an answer.
    """
    if len(result.sessions) < 2 or result.word == "pass":
        return session
    made = store.find_evaluations(result.evaluations)
    for judgement in (made[id] for id in result.evaluations if id in made):
        if session in judgement.sessions and judgement.verdict in ("fail", "error"):
            for check in judgement.checks:
                feedback = str(check.get("feedback") or "")
                number = failing_number(feedback, len(judgement.sessions))
                if number and check.get("verdict") != "pass":
                    return judgement.sessions[number - 1]
    return session
