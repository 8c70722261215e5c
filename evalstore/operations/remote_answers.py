"""What `pull --for-plan` would save: the answers of a plan that remotes have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from evalstore.errors import EvalstoreError
from evalstore.operations.status_report import RemoteAnswers
from evalstore.values import RECORDED

if TYPE_CHECKING:
    from evalstore.planning.options import SelectionOptions
    from evalstore.planning.plan import PlannedAsk
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


def unread_text(remote: str, *, brief: bool = False) -> str:
    """Return that a remote was not read yet; unless `brief`, with the command that reads it."""
    text = f"{remote} was not read yet"
    command = f"'evalstore pull {remote} --for-plan'"
    return text if brief else f"{text}: {command} copies what it has of these answers"


def _find(store: Store, indexed: IndexedRecords, questions: set[str]) -> dict[bytes, str]:
    """Return the answers to these questions that a remote has and the store lacks -> the question.

    The key of a judgement of one answer is its id.
    """
    places = indexed.find_keys("sessions", [bytes.fromhex(question) for question in questions])
    stored = store.find_present("sessions", places.keys())
    return {id: key.hex() for id, key in places.items() if id not in stored}
