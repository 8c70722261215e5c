"""`label`: what a person says of an answer, appended as a judgement like any other.

It stands beside what checks and models have said and decides: the verdict is the person's,
under the instructions and checks that the case has now. When these are edited everything is
judged anew, the label with it. Nothing is deleted: who takes a label back says `none`, and that
is appended, too.
"""

from __future__ import annotations

import getpass
import secrets
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from evalstore import hashing
from evalstore.errors import EvalstoreError
from evalstore.operations.label_subjects import LabelSubject, find_named, subject_of_result
from evalstore.operations.prompt_names import prompt_label
from evalstore.planning.open_project import open_project, open_store
from evalstore.planning.options import SelectionOptions
from evalstore.planning.planner import make_plan
from evalstore.planning.results import compute_results
from evalstore.results import Evaluation, Vote
from evalstore.values import Evaluator, Word

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from evalstore.planning.options import Location
    from evalstore.planning.project import Project
    from evalstore.results import Result
    from evalstore.store import Store
    from evalstore.values import Verdict

ORIGIN = "label"


@dataclass(frozen=True, slots=True)
class LabelReport:
    """A label that was given, and what it changed."""

    JSON_FIELDS = ("id", "subject", "verdict", "now", "person", "note")
    id: str = field(metadata={"json_name": "judgement"})
    """Of the judgement."""
    subject: LabelSubject = field(metadata={"json_inline": True})
    verdict: Word
    """`none`: the label that this person had given is taken back."""
    person: str = field(metadata={"json_name": "by"})
    note: str
    now: str | None
    """The verdict on the case with it, or `pending`; None when the workspace does not have the
    case as it was labelled."""
    prompt: str = ""
    """What the system prompt is called, when the case has several; else empty."""

    @property
    def file(self) -> str:
        """The test file of the case."""
        return self.subject.file

    @property
    def row(self) -> str:
        """The row of the case."""
        return self.subject.row

    @property
    def model(self) -> str:
        """The candidate that has answered."""
        return self.subject.model

    @property
    def was(self) -> Verdict | None:
        """The verdict on the case before the label."""
        return self.subject.verdict


def label(
    location: Location,
    case: str,
    verdict: Word,
    *,
    note: str = "",
    person: str | None = None,
    models: tuple[str, ...] = (),
    prompt: str | None = None,
    every: bool = False,
) -> list[LabelReport]:
    """Label a case (`PATH::row`) or a session (its id); one label for each attempt.

    Of several candidates `models` names one, of several system prompts `prompt`, by its name or
    the first digits of its id. With `every`, all that is named is labelled. Raises
    `EvalstoreError` when the case has no answer or nothing that judges it, when several are
    meant, and when there is nothing to take back.
    """
    with open_project(location) as project:
        found = find_named(project, case, models, prompt, every=every)
        who = person or name_of_person(location.directory)
        labels = add_labels(project, found, verdict, note, who)
        if not labels:
            raise EvalstoreError(
                f"{who} has not labelled '{case}'",
                hint="only the person who gave a label can remove it; name them with '--as NAME'",
            )
        return labels


def label_results(
    location: Location,
    results: Sequence[Result],
    verdict: Word,
    *,
    note: str = "",
    person: str | None = None,
    session: str | None = None,
) -> list[LabelReport]:
    """Label what cells of a run, or of the workspace, came to; one label for each attempt.

    With a session, only the attempt that it belongs to. A label is under the evaluation version
    that the cell was judged by, which need not be what the case has now. Raises
    `EvalstoreError`, before anything is said, when none of the cells has an answer and something
    that judges it. The list is empty when there was nothing to take back.
    """
    with open_project(location) as project:
        found = [
            some
            for result in results
            for some in _of_result(project, result)
            if session is None or session in some.sessions
        ]
        if not found:
            raise EvalstoreError(
                "there is no answer here that could be labelled",
                hint="'evalstore run' asks for answers; a case that nothing judges has no verdict",
            )
        who = person or name_of_person(location.directory)
        return add_labels(project, list(dict.fromkeys(found)), verdict, note, who)


def read_note(location: Location, result: Result, session: str | None = None) -> str:
    """The note of the label that whoever works here has given to what a cell came to.

    With a session, to that attempt. Of several the last one; empty when there is none.
    """
    with open_store(location) as store:
        known = _judged_together(store, result)
        alone = ((one,) for one in result.sessions if not any(one in some for some in known))
        found = [
            subject_of_result(result, some)
            for some in (*known, *alone)
            if result.evaluation and (session is None or session in some)
        ]
        last = _last_words(store, found, Evaluator(human=name_of_person(location.directory)))
        said = max((vote for vote in last.values() if vote.verdict != "none"), default=None)
        return store.load_evaluations([said.id])[said.id].feedback if said else ""


def _of_result(project: Project, result: Result) -> Iterator[LabelSubject]:
    """What is judged of a cell: as it has been judged, else as the workspace would have it."""
    if result.evaluation is None or not result.sessions:
        return
    known = _judged_together(project.store, result)
    left = [session for session in result.sessions if not any(session in some for some in known)]
    if left:
        known += _together(project, result, left)
    for sessions in dict.fromkeys(known):
        yield subject_of_result(result, sessions)


def _judged_together(store: Store, result: Result) -> list[tuple[str, ...]]:
    """The sessions of a cell as they have been judged."""
    judged = store.find_evaluations(result.evaluations).values()
    return [
        evaluation.sessions
        for evaluation in judged
        if set(evaluation.sessions) <= set(result.sessions)
    ]


def _together(project: Project, result: Result, sessions: Sequence[str]) -> list[tuple[str, ...]]:
    """Which of the sessions of a cell, that nobody has judged, are judged together."""
    place = (result.test, result.evaluation, set(result.sessions))
    with suppress(EvalstoreError):  # what is wrong with the files does not matter here
        plan = make_plan(project, SelectionOptions())
        for cell in plan.cells:
            found = list(cell.subjects(plan.sessions))
            every = {id for some in found for id in some}
            if (cell.case.tests[0], cell.case.evaluation, every) == place:
                return [some for some in found if set(some) & set(sessions)]
    if (
        result.wanted > 1
        and len(set(project.store.find_questions_of(result.sessions).values())) > 1
    ):
        return []  # several conversations, and some of them are not held yet
    return [(session,) for session in sessions]


def add_labels(
    project: Project, subjects: Sequence[LabelSubject], verdict: Word, note: str, person: str
) -> list[LabelReport]:
    """Append a person's verdict on each of these; `none` on those that the person has labelled."""
    evaluator = Evaluator(human=person)
    id, content = hashing.identify(hashing.describe_evaluator(evaluator))
    last = _last_words(project.store, subjects, evaluator)
    if verdict == "none":
        subjects = [one for one in subjects if one in last and last[one].verdict != "none"]
    made: dict[str, tuple[Evaluation, str]] = {}
    for subject in subjects:
        before = last[subject].started if subject in last else 0
        evaluation = Evaluation(
            sessions=subject.sessions,
            evaluation=subject.evaluation,
            evaluator=id,
            verdict=verdict,
            started=max(time.time_ns() // 1000, before + 1),  # whatever the clock says: it is later
            nonce=secrets.token_hex(8),
            feedback=note,
            origin=ORIGIN,
        )
        key, text = hashing.identify(hashing.describe_evaluation_result(evaluation))
        made[key] = (evaluation, text)
    told = {one.evaluation for one in subjects}
    fresh = {key: one for key, one in project.reading.contents.items() if key in told}
    project.store.ensure_versions({id: ("evaluator", content), **fresh})
    project.store.record(evaluations=made)
    now = _words_now(project, subjects)
    return [
        LabelReport(
            key, subject, verdict, person, note, now.get(subject), _prompt_of(project, subject)
        )
        for key, subject in zip(made, subjects, strict=True)
    ]


def _last_words(
    store: Store, subjects: Sequence[LabelSubject], evaluator: Evaluator
) -> dict[LabelSubject, Vote]:
    """What a person has said last of each of these."""
    id = hashing.evaluator_id(evaluator)
    votes = store.find_votes(hashing.subject_of(subject.sessions) for subject in subjects)
    found: dict[LabelSubject, Vote] = {}
    for subject in subjects:
        for vote in votes.get(hashing.subject_of(subject.sessions), ()):
            if (vote.evaluator, vote.evaluation) == (id, subject.evaluation):
                found[subject] = vote
    return found


def _words_now(
    project: Project, subjects: Sequence[LabelSubject]
) -> dict[LabelSubject, str | None]:
    """What the workspace makes of the cases of these, as far as it has them."""
    rows = {(path, case.row) for path, file in project.reading.files.items() for case in file.cases}
    here = rows & {(subject.file, subject.row) for subject in subjects}
    root = project.workspace.root
    paths = tuple(f"{root / file}::{row}" if row else str(root / file) for file, row in here)
    words: dict[tuple[str, str, str | None, str], str | None] = {}
    with suppress(EvalstoreError):  # what is wrong with the files does not matter here
        for result in (
            compute_results(
                make_plan(project, SelectionOptions(paths=paths)), project.settings.verdict
            )
            if here
            else ()
        ):
            case = result.cell.case
            for session in result.sessions:
                words[result.cell.file, case.row, case.evaluation, session] = result.word
    return {
        subject: words.get((subject.file, subject.row, subject.evaluation, subject.sessions[0]))
        for subject in subjects
    }


def _prompt_of(project: Project, subject: LabelSubject) -> str:
    """What the system prompt of a case is called, when it has several; else empty."""
    file = project.reading.files.get(subject.file)
    prompts = {
        id
        for case in (file.cases if file else ())
        if case.row == subject.row
        for id in case.prompts
    }
    return prompt_label(project, subject.prompt) if len({*prompts, subject.prompt}) > 1 else ""


def name_of_person(directory: Path) -> str:
    """Who labels: git's `user.name`, else the name of the login."""
    try:
        found = subprocess.run(
            ["git", "config", "user.name"],
            cwd=directory,
            capture_output=True,
            text=True,
            timeout=10,
            check=False,
        ).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        found = ""
    try:
        return found or getpass.getuser()
    except (OSError, KeyError) as problem:
        raise EvalstoreError(
            "cannot determine your name", hint="give it with '--as NAME'"
        ) from problem
