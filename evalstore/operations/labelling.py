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
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evalstore import hashing
from evalstore.errors import EvalstoreError, RevisionError
from evalstore.operations.desk import Desk, open_desk, open_store
from evalstore.operations.orders import Wanted
from evalstore.operations.results import read_results, settle
from evalstore.store.revisions import resolve
from evalstore.values import Evaluation, Evaluator, Json, Verdict, Vote, Word

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from evalstore.operations.orders import Where
    from evalstore.report.compare import Result
    from evalstore.store import Store

ORIGIN = "label"
_RUNS = 20
"""The newest runs: in them the place of a session is searched that no case asks for now."""


@dataclass(frozen=True, slots=True)
class Subject:
    """What is labelled: the sessions that are judged together, mostly one, and where they are."""

    file: str
    row: str
    prompt: str | None
    """Id of the system prompt."""
    model: str
    sessions: tuple[str, ...]
    evaluation: str
    """Id of the evaluation version."""
    verdict: Verdict | None
    """Of the case, as it was."""

    @property
    def cell(self) -> tuple[str, str, str | None, str]:
        """What has the verdict that this is a part of."""
        return self.file, self.row, self.prompt, self.model


@dataclass(frozen=True, slots=True)
class Labelled:
    """What a person has said."""

    id: str
    """Of the judgement."""
    subject: Subject
    verdict: Word
    """`none`: what this person had said is taken back."""
    person: str
    note: str
    now: str | None
    """What the case has come to with it: a verdict, or `pending`; None when the workspace does
    not have the case as it was labelled."""

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
            "now": self.now,
            "by": self.person,
            "note": self.note,
        }


def label(
    where: Where,
    case: str,
    verdict: Word,
    *,
    note: str = "",
    person: str | None = None,
    models: tuple[str, ...] = (),
) -> list[Labelled]:
    """Label a case (`PATH::row`) or a session (its id); one label for each attempt.

    Raises `EvalstoreError` when the case has no answer, several candidates or nothing that
    judges it; and when there is nothing to take back.
    """
    with open_desk(where) as desk:
        found = _find(desk, case, models)
        who = person or name_of_person(where.directory)
        labels = add_labels(desk, found, verdict, note, who)
        if not labels:
            raise EvalstoreError(
                f"{who} has not labelled '{case}'",
                hint="a label is taken back by the person who gave it: say who with '--as NAME'",
            )
        return labels


def label_results(
    where: Where,
    results: Sequence[Result],
    verdict: Word,
    *,
    note: str = "",
    person: str | None = None,
    session: str | None = None,
) -> list[Labelled]:
    """Label what cells of a run, or of the workspace, came to; one label for each attempt.

    With a session, only the attempt that it belongs to. A label is under the evaluation version
    that the cell was judged by, which need not be what the case has now. Raises
    `EvalstoreError`, before anything is said, when none of the cells has an answer and something
    that judges it. The list is empty when there was nothing to take back.
    """
    with open_desk(where) as desk:
        found = [
            some
            for one in results
            for some in _of_result(desk, one)
            if session is None or session in some.sessions
        ]
        if not found:
            raise EvalstoreError(
                "there is no answer here that could be labelled",
                hint="'evalstore run' asks for answers; a case that nothing judges has no verdict",
            )
        who = person or name_of_person(where.directory)
        return add_labels(desk, list(dict.fromkeys(found)), verdict, note, who)


def read_note(where: Where, result: Result, session: str | None = None) -> str:
    """The note of the label that whoever works here has given to what a cell came to.

    With a session, to that attempt. Of several the last one; empty when there is none.
    """
    with open_store(where) as store:
        known = _judged_together(store, result)
        alone = ((one,) for one in result.sessions if not any(one in some for some in known))
        found = [
            _subject(result, some)
            for some in (*known, *alone)
            if result.evaluation and (session is None or session in some)
        ]
        last = _last_words(store, found, Evaluator(human=name_of_person(where.directory)))
        said = max((vote for vote in last.values() if vote.verdict != "none"), default=None)
        return store.load_evaluations([said.id])[said.id].feedback if said else ""


def _of_result(desk: Desk, result: Result) -> Iterator[Subject]:
    """What is judged of a cell: as it has been judged, else as the workspace would have it."""
    if result.evaluation is None or not result.sessions:
        return
    known = _judged_together(desk.store, result)
    left = [one for one in result.sessions if not any(one in some for some in known)]
    if left:
        known += _together(desk, result, left)
    for sessions in dict.fromkeys(known):
        yield _subject(result, sessions)


def _judged_together(store: Store, result: Result) -> list[tuple[str, ...]]:
    """The sessions of a cell as they have been judged."""
    judged = store.find_evaluations(result.evaluations).values()
    return [one.sessions for one in judged if set(one.sessions) <= set(result.sessions)]


def _subject(result: Result, sessions: tuple[str, ...]) -> Subject:
    assert result.evaluation
    return Subject(
        result.file,
        result.row,
        result.prompt,
        result.model,
        sessions,
        result.evaluation,
        result.verdict,
    )


def _together(desk: Desk, result: Result, sessions: Sequence[str]) -> list[tuple[str, ...]]:
    """Which of the sessions of a cell, that nobody has judged, are judged together."""
    place = (result.test, result.evaluation, set(result.sessions))
    with suppress(EvalstoreError):  # what is wrong with the files does not matter here
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
    desk: Desk, subjects: Sequence[Subject], verdict: Word, note: str, person: str
) -> list[Labelled]:
    """Append a person's verdict on each of these; `none` on those that the person has labelled."""
    evaluator = Evaluator(human=person)
    id, content = hashing.identify(hashing.describe_evaluator(evaluator))
    last = _last_words(desk.store, subjects, evaluator)
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
    fresh = {key: one for key, one in desk.reading.contents.items() if key in told}
    desk.store.ensure_versions({id: ("evaluator", content), **fresh})
    desk.store.record(evaluations=made)
    now = _words_now(desk, subjects)
    return [
        Labelled(key, subject, verdict, person, note, now.get(subject))
        for key, subject in zip(made, subjects, strict=True)
    ]


def _last_words(
    store: Store, subjects: Sequence[Subject], evaluator: Evaluator
) -> dict[Subject, Vote]:
    """What a person has said last of each of these."""
    id = hashing.evaluator_id(evaluator)
    votes = store.find_votes(hashing.subject_of(one.sessions) for one in subjects)
    found: dict[Subject, Vote] = {}
    for one in subjects:
        for vote in votes.get(hashing.subject_of(one.sessions), ()):
            if (vote.evaluator, vote.evaluation) == (id, one.evaluation):
                found[one] = vote
    return found


def _words_now(desk: Desk, subjects: Sequence[Subject]) -> dict[Subject, str | None]:
    """What the workspace makes of the cases of these, as far as it has them."""
    rows = {(path, case.row) for path, file in desk.reading.files.items() for case in file.cases}
    here = rows & {(one.file, one.row) for one in subjects}
    root = desk.workspace.root
    paths = tuple(f"{root / file}::{row}" if row else str(root / file) for file, row in here)
    words: dict[tuple[str, str, str | None, str], str | None] = {}
    with suppress(EvalstoreError):  # what is wrong with the files does not matter here
        for one in settle(desk.plan(Wanted(paths=paths)), desk.settings.verdict) if here else ():
            case = one.cell.case
            for session in one.sessions:
                words[one.cell.file, case.row, case.evaluation, session] = one.word
    return {
        one: words.get((one.file, one.row, one.evaluation, one.sessions[0])) for one in subjects
    }


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
                    cell.prompt,
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
    with suppress(EvalstoreError):  # what is wrong with other files does not matter here
        for one in subjects_of(desk, Wanted()):
            if session in one.sessions:
                return one
    for _, run in desk.store.find_runs(limit=_RUNS):
        for seen in read_results(desk.store, run):
            if session in seen.sessions and seen.evaluation is not None:
                judged = desk.store.find_evaluations(seen.evaluations).values()
                together = (one.sessions for one in judged if session in one.sessions)
                sessions = next(together, (session,))
                return _subject(seen, sessions)
    raise EvalstoreError(
        f"session {session[:8]} is of no case that is judged",
        hint=f"the workspace and the newest {_RUNS} runs were searched",
    )
