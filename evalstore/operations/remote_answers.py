"""What `pull --for-plan` would save: the answers and judgements of a plan that remotes have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from evalstore.errors import EvalstoreError
from evalstore.hashing import subject_of
from evalstore.operations.status_report import RemoteAnswers, RemoteJudgements
from evalstore.values import RECORDED

if TYPE_CHECKING:
    from evalstore.planning.options import SelectionOptions
    from evalstore.planning.plan import Plan, PlannedAsk
    from evalstore.planning.project import Project
    from evalstore.sharing.indexed_records import IndexedRecords
    from evalstore.store import Store


def find_remote_answers(
    project: Project, asks: Sequence[PlannedAsk], prices: Sequence[float | None]
) -> tuple[RemoteAnswers, ...]:
    """Return the remotes that have answers to these asks, as far as they were last read.

    `prices` are those of one answer to each. Nothing is connected to.
    """
    wanted = [
        (ask, price)
        for ask, price in zip(asks, prices, strict=True)
        if ask.cell.candidate.id != RECORDED
    ]
    if not wanted or not project.settings.remotes:
        return ()
    from evalstore.sharing.known_runs import open_known

    found = []
    for name in project.settings.remotes:
        with suppress(EvalstoreError), open_known(project.workspace, name) as cache:
            if cache is None:
                continue
            answers = _find(project.store, cache.records, {ask.question_id for ask, _ in wanted})
            there = Counter(answers.values())
            counted = [(min(there[ask.question_id], ask.count), price) for ask, price in wanted]
            counted = [(count, price) for count, price in counted if count]
            if counted:
                costs = [count * price for count, price in counted if price is not None]
                cost = round(sum(costs), 6) if len(costs) == len(counted) else None
                judgements = len(cache.records.find_keyed("evaluations", list(answers)))
                total = sum(count for count, _ in counted)
                found.append(RemoteAnswers(name, total, cost, judgements))
    return tuple(found)


def find_remote_judgements(
    project: Project, plan: Plan, prices: Sequence[float | None]
) -> tuple[RemoteJudgements, ...]:
    """Return the remotes that may have judgements of stored answers that models would make.

    `prices` are those of one judgement by each. An index names what is judged, but not by what:
    so these are the most. Nothing is connected to.
    """
    if not project.settings.remotes:
        return ()
    by_models = [judgement for judgement in plan.judgements if judgement.judge]
    wanted = [
        (judgement.subject, judgement.count, price)
        for judgement, price in zip(by_models, prices, strict=True)
        if judgement.subject
    ]
    waiting = waiting_subjects(plan)
    subjects = sorted({bytes.fromhex(subject) for subject, _, _ in wanted} | waiting)
    if not subjects:
        return ()
    from evalstore.sharing.known_runs import open_known

    found = []
    for name in project.settings.remotes:
        with suppress(EvalstoreError), open_known(project.workspace, name) as cache:
            if cache is None:
                continue
            places = cache.records.find_keys("evaluations", subjects)
            stored = project.store.find_present("evaluations", places.keys())
            there = Counter(key for id, key in places.items() if id not in stored)
            total, costs = 0, list[float | None]()
            for subject, count, price in wanted:
                some = min(there[bytes.fromhex(subject)], count)
                there[bytes.fromhex(subject)] -= some
                total += some
                costs += [price if price is None else some * price] if some else []
            total += min(sum(there[subject] for subject in waiting), plan.blocked_judgements)
            if total:
                known = [cost for cost in costs if cost is not None]
                cost = round(sum(known), 6) if len(known) == len(costs) else None
                found.append(RemoteJudgements(name, total, cost))
    return tuple(found)


def waiting_subjects(plan: Plan) -> set[bytes]:
    """Return the ids of the stored answers that checks or models which wait for trust would judge.

    An id is that of the answer, or of the answers that are judged together.
    """
    if not plan.waiting and not plan.waiting_models:
        return set()
    return {
        bytes.fromhex(subject_of(sessions))
        for cell in plan.cells
        if cell.case.evaluation in plan.waiting or any(judge.trust_needed for judge in cell.judges)
        for sessions in cell.subjects(plan.sessions)
    }


def find_unread_remotes(project: Project, selection: SelectionOptions) -> tuple[str, ...]:
    """Return the remotes of which nothing is known here, although they may have answers."""
    if not project.settings.remotes or asks_again(project, selection):
        return ()
    from evalstore.sharing.known_runs import open_known

    unread = []
    for name in project.settings.remotes:
        with suppress(EvalstoreError), open_known(project.workspace, name) as cache:
            if cache is None:
                unread.append(name)
    return tuple(unread)


def asks_again(project: Project, selection: SelectionOptions) -> bool:
    """Return whether questions are asked although they have answers."""
    return bool(selection.refresh or selection.max_age or project.settings.max_age)


def unread_text(remote: str, *, asks: bool, brief: bool = False) -> str:
    """Return that a remote was not read yet; unless `brief`, with the command that reads it.

    `asks` is whether there are answers to ask for, and not only judgements to make.
    """
    text = f"{remote} was not read yet"
    command = f"'evalstore pull {remote} --for-plan'"
    what = "answers" if asks else "judgements"
    return text if brief else f"{text}: {command} copies what it has of these {what}"


def _find(store: Store, indexed: IndexedRecords, questions: set[str]) -> dict[bytes, str]:
    """Return the answers to these questions that a remote has and the store lacks -> the question.

    The key of a judgement of one answer is its id.
    """
    places = indexed.find_keys("sessions", [bytes.fromhex(question) for question in questions])
    stored = store.find_present("sessions", places.keys())
    return {id: key.hex() for id, key in places.items() if id not in stored}
