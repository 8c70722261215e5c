"""The labels of people: finds them for results, and appends them for the command `label`.

A label takes precedence over the verdicts of checks and models, with the current instructions and
checks of the case. After an edit of these, the answer needs new judgements and a new label.
Nothing is deleted: the verdict `none`, which removes a label, is appended as well.

A recorded run does not change. A label that is added later is shown beside its verdict, and counts
in the workspace and in later runs.
"""

from __future__ import annotations

import secrets
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain

from evalstore.checks.aggregation import combine_votes
from evalstore.core import hashing
from evalstore.core.display import PERSON, SIGNS, kind_word, plural
from evalstore.core.errors import EvalstoreError, RevisionError
from evalstore.core.runs import Run
from evalstore.core.values import Evaluation, Evaluator, Result, Verdict, Word
from evalstore.planning.cell_results import compute_results
from evalstore.planning.open_project import open_project
from evalstore.planning.options import Location, SelectionOptions
from evalstore.planning.plan import Plan
from evalstore.planning.project import Project
from evalstore.planning.status_report import results_at
from evalstore.results.names import (
    WITH_PROMPT,
    find_prompt,
    list_names,
    name_prompts_of_run,
    prompt_label,
)
from evalstore.store import Store
from evalstore.store.events import RUNS_SEARCHED, Label
from evalstore.store.results import SessionResults
from evalstore.store.revisions import resolve
from evalstore.workspace.git.status import name_of_user


@dataclass(frozen=True, slots=True)
class LabelIndex:
    """An index of all labels by the results to which they belong."""

    by_place: Mapping[tuple[str, str], Sequence[Label]] = field(default_factory=dict)
    """The labels by evaluation version and first session, oldest first."""

    def of(self, result: Result) -> list[Label]:
        """Return the labels on a result under its evaluation version.

        These are the labels that count in its verdict, and the last later label of each person. A
        later label that was removed again is left out.
        """
        if not self.by_place or result.evaluation is None:
            return []
        given = [
            label
            for session in dict.fromkeys(result.sessions)
            for label in self.by_place.get((result.evaluation, session), ())
        ]
        if not given:
            return []
        together = {*result.subjects}
        words = [
            each for each in given if each.id in result.evaluations or each.sessions in together
        ]
        last = {(word.person, word.sessions): word.id for word in words}
        counted = {(word.person, word.sessions) for word in words if word.id in result.evaluations}
        return [
            word
            for word in words
            if word.id in result.evaluations
            or (
                word.id == last[word.person, word.sessions]
                and (word.verdict != "none" or (word.person, word.sessions) in counted)
            )
        ]

    def current(self, result: Result, session: str | None = None) -> list[Label]:
        """Return the last label of each person, if not removed, on each attempt or on one."""
        last = {(label.person, label.sessions): label for label in self.of(result)}
        given = (label for label in last.values() if label.verdict != "none")
        return [label for label in given if session in (None, *label.sessions)]

    def last(self) -> list[Label]:
        """Return the last label of each person on each answer, without those that were removed."""
        given = chain.from_iterable(self.by_place.values())
        last = {(label.person, label.evaluation, label.sessions): label for label in given}
        return [label for label in last.values() if label.verdict != "none"]

    def later(self, result: Result) -> list[Label]:
        """Return the labels that were added after the run and do not count in its verdict."""
        return [label for label in self.of(result) if label.id not in result.evaluations]

    def word(self, result: Result) -> Word | None:
        """Return the verdict of all labels if there are later ones, of which the majority decides.

        None without later labels, and `none` if they only remove labels.
        """
        if not self.later(result):
            return None
        words = [(each.verdict, None) for each in self.current(result) if each.verdict != "none"]
        return combine_votes(words).verdict if words else "none"

    def decides(self, result: Result) -> bool:
        """Return whether the verdict on a result is that of a label."""
        return any(label.id in result.evaluations for label in self.of(result))

    def signs(self, result: Result) -> str:
        """Return the sign of a person who decided a result, or labelled it after the run."""
        if word := self.word(result):
            return f"{PERSON}{SIGNS[word]}"
        return PERSON if self.decides(result) else ""


def read_labels(store: Store) -> LabelIndex:
    """Read all labels in the store."""
    labels_of: dict[tuple[str, str], list[Label]] = {}
    for label in store.find_labels():
        labels_of.setdefault((label.evaluation, label.sessions[0]), []).append(label)
    return LabelIndex(labels_of)


# --- counts the labels on planned cases that were given, or removed, since a run


class NewLabels:
    """Counts them in the plans of all cells, batch by batch."""

    def __init__(self, store: Store, since: int) -> None:
        """`since` is when the run ended."""
        given = list(chain.from_iterable(read_labels(store).by_place.values()))
        self._since = since
        self._labels = given if any(label.at > since for label in given) else []
        self._places = {(label.evaluation, label.sessions) for label in self._labels}
        self._planned = set[tuple[str, tuple[str, ...]]]()

    def add(self, plan: Plan) -> None:
        """Add the plan of a batch."""
        self._planned |= self._places.intersection(
            (cell.case.evaluation, tuple(subject))
            for cell in (plan.cells if self._places else ())
            if cell.case.evaluation
            for subject in cell.subjects(plan.sessions)
        )

    def count(self) -> int:
        """Return how many labels there are, after all plans were added."""
        here = [it for it in self._labels if (it.evaluation, it.sessions) in self._planned]
        before = LabelIndex({("", ""): [it for it in here if it.at <= self._since]}).last()
        changed = {*before}.symmetric_difference(LabelIndex({("", ""): here}).last())
        return len({(label.person, label.evaluation, label.sessions) for label in changed})


def find_later_labels(
    store: Store, run: Run, quote: Callable[[str], str] = str
) -> tuple[str, dict[Result, str]]:
    """Return a note on how many results were labelled after their run, and by whom.

    With it, of each such result, how it was labelled and by whom. The note is empty without any;
    `quote` writes the name of a person in it.
    """
    told, labels = dict(describe_later_labels(store, run)), read_labels(store)
    people = {label.person for result in told for label in labels.later(result)}
    by = list_names(map(quote, people))
    return f"labels of {plural(len(told), 'result')} changed after this run (by {by})" * bool(
        told
    ), told


def describe_later_labels(store: Store, run: Run) -> Iterator[tuple[Result, str]]:
    """Yield each result of a run that was labelled after it, with how and by whom."""
    labels, sessions = read_labels(store), SessionResults(store)
    newer = {each.sessions[0] for each in chain(*labels.by_place.values()) if each.at > run.started}
    for session in newer:
        for result in sessions.find(run.results, session):
            later = Counter((each.verdict, each.person) for each in labels.later(result))
            total = len(result.sessions) // len(result.tests)
            texts = []
            for (verdict, person), count in later.items():
                of = f" ({count} of {total} attempts)" * (total > 1)
                is_gone = verdict == "none"
                word = (
                    f"label by {person} removed" if is_gone else f"labelled {verdict} by {person}"
                )
                texts.append(f"{word}{of}")
            if texts:
                yield result, f"{', '.join(texts)} after the run"


def with_later_labels(
    location: Location, store: Store, results: Collection[Result]
) -> Mapping[Result, Result]:
    """Return the results of runs that were labelled later, each with its verdict in the workspace.

    Where the instructions or checks were edited since, only labels on the edited case count.
    """
    labels = read_labels(store)
    sessions = {session for _, session in labels.by_place}
    labelled = [result for result in results if not sessions.isdisjoint(result.sessions)]
    if not labelled:
        return {}
    # A system prompt may have another number now, and its answers are of no other one.
    now: dict[tuple[str, str, str, tuple[str, ...]], Result] = {}
    with suppress(EvalstoreError), open_project(location) as project:
        for each in results_at(project, dict.fromkeys((it.file, it.row) for it in labelled)):
            now[each.file, each.row, each.model, each.sessions] = each
    return {
        was: found
        for was in labelled
        if (found := now.get((was.file, was.row, was.model, was.sessions)))
        and (labels.later(was) if found.evaluation == was.evaluation else labels.decides(found))
    }


ORIGIN = "label"


@dataclass(frozen=True, slots=True)
class LabelReport:
    """A label that was given, and what it changed."""

    JSON_FIELDS = ("id", "subject", "verdict", "now", "person", "note")
    id: str = field(metadata={"json_name": "judgement"})
    """The id of the judgement."""
    subject: LabelSubject = field(metadata={"json_inline": True})
    verdict: Word
    """The verdict; `none` if the label of this person was removed."""
    person: str = field(metadata={"json_name": "by"})
    note: str
    now: str | None
    """The verdict on the case with the label, or `pending`; None if the case was edited since."""
    prompt: str = ""
    """The name of the system prompt when the case has several; else empty."""

    @property
    def file(self) -> str:
        """Return the test file of the case."""
        return self.subject.file

    @property
    def row(self) -> str:
        """Return the row of the case."""
        return self.subject.row

    @property
    def model(self) -> str:
        """Return the candidate whose answer is labelled."""
        return self.subject.model

    @property
    def was(self) -> Verdict | None:
        """Return the verdict that the case had without the label."""
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

    `models` selects one of several candidates, `prompt` one of several system prompts by its name
    or the first digits of its id. With `every`, all matching answers are labelled. Raises
    `EvalstoreError` when the case has no answer or no evaluation, when several answers match, when
    the note is a candidate, and when there is no label to remove.
    """
    with open_project(location) as project:
        for candidate in project.settings.candidates:  # `-m` names one in other commands
            if note and note in (candidate.id, candidate.id.rpartition("/")[2]):
                raise EvalstoreError(
                    f"the note '{note}' is the name of a candidate",
                    hint=f"'-m' takes the note; write '--model {candidate.id}' for the candidate",
                )
        subjects = find_named(project, case, models, prompt, every=every)
        author = person or name_of_user(location.directory)
        labels = add_labels(project, subjects, verdict, note, author)
        if not labels:
            raise EvalstoreError(
                f"no label of {author} counts for '{case}'",
                hint="'evalstore ls labels -v' lists all; '--as NAME' removes one of that person",
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
    """Label results of a run, or of the workspace; one label for each attempt.

    With a session, only its attempt is labelled. A label belongs to the evaluation version of
    the result, which may differ from that of the case now. Raises `EvalstoreError` when none of
    the results has an answer and an evaluation. The list is empty when there was no label to
    remove.
    """
    with open_project(location) as project:
        subjects = [
            subject
            for result in results
            for subject in _of_result(project, result)
            if session is None or session in subject.sessions
        ]
        if not subjects:
            raise EvalstoreError(
                "nothing here can be labelled",
                hint="'evalstore run' asks for answers; a case that nothing judges has no verdict",
            )
        author = person or name_of_user(location.directory)
        return add_labels(project, list(dict.fromkeys(subjects)), verdict, note, author)


def _of_result(project: Project, result: Result) -> Iterator[LabelSubject]:
    """Yield the subjects of a result as they were judged, else as they are judged together."""
    if result.evaluation is None:
        return
    judged = project.store.find_evaluations(result.evaluations).values()
    groups = [each.sessions for each in judged if set(each.sessions) <= set(result.sessions)]
    left = [each for each in result.sessions if not any(each in group for group in groups)]
    groups += [each for each in result.subjects if set(each) & set(left)]
    place = result.file, result.row, result.prompt, result.model
    for sessions in dict.fromkeys(groups):
        yield LabelSubject(*place, sessions, result.evaluation, result.verdict)


def add_labels(
    project: Project, subjects: Sequence[LabelSubject], verdict: Word, note: str, person: str
) -> list[LabelReport]:
    """Append a person's verdict on each subject; `none` only where the person has a label."""
    id, content = hashing.identify(hashing.describe_evaluator(Evaluator(human=person)))
    votes = project.store.find_votes(hashing.subject_of(each.sessions) for each in subjects)
    last = {
        subject: vote
        for subject in subjects
        for vote in votes.get(hashing.subject_of(subject.sessions), ())
        if (vote.evaluator, vote.evaluation) == (id, subject.evaluation)
    }
    if verdict == "none":
        subjects = [each for each in subjects if each in last and last[each].verdict != "none"]
    labels: dict[str, str] = {}
    for subject in subjects:
        before = last[subject].started if subject in last else 0
        evaluation = Evaluation(
            sessions=subject.sessions,
            evaluation=subject.evaluation,
            evaluator=id,
            verdict=verdict,
            # Later than the last label, even if the clock was set back.
            started=max(time.time_ns() // 1000, before + 1),
            nonce=secrets.token_hex(8),
            feedback=note,
            origin=ORIGIN,
        )
        key, text = hashing.identify(hashing.describe_evaluation_result(evaluation))
        labels[key] = text
    needed, contents = {subject.evaluation for subject in subjects}, project.reading.contents
    fresh = {key: version for key, version in contents.items() if key in needed}
    project.store.ensure_versions({id: ("evaluator", content), **fresh})
    project.store.record(evaluations=labels)
    now = _verdicts_now(project, subjects)
    return [
        LabelReport(
            key, subject, verdict, person, note, now.get(subject), _prompt_of(project, subject)
        )
        for key, subject in zip(labels, subjects, strict=True)
    ]


def _verdicts_now(
    project: Project, subjects: Sequence[LabelSubject]
) -> dict[LabelSubject, str | None]:
    """Return the verdicts of the subjects in the workspace, as far as it has their cases."""
    rows = {(path, case.row) for path, file in project.reading.files.items() for case in file.cases}
    here = rows & {(subject.file, subject.row) for subject in subjects}
    verdicts: dict[tuple[str, str, str | None, str], str | None] = {}
    with suppress(EvalstoreError):  # what is wrong with the files does not matter here
        for result in results_at(project, here):
            for session in result.sessions:
                verdicts[result.file, result.row, result.evaluation, session] = result.word
    return {
        subject: verdicts.get((subject.file, subject.row, subject.evaluation, subject.sessions[0]))
        for subject in subjects
    }


def _prompt_of(project: Project, subject: LabelSubject) -> str:
    """Return the name of the system prompt of a case with several; else empty."""
    file = project.reading.files.get(subject.file)
    cases = [case for case in (file.cases if file else ()) if case.row == subject.row]
    prompts = {id for case in cases for id in case.prompts}
    return prompt_label(project, subject.prompt) if len({*prompts, subject.prompt}) > 1 else ""


# --- finds the answers to label: by a case as it is written or printed, or by a session


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


def subjects_of(project: Project, selection: SelectionOptions) -> list[LabelSubject]:
    """Return the selected subjects with an answer and an evaluation, which can be labelled."""
    from evalstore.planning.planner import make_plan  # reading labels is quick without it

    subjects: list[LabelSubject] = []
    plan = make_plan(project, selection)
    for result in compute_results(plan, project.settings.verdict):
        cell = result.cell
        place = cell.file, cell.case.row, cell.prompt, cell.candidate.id
        evaluation = cell.case.evaluation
        if evaluation is not None:
            for sessions in cell.subjects(plan.sessions):
                subjects.append(LabelSubject(*place, sessions, evaluation, result.verdict))
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
    selection = project.with_whole_names(SelectionOptions(paths=(path,), models=models))
    subjects = subjects_of(project, selection)
    if subjects and (prompt or named):
        names = name_prompts_of_run(project, (subject.prompt for subject in subjects))
        id = find_prompt(names, prompt or named)
        subjects = [subject for subject in subjects if subject.prompt == id]
    if subjects and not every:
        _require_single_subject(project, case, subjects)
    if not subjects:
        raise EvalstoreError(
            f"'{case}' has no answer to label",
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


def _require_single_subject(project: Project, case: str, subjects: list[LabelSubject]) -> None:
    """Raise `EvalstoreError` when the subjects differ in case, candidate or system prompt."""
    cases = {f"{subject.file}::{subject.row}" for subject in subjects}
    models = {subject.model for subject in subjects}
    prompts = name_prompts_of_run(project, (subject.prompt for subject in subjects)).values()
    for names, found, option in (
        (cases, f"'{case}' has {len(cases)} cases", ""),
        (models, f"{len(models)} candidates have answered '{case}'", " with --model"),
        (prompts, f"'{case}' was answered with {len(prompts)} system prompts", " with --prompt"),
    ):
        if len(names) > 1:
            raise EvalstoreError(
                found, hint=f"name one{option} ({list_names(names)}), or add --all"
            )


def _session(project: Project, text: str) -> str | None:
    """Return the id of the session that starts with the text; None when there is none."""
    try:
        kind, id = resolve(project.store, text)
    except RevisionError:
        return None
    if kind != "session":
        raise EvalstoreError(
            f"'{text}' is not an answer or a case ({kind_word(kind)})",
            hint="'evalstore show' names the answers of a run",
        )
    return id


def _of_session(project: Project, session: str) -> LabelSubject:
    """Return the subject of a session: in the workspace now, else in a recent run."""
    with suppress(EvalstoreError):  # what is wrong with other files does not matter here
        for subject in subjects_of(project, SelectionOptions()):
            if session in subject.sessions:
                return subject
    sessions = SessionResults(project.store)
    for run in project.store.find_recent_runs():
        for seen in sessions.find(run.results, session):
            for subject in _of_result(project, seen):
                if session in subject.sessions:
                    return subject
    raise EvalstoreError(
        f"answer {session[:8]} belongs to no case that is judged",
        hint=f"the workspace and the newest {RUNS_SEARCHED} runs were searched",
    )
