"""What `pull --for-plan` would save: the answers and judgements of a plan that remotes have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING

from evalstore.core.errors import EvalstoreError
from evalstore.core.hashing import subject_of
from evalstore.core.values import RECORDED
from evalstore.planning.options import SelectionOptions
from evalstore.planning.plan import Plan, PlannedAsk
from evalstore.planning.project import Project
from evalstore.planning.status_report import RemoteAnswers, RemoteJudgements
from evalstore.store import Store

if TYPE_CHECKING:
    from evalstore.remotes.index_cache import IndexCache


@dataclass
class _Sums:
    """What a remote has of the answers, or of the judgements, of the batches so far."""

    total: int = 0
    cost: float | None = 0.0
    """None when a price is not known."""
    judgements: int = 0
    left: dict[bytes, int] = field(default_factory=dict)
    """Of subjects that several batches may have: how many judgements do not count yet."""

    def add(self, count: int, price: float | None) -> None:
        """Add items with the price of one."""
        self.total += count
        self.cost = None if price is None or self.cost is None else self.cost + count * price


class RemoteSums:
    """Adds up what the remotes have of a plan, batch by batch, as far as they were last read.

    Nothing is connected to.
    """

    def __init__(self, project: Project, *, are_shared: bool) -> None:
        """`are_shared`: several batches may judge the same answers."""
        self._project, self._are_shared = project, are_shared
        self._answers = {name: _Sums() for name in project.settings.remotes}
        """By remote; those that cannot be read are taken out."""
        self._judgements = {name: _Sums() for name in project.settings.remotes}

    def add(
        self,
        plan: Plan,
        asks: Sequence[PlannedAsk],
        answers: Sequence[float | None],
        judgements: Sequence[float | None],
    ) -> None:
        """Add a batch: its plan, its asks, and the prices of one answer and of one judgement each.

        An index names what is judged, but not by what: so each may be of the dearest judge.
        """
        if self._answers:
            waiting = ((ask, None) for ask in plan.waiting_asks)
            self._add_answers([*zip(asks, answers, strict=True), *waiting])
        if self._judgements:
            self._add_judgements(plan, judgements)

    def _add_answers(self, asks: Sequence[tuple[PlannedAsk, float | None]]) -> None:
        """Add asks with the price of one answer."""
        wanted = [(ask, price) for ask, price in asks if ask.cell.candidate.id != RECORDED]
        if not wanted:
            return
        questions = {ask.question_id for ask, _ in wanted}

        def count(sums: _Sums, records: IndexCache) -> None:
            answers = _find(self._project.store, records, questions)
            there = Counter(answers.values())
            for ask, price in wanted:
                if some := min(there[ask.question_id], ask.count):
                    sums.add(some, price)
            sums.judgements += len(records.find_keys("evaluations", list(answers)))

        self._read(self._answers, count)

    def _add_judgements(self, plan: Plan, prices: Sequence[float | None]) -> None:
        by_models = [judgement for judgement in plan.judgements if judgement.judge]
        wanted = [
            (bytes.fromhex(judgement.subject), judgement.count, price)
            for judgement, price in zip(by_models, prices, strict=True)
            if judgement.subject
        ]
        wanted.sort(key=lambda each: inf if each[2] is None else each[2], reverse=True)
        subjects = sorted({subject for subject, _, _ in wanted})
        if not subjects:
            return

        def count(sums: _Sums, records: IndexCache) -> None:
            places = records.find_keys("evaluations", subjects)
            stored = self._project.store.find_present("evaluations", places.keys())
            there = Counter(key for id, key in places.items() if id not in stored)
            there = Counter({it: sums.left.get(it, n) for it, n in there.items()})
            for subject, most, price in wanted:
                if some := min(there[subject], most):
                    there[subject] -= some
                    sums.add(some, price)
            if self._are_shared:
                sums.left.update(there)

        self._read(self._judgements, count)

    def _read(self, sums: dict[str, _Sums], count: Callable[[_Sums, IndexCache], None]) -> None:
        """Count in each remote that was read; take the others out."""
        from evalstore.remotes.index_cache import open_known

        for name in list(sums):
            is_read = False
            with suppress(EvalstoreError), open_known(self._project.workspace, name) as cache:
                if cache is not None:
                    count(sums[name], cache)
                    is_read = True
            if not is_read:
                del sums[name]

    def answers(self) -> tuple[RemoteAnswers, ...]:
        """Return the remotes that have some of the answers."""
        return tuple(
            RemoteAnswers(name, sums.total, _rounded(sums.cost), sums.judgements)
            for name, sums in self._answers.items()
            if sums.total
        )

    def judgements(self) -> tuple[RemoteJudgements, ...]:
        """Return the remotes that may have judgements of stored answers that models would make."""
        return tuple(
            RemoteJudgements(name, sums.total, _rounded(sums.cost))
            for name, sums in self._judgements.items()
            if sums.total
        )


def _rounded(usd: float | None) -> float | None:
    return None if usd is None else round(usd, 6)


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
    from evalstore.remotes.index_cache import open_known

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
    what = "answers" if asks else "verdicts"
    return text if brief else f"{text}: {command} copies what it has of these {what}"


def _find(store: Store, indexed: IndexCache, questions: set[str]) -> dict[bytes, str]:
    """Return the answers to these questions that a remote has and the store lacks -> the question.

    The key of a judgement of one answer is its id.
    """
    places = indexed.find_keys("sessions", [bytes.fromhex(question) for question in questions])
    stored = store.find_present("sessions", places.keys())
    return {id: key.hex() for id, key in places.items() if id not in stored}
