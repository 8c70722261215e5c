"""Finds the answers to label: by a case as it is written or printed, or by a session."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from evalstore.core.errors import EvalstoreError, RevisionError
from evalstore.planning.options import SelectionOptions
from evalstore.planning.planner import make_plan
from evalstore.planning.results import compute_results
from evalstore.results.case_reference import WITH_PROMPT
from evalstore.results.prompt_names import find_prompt, label_prompts, list_names
from evalstore.store.results import read_results
from evalstore.store.revisions import resolve
from evalstore.store.runs import RUNS_SEARCHED

if TYPE_CHECKING:
    from evalstore.core.results import Result
    from evalstore.core.values import Verdict
    from evalstore.planning.project import Project


@dataclass(frozen=True, slots=True)
class LabelSubject:
    """The sessions that are judged together, mostly one, and their place."""

    JSON_FIELDS = ("file", "row", "prompt", "model", "sessions", "verdict")
    file: str
    row: str
    prompt: str | None
    """The id of the system prompt."""
    model: str
    sessions: tuple[str, ...]
    evaluation: str
    """The id of the evaluation version."""
    verdict: Verdict | None = field(metadata={"json_name": "was"})
    """The verdict of the case without the label."""

    @property
    def cell(self) -> tuple[str, str, str | None, str]:
        """Return the cell that the sessions belong to."""
        return self.file, self.row, self.prompt, self.model


def subject_of_result(result: Result, sessions: tuple[str, ...]) -> LabelSubject:
    """Return the subject of some sessions of a result."""
    assert result.evaluation
    return LabelSubject(
        result.file,
        result.row,
        result.prompt,
        result.model,
        sessions,
        result.evaluation,
        result.verdict,
    )


def subjects_of(project: Project, selection: SelectionOptions) -> list[LabelSubject]:
    """Return the selected subjects with an answer and an evaluation, which can be labelled."""
    subjects: list[LabelSubject] = []
    plan = make_plan(project, selection)
    for result in compute_results(plan, project.settings.verdict):
        cell = result.cell
        if cell.case.evaluation is None:
            continue
        for sessions in cell.subjects(plan.sessions):
            subjects.append(
                LabelSubject(
                    cell.file,
                    cell.case.row,
                    cell.prompt,
                    cell.candidate.id,
                    sessions,
                    cell.case.evaluation,
                    result.verdict,
                )
            )
    return subjects


def find_named(
    project: Project, case: str, models: tuple[str, ...], prompt: str | None, *, every: bool
) -> list[LabelSubject]:
    """Return the subjects that the command line names; with `every` there may be several.

    Raises `EvalstoreError` when there is none, or when several are not allowed.
    """
    session = None if "::" in case or "." in case else _session(project, case)
    if session is not None:
        return [_of_session(project, session)]
    path, named = _without_prompt(project, case)
    subjects = subjects_of(project, SelectionOptions(paths=(path,), models=models))
    if subjects and (prompt or named):
        subjects = _of_prompt(project, subjects, prompt or named)
    if subjects and not every:
        _require_single_subject(project, case, subjects)
    if not subjects:
        raise EvalstoreError(
            f"'{case}' has no answer that could be labelled",
            hint="'evalstore run' asks for answers; a case that nothing judges has no verdict",
        )
    return subjects


def _without_prompt(project: Project, case: str) -> tuple[str, str]:
    """Return a case, and the system prompt that is printed after it; empty if there is none."""
    try:
        project.targets((case,))
    except EvalstoreError:
        printed = WITH_PROMPT.fullmatch(case)
        if printed is None:
            raise
        project.targets((printed["case"],))
        return printed["case"], printed["prompt"]
    return case, ""


def _of_prompt(project: Project, subjects: list[LabelSubject], named: str) -> list[LabelSubject]:
    """Return the subjects with a system prompt, given by its name or the first digits of its id."""
    prompts = dict.fromkeys(subject.prompt for subject in subjects)
    names = label_prompts(project, {id: number for number, id in enumerate(prompts)})
    id = find_prompt(names, named)
    return [subject for subject in subjects if subject.prompt == id]


def _require_single_subject(project: Project, case: str, subjects: list[LabelSubject]) -> None:
    """Raise `EvalstoreError` when the subjects differ in case, candidate or system prompt."""
    cases = {(subject.file, subject.row) for subject in subjects}
    if len(cases) > 1:
        raise EvalstoreError(
            f"'{case}' has {len(cases)} cases",
            hint="name one, or add --all: " + list_names(f"{file}::{row}" for file, row in cases),
        )
    models = {subject.model for subject in subjects}
    if len(models) > 1:
        raise EvalstoreError(
            f"{len(models)} candidates have answered '{case}'",
            hint="name one with --model, or add --all: " + list_names(models),
        )
    prompts = {subject.prompt for subject in subjects}
    if len(prompts) > 1:
        numbers = {id: number for number, id in enumerate(prompts)}
        names = list_names(label_prompts(project, numbers).values())
        raise EvalstoreError(
            f"'{case}' was answered with {len(prompts)} system prompts",
            hint=f"name one with --prompt, or add --all: {names}",
        )


def _session(project: Project, text: str) -> str | None:
    """Return the id of the session that starts with the text; None when there is none."""
    try:
        kind, id = resolve(project.store, text)
    except RevisionError:
        return None
    if kind != "session":
        raise EvalstoreError(
            f"'{text}' is a {kind}, and a session or a case can be labelled",
            hint="'evalstore show' names the sessions of a run",
        )
    return id


def _of_session(project: Project, session: str) -> LabelSubject:
    """Return the subject of a session: in the workspace now, else in a recent run."""
    with suppress(EvalstoreError):  # what is wrong with other files does not matter here
        for subject in subjects_of(project, SelectionOptions()):
            if session in subject.sessions:
                return subject
    for run in project.store.find_recent_runs():
        for seen in read_results(project.store, run):
            if session in seen.sessions and seen.evaluation is not None:
                judged = project.store.find_evaluations(seen.evaluations).values()
                together = (
                    evaluation.sessions for evaluation in judged if session in evaluation.sessions
                )
                sessions = next(together, (session,))
                return subject_of_result(seen, sessions)
    raise EvalstoreError(
        f"session {session[:8]} is of no case that is judged",
        hint=f"the workspace and the newest {RUNS_SEARCHED} runs were searched",
    )
