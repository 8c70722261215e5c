"""Reads the cases of the workspace with their current verdicts, and runs some of them.

It is for programs that show each case on its own, such as a test runner.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from evalstore.core import hashing
from evalstore.planning.cells.cell_batches import take_out
from evalstore.planning.cells.failed_work import busy_cells, failed_judgements, failed_questions
from evalstore.planning.judge_names import find_feedback
from evalstore.planning.open_project import open_project
from evalstore.planning.planner import plan_cells, require_sound, resolve_scope
from evalstore.planning.results import CellResult, as_result, compute_results
from evalstore.results.prompt_names import prompt_label
from evalstore.results.rendering import answer_text
from evalstore.runs.run_totals import cell_key

if TYPE_CHECKING:
    from evalstore.core.errors import Problem
    from evalstore.core.progress import ProgressListener
    from evalstore.planning.cells.cells import Cell
    from evalstore.planning.options import Location, RunOptions, SelectionOptions
    from evalstore.planning.plan import Plan
    from evalstore.planning.project import Project
    from evalstore.results.growing_results import CellKey
    from evalstore.results.table.test_lines import TestLines
    from evalstore.runs.run_report import RunReport
    from evalstore.workspace.folder import WorkspaceFolder


@dataclass(frozen=True, slots=True)
class CurrentCase:
    """A case with a system prompt and a candidate, and its verdict now."""

    place: CellKey
    prompt: str
    """The name of its system prompt if the case has several; else empty."""
    tags: tuple[str, ...]
    word: str | None
    """The verdict, `pending`, or `no reply` if a call failed; `skipped` if the candidate lacks a
    capability; None for an answered case that nothing judges."""
    feedback: str = ""
    answer: str = ""
    """The first answer; empty for a case that passed."""
    session: str = ""
    """The id of that answer."""
    reason: str = ""
    """Why it is pending or skipped."""
    can_run: bool = False
    """Whether a run would ask or judge something for it."""

    @property
    def is_missing(self) -> bool:
        """Return whether an answer or a judgement is missing."""
        return self.word in ("pending", "no reply")


@dataclass
class CurrentCases:
    """The cases of a workspace, by file and row."""

    cases: dict[str, list[CurrentCase]]
    """By test file, relative to the workspace."""
    workspace: WorkspaceFolder
    problems: dict[str, list[Problem]]
    """The errors of test files, whose cases are left out."""
    warnings: list[str] = field(default_factory=list)

    @cached_property
    def lines(self) -> TestLines:
        """Return the lines of the cases in their files."""
        from evalstore.results.table.test_lines import TestLines

        return TestLines(self.workspace)

    def __iter__(self) -> Iterator[CurrentCase]:
        """Iterate over all cases."""
        for cases in self.cases.values():
            yield from cases


def read_current(location: Location, selection: SelectionOptions) -> CurrentCases:
    """Return the cases with the verdicts that the store has; raises `EvalstoreError`.

    Nothing is asked or judged. Test files with errors are left out.
    """
    selection = replace(selection, keep_going=True)
    with open_project(location, create=True) as project:
        require_sound(project, selection)
        scope = resolve_scope(project, selection)
        plan = plan_cells(project, scope, [*take_out(scope.cells)])
        results = compute_results(plan, project.settings.verdict)
        described = _Describer(project, plan, results, is_offline=selection.offline)
        cases: dict[str, list[CurrentCase]] = {}
        for result in results:
            cases.setdefault(result.cell.file, []).append(described.case(result))
        for pair in scope.skipped:
            reason = f"{pair.model} lacks {', '.join(pair.lacks)}"
            case = CurrentCase((pair.file, pair.row, 0, pair.model), "", (), "skipped")
            cases.setdefault(pair.file, []).append(replace(case, reason=reason))
        problems: dict[str, list[Problem]] = {}
        for problem in project.left_out:
            problems.setdefault(problem.file, []).append(problem)
        return CurrentCases(cases, project.workspace, problems, [*project.warnings])


def run_current(
    location: Location,
    selection: SelectionOptions,
    places: Collection[CellKey],
    options: RunOptions,
    listener: ProgressListener,
) -> RunReport:
    """Run the cases at these places, and record the run; raises as `run`."""
    from evalstore.runs.run import run  # it takes as long to import as all of the above

    kept = set(places)
    return run(
        location,
        replace(selection, keep_going=True),
        options,
        listener,
        only=lambda cell: cell_key(cell) in kept,
    )


class _Describer:
    """Describes the results of a plan; what several of them need is read at once."""

    def __init__(
        self, project: Project, plan: Plan, results: Collection[CellResult], *, is_offline: bool
    ) -> None:
        self._project = project
        self._plan = plan
        self._is_offline = is_offline
        shown = [result for result in results if result.word != "pass"]
        self._feedback = find_feedback(
            project.store, (as_result(result).decision for result in shown)
        )
        self._answers = project.store.find_answers(
            result.sessions[0] for result in shown if result.sessions
        )
        self._questions = {
            question: failure.message
            for question, failure in failed_questions(project, plan).items()
        }
        self._judgements = self._read_judgements()
        busy = busy_cells(plan) if plan.asks or plan.judgements else []
        self._busy = set(map(cell_key, busy))
        self._prompts: dict[str | None, str] = {}

    def _read_judgements(self) -> Mapping[str, str]:
        """Return the messages of failed judgements by the id of their subject."""
        planned = {
            (judgement.subject, judgement.cell.case.evaluation, judgement.evaluator)
            for judgement in self._plan.judgements
            if judgement.subject is not None
        }
        if not planned:
            return {}
        failures = failed_judgements(self._project, self._plan)
        return {
            subject: failures[subject, evaluation, evaluator].message
            for subject, evaluation, evaluator in planned & failures.keys()
        }

    def case(self, result: CellResult) -> CurrentCase:
        """Return the case of a result."""
        cell = result.cell
        word, reason = result.word, ""
        if result.pending:
            failure = self._find_failure(cell)
            word = "no reply" if failure else "pending"
            reason = failure or self._find_reason(result)
        session = result.sessions[0] if result.sessions else ""
        answer = self._answers.get(session)
        return CurrentCase(
            place=cell_key(cell),
            prompt=self._name_prompt(cell.prompt) if len(cell.case.prompts) > 1 else "",
            tags=cell.case.tags,
            word=word,
            feedback=self._feedback.get(as_result(result).decision, ""),
            answer="" if answer is None else answer_text(answer),
            session=session,
            reason=reason,
            can_run=cell_key(cell) in self._busy,
        )

    def _name_prompt(self, prompt: str | None) -> str:
        if prompt not in self._prompts:
            self._prompts[prompt] = prompt_label(self._project, prompt)
        return self._prompts[prompt]

    def _find_failure(self, cell: Cell) -> str:
        """Return the message of a failed call of a cell; empty if none failed."""
        for question in cell.questions:
            if question in self._questions:
                return self._questions[question]
        if self._judgements:
            for subject in map(hashing.subject_of, cell.subjects(self._plan.sessions)):
                if subject in self._judgements:
                    return self._judgements[subject]
        return ""

    def _find_reason(self, result: CellResult) -> str:
        """Return why an answer or a judgement is missing that no call was made for."""
        cell = result.cell
        untrusted = self._project.code.untrusted
        waiting = [untrusted[text] for text in cell.case.code if text in untrusted]
        if waiting and cell.case.evaluation in self._plan.waiting:
            return f"{waiting[0].fact}: {waiting[0].command}"
        models = (cell.candidate.trust_needed, *(judge.trust_needed for judge in cell.judges))
        if model := next(filter(None, models), ""):
            return f"the application of '{model}' is not trusted on this machine"
        if not cell.judges and "models" in cell.case.judged_by and result.sessions:
            return "it has no judge"
        todo = "judged" if len(result.sessions) == cell.required_answers else "asked"
        return f"it was not {todo}{', as no call was allowed' if self._is_offline else ''}"
