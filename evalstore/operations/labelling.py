"""`label`: what a person says of an answer, appended as a judgement like any other.

It stands beside what checks and models have said and decides: the verdict is the person's,
under the instructions and checks that the case has now. When these are edited everything is
judged anew, the label with it.
"""

from __future__ import annotations

import getpass
import secrets
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from evalstore import hashing
from evalstore.errors import EvalstoreError, RevisionError
from evalstore.operations.desk import Desk, open_desk
from evalstore.operations.orders import Wanted
from evalstore.operations.results import read_results, settle
from evalstore.store.revisions import resolve
from evalstore.values import Evaluation, Evaluator, Json, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from evalstore.operations.orders import Where
    from evalstore.report.compare import Result

ORIGIN = "label"
_RUNS = 20
"""The newest runs: in them the place of a session is searched that no case asks for now."""


@dataclass(frozen=True, slots=True)
class Subject:
    """What is labelled: the sessions that are judged together, mostly one, and where they are."""

    file: str
    row: str
    model: str
    sessions: tuple[str, ...]
    evaluation: str
    """Id of the evaluation version."""
    verdict: Verdict | None
    """Of the case, as it was."""


@dataclass(frozen=True, slots=True)
class Labelled:
    """What a person has said."""

    id: str
    """Of the judgement."""
    subject: Subject
    verdict: Verdict
    person: str
    note: str
    counts: bool = True
    """Whether the workspace has the case as it was labelled."""

    def document(self) -> Json:
        """As JSON."""
        return {
            "judgement": self.id,
            "file": self.subject.file,
            "row": self.subject.row,
            "model": self.subject.model,
            "sessions": list(self.subject.sessions),
            "was": self.subject.verdict,
            "verdict": self.verdict,
            "by": self.person,
            "note": self.note,
        }


def label(
    where: Where,
    case: str,
    verdict: Verdict,
    *,
    note: str = "",
    person: str | None = None,
    models: tuple[str, ...] = (),
) -> list[Labelled]:
    """Label a case (`PATH::row`) or a session (its id); one label for each attempt.

    Raises `EvalstoreError` when the case has no answer, several candidates or nothing that
    judges it.
    """
    with open_desk(where) as desk:
        found = _find(desk, case, models)
        return add_labels(desk, found, verdict, note, person or name_of_person(where.directory))


def label_results(
    where: Where,
    results: Sequence[Result],
    verdict: Verdict,
    *,
    note: str = "",
    person: str | None = None,
    session: str | None = None,
) -> list[Labelled]:
    """Label what cells of a run, or of the workspace, came to; one label for each attempt.

    With a session, only the attempt that it belongs to. A label is under the evaluation version
    that the cell was judged by, which need not be what the case has now. Raises
    `EvalstoreError`, before anything is said, when none of the cells has an answer and something
    that judges it.
    """
    with open_desk(where) as desk:
        now = {
            (case.tests[0], case.evaluation)
            for file in desk.reading.files.values()
            for case in file.cases
        }
        found: dict[Subject, bool] = {}
        for one in results:
            subjects = [
                some
                for some in _of_result(desk, one)
                if session is None or session in some.sessions
            ]
            found |= dict.fromkeys(subjects, (one.test, one.evaluation) in now)
        if not found:
            raise EvalstoreError(
                "there is no answer here that could be labelled",
                hint="'evalstore run' asks for answers; a case that nothing judges has no verdict",
            )
        who = person or name_of_person(where.directory)
        made = add_labels(desk, list(found), verdict, note, who)
        return [replace(one, counts=found[one.subject]) for one in made]


def _of_result(desk: Desk, result: Result) -> Iterator[Subject]:
    """What is judged of a cell: as it has been judged, else as the workspace would have it."""
    if result.evaluation is None or not result.sessions:
        return
    judged = desk.store.load_evaluations(result.evaluations).values()
    known = dict.fromkeys(
        one.sessions for one in judged if set(one.sessions) <= set(result.sessions)
    )
    left = [one for one in result.sessions if not any(one in some for some in known)]
    if left:
        known |= dict.fromkeys(_together(desk, result, left))
    for sessions in known:
        yield Subject(
            result.file,
            result.row,
            result.model,
            sessions,
            result.evaluation,
            result.verdict,
        )


def _together(desk: Desk, result: Result, sessions: Sequence[str]) -> list[tuple[str, ...]]:
    """Which of the sessions of a cell, that nobody has judged, are judged together."""
    place = (result.test, result.evaluation, set(result.sessions))
    with suppress(EvalstoreError):  # what is wrong with the files is no matter here
        plan = desk.plan(Wanted())
        for cell in plan.cells:
            found = list(cell.subjects(plan.sessions))
            every = {id for some in found for id in some}
            if (cell.case.tests[0], cell.case.evaluation, every) == place:
                return [some for some in found if set(some) & set(sessions)]
    if result.wanted > 1 and len(set(desk.store.find_questions_of(result.sessions).values())) > 1:
        return []  # several conversations, and some of them are not held yet
    return [(one,) for one in sessions]


def add_labels(
    desk: Desk, subjects: Sequence[Subject], verdict: Verdict, note: str, person: str
) -> list[Labelled]:
    """Append a person's verdict on each of these."""
    evaluator = Evaluator(human=person)
    id, content = hashing.identify(hashing.describe_evaluator(evaluator))
    made: dict[str, tuple[Evaluation, str]] = {}
    found: list[Labelled] = []
    for subject in subjects:
        evaluation = Evaluation(
            sessions=subject.sessions,
            evaluation=subject.evaluation,
            evaluator=id,
            verdict=verdict,
            started=time.time_ns() // 1000,
            nonce=secrets.token_hex(8),
            feedback=note,
            origin=ORIGIN,
        )
        key, text = hashing.identify(hashing.describe_evaluation_result(evaluation))
        made[key] = (evaluation, text)
        found.append(Labelled(key, subject, verdict, person, note))
    told = {one.evaluation for one in subjects}
    fresh = {key: one for key, one in desk.reading.contents.items() if key in told}
    desk.store.ensure_versions({id: ("evaluator", content), **fresh})
    desk.store.record(evaluations=made)
    return found


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
        raise EvalstoreError("nobody knows who labels", hint="say it with '--as NAME'") from problem


def subjects_of(desk: Desk, wanted: Wanted) -> list[Subject]:
    """Everything that can be labelled of what is selected: answered, and judged somehow."""
    found: list[Subject] = []
    plan = desk.plan(wanted)
    for one in settle(plan, desk.settings.verdict):
        cell = one.cell
        if cell.case.evaluation is None:
            continue
        for sessions in cell.subjects(plan.sessions):
            found.append(
                Subject(
                    cell.file,
                    cell.case.row,
                    cell.candidate.id,
                    sessions,
                    cell.case.evaluation,
                    one.verdict,
                )
            )
    return found


def _find(desk: Desk, case: str, models: tuple[str, ...]) -> list[Subject]:
    session = None if "::" in case or "." in case else _session(desk, case)
    if session is not None:
        return [_of_session(desk, session)]
    found = subjects_of(desk, Wanted(paths=(case,), models=models))
    cases = {(one.file, one.row) for one in found}
    if not found:
        raise EvalstoreError(
            f"'{case}' has no answer that could be labelled",
            hint="'evalstore run' asks for answers; a case that nothing judges has no verdict",
        )
    if len(cases) > 1:
        raise EvalstoreError(
            f"'{case}' is {len(cases)} cases",
            hint="name one: " + _some(f"{file}::{row}" for file, row in cases),
        )
    if len({one.model for one in found}) > 1:
        raise EvalstoreError(
            f"{len({one.model for one in found})} candidates have answered '{case}'",
            hint="name one with --model: " + _some(one.model for one in found),
        )
    return found


def _some(names: Iterable[str]) -> str:
    listed = sorted(set(names))
    return ", ".join(listed[:5]) + (", …" if len(listed) > 5 else "")


def _session(desk: Desk, text: str) -> str | None:
    """The id of a session, when the text is the start of one."""
    try:
        kind, id = resolve(desk.store, text)
    except RevisionError:
        return None
    if kind != "session":
        raise EvalstoreError(
            f"'{text}' is a {kind}, and a session or a case can be labelled",
            hint="'evalstore show' names the sessions of a run",
        )
    return id


def _of_session(desk: Desk, session: str) -> Subject:
    """A session with its place: as the workspace asks for it now, else as a run has seen it."""
    with suppress(EvalstoreError):  # what is wrong with other files is no matter here
        for one in subjects_of(desk, Wanted()):
            if session in one.sessions:
                return one
    for _, run in desk.store.find_runs(limit=_RUNS):
        for seen in read_results(desk.store, run):
            if session in seen.sessions and seen.evaluation is not None:
                judged = desk.store.load_evaluations(seen.evaluations).values()
                together = (one.sessions for one in judged if session in one.sessions)
                sessions = next(together, (session,))
                return Subject(
                    seen.file, seen.row, seen.model, sessions, seen.evaluation, seen.verdict
                )
    raise EvalstoreError(
        f"session {session[:8]} is of no case that is judged",
        hint=f"the workspace and the newest {_RUNS} runs were searched",
    )
