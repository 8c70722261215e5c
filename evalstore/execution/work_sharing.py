"""Work that is shared with other runs on the same store.

What another run works on is set aside. When it is done there, its answers and judgements
count here as if they had been stored before the plan was made; when that run dies, its work
is taken over. Nobody waits for a run whose process is stopped: its part stays pending.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from evalstore import hashing
from evalstore.deserialize import versions_in
from evalstore.errors import StoreLockedError
from evalstore.execution.short_transaction import run_short_transaction
from evalstore.planning.cells import limit_of
from evalstore.planning.plan import CHECKS, Plan, PlannedAsk, PlannedJudgement, counts
from evalstore.store.leases import BEAT_SECONDS, SILENT_SECONDS, Leases
from evalstore.workspace.testfiles.judge_prompt import shows_question

if TYPE_CHECKING:
    from evalstore.planning.cells import Cell
    from evalstore.store import Store
    from evalstore.values import Json, Session, Vote

_FIRST_LOOK, _LONGEST_LOOK = 0.1, 1.0
"""Seconds until we look again whether others are done."""

Item = PlannedAsk | PlannedJudgement


_OFTEN_SHARED = ("prompt", "tool", "schema")


def _made_of(item: Item) -> Iterator[tuple[str, str]]:
    """The kinds and ids of the versions that a call, or what follows from it, is made of."""
    case = item.cell.case
    if isinstance(item, PlannedAsk) and case.recorded:
        yield "model", case.recorded
    elif isinstance(item, PlannedAsk):
        yield from _asked_in(item.cell, item.number)
    elif item.judge:
        yield "prompt", item.judge.prompt
    if case.evaluation:
        yield "evaluation", case.evaluation


def _asked_in(cell: Cell, number: int | None = None) -> Iterator[tuple[str, str]]:
    """The kinds and ids of what a candidate is shown, in one conversation or in all."""
    for test in cell.case.tests if number is None else (cell.case.tests[number],):
        yield "test", test
    if cell.prompt:
        yield "prompt", cell.prompt


def key_of(item: Item) -> str:
    """What a lease is taken on: a question, or one evaluator's judgement of one subject."""
    if isinstance(item, PlannedAsk):
        return item.question_id
    evaluator = item.judge.evaluator if item.judge else CHECKS
    return hashing.hash_content(f"{item.subject} {item.cell.case.evaluation} {evaluator}")


@dataclass
class Claim:
    """The result of claiming some items."""

    items: list[Item] = field(default_factory=list)
    """Ours to do, with what is still missing of them."""
    done: list[str] = field(default_factory=list)
    """Keys of those that others have done in the meantime."""
    sessions: dict[str, dict[str, Session]] = field(default_factory=dict)
    """Question id -> sessions that others have brought, by id, oldest first."""
    votes: dict[str, list[Vote]] = field(default_factory=dict)
    """Id of a subject -> votes that others have brought."""
    held: list[str] = field(default_factory=list)
    """Keys of those that others work on."""
    contents: Mapping[str, Json] = field(default_factory=dict)
    """Contents that the items are made of, by id: read together, which is cheaper."""


class WorkSharing:
    """The part of a plan that this run works on, and the part that it waits for."""

    def __init__(self, store: Store, warn: Callable[[str], None]) -> None:
        self._store = store
        self._warn = warn
        self._leases = Leases(store)
        self.runner = self._leases.runner.id
        self._told = self._told_of_stopped = False
        self._awake = time.monotonic()
        self._sleeps = 0
        self._one_at_a_time = asyncio.Lock()
        self.open(Plan())

    def open(self, plan: Plan) -> None:
        """Go over to a plan."""
        self._plan = plan
        self._read: set[tuple[str, str]] = set()
        """Kind and id of contents that were read ahead and that others may be made of, too."""
        self._showing: set[str] = set()
        """Evaluator prompts among them that show the judge what the candidate was asked."""
        self._held: dict[str, Item] = {}
        """What other runs work on, by key."""
        self._looking = False
        self._delay = _FIRST_LOOK

    @property
    def is_waiting(self) -> bool:
        """Whether something of the plan is in the hands of others."""
        return bool(self._held) or self._looking

    async def claim(self, items: Sequence[Item]) -> Claim:
        """Take what is free of these items; the rest is set aside."""
        if not items:
            return Claim()
        by_key = {key_of(item): item for item in items}
        async with self._one_at_a_time:
            claimed = await run_short_transaction(partial(self._claim, by_key))
        self._held |= {key: by_key[key] for key in claimed.held}
        self._tell_of_stopped()
        for question, sessions in claimed.sessions.items():
            self._plan.sessions[question] = [*self._plan.sessions.get(question, ()), *sessions]
        self._take_votes(claimed.votes)
        return claimed

    def look_for_votes(self, known: Mapping[str, Sequence[Vote]]) -> None:
        """Take note of what others have said of subjects with these known votes, by their ids."""
        found = self._store.find_votes(known)
        for subject, votes in found.items():
            ids = {vote.id for vote in known[subject]}
            found[subject] = [vote for vote in votes if self._is_new(vote, ids)]
        self._take_votes(found)

    def _is_new(self, vote: Vote, known: Collection[str]) -> bool:
        """Whether nobody knew a vote when the plan was made; `known` are ids."""
        return vote.id not in known and vote.id not in self._plan.passed_over

    def _take_votes(self, found: Mapping[str, Sequence[Vote]]) -> None:
        for subject, votes in found.items():
            known = {vote.id for vote in self._plan.votes.get(subject, ())}
            both = [*self._plan.votes.get(subject, ()), *(v for v in votes if v.id not in known)]
            self._plan.votes[subject] = sorted(both, key=lambda vote: vote[:2])

    def _claim(self, by_key: Mapping[str, Item], *, wait: bool) -> Claim:
        granted = self._leases.claim(by_key.keys(), wait=wait)
        others = by_key.keys() - granted - self._leases.stopped.keys()
        claimed = Claim(held=[key for key in by_key if key in others])
        ours = [item for key, item in by_key.items() if key in granted]
        self._look_for_answers([our for our in ours if isinstance(our, PlannedAsk)], claimed)
        self._look_for_votes([our for our in ours if isinstance(our, PlannedJudgement)], claimed)
        claimed.contents = self._read_ahead(claimed.items)
        return claimed

    def _look_for_answers(self, asks: list[PlannedAsk], claimed: Claim) -> None:
        """Sort out the questions that were answered after the plan was made."""
        found = self._store.find_samples(ask.question_id for ask in asks)
        new: dict[str, list[str]] = {}
        for ask in asks:
            question = ask.question_id
            known = self._plan.newest.get(question, -1)
            ids = [
                sample.id
                for sample in found.get(question, ())
                if sample.started > known and counts(sample, limit_of(ask.cell))
            ][: ask.count]
            if ids:
                new[question] = ids
            if len(ids) < ask.count:
                claimed.items.append(replace(ask, count=ask.count - len(ids)))
            else:
                claimed.done.append(question)
        if new:
            every = [id for ids in new.values() for id in ids]
            loaded = self._store.load_sessions(every)
            claimed.sessions |= {one: {id: loaded[id] for id in ids} for one, ids in new.items()}
            claimed.votes |= self._store.find_votes(every)

    def _look_for_votes(self, judgements: list[PlannedJudgement], claimed: Claim) -> None:
        """Sort out the judgements that were made after the plan was made."""
        found = self._store.find_votes(
            judgement.subject for judgement in judgements if judgement.subject
        )
        for judgement in judgements:
            subject = judgement.subject
            assert subject
            assert judgement.judge
            known = {vote.id for vote in self._plan.votes.get(subject, ())}
            new = [
                vote
                for vote in found.get(subject, ())
                if self._is_new(vote, known)
                and vote.evaluation == judgement.cell.case.evaluation
                and vote.evaluator == judgement.judge.evaluator
            ]
            if new:
                claimed.votes.setdefault(subject, []).extend(new)
            if len(new) < judgement.count:
                claimed.items.append(replace(judgement, count=judgement.count - len(new)))
            else:
                claimed.done.append(key_of(judgement))

    def _read_ahead(self, items: list[Item]) -> dict[str, Json]:
        """What the items are made of; what many share is read only with the first of them."""
        found = self._load({one for item in items for one in _made_of(item)})
        self._showing |= {
            id for id, one in found.items() if one["kind"] == "prompt" and shows_question(one)
        }
        questions = {
            one
            for item in items
            if isinstance(item, PlannedJudgement) and item.judge
            if item.judge.prompt in self._showing or len(item.sessions) > 1
            for one in _asked_in(item.cell)
        }
        found |= self._load(questions)
        inner = {one for content in found.values() for one in versions_in(content)}
        return found | self._load(inner)

    def _load(self, wanted: set[tuple[str, str]]) -> dict[str, Json]:
        """Contents by kind and id, without those of the plan that were read before."""
        by_kind: dict[str, list[str]] = {}
        for kind, id in wanted - self._read:
            by_kind.setdefault(kind, []).append(id)
        self._read |= {one for one in wanted if one[0] in _OFTEN_SHARED}
        found: dict[str, Json] = {}
        for kind, ids in by_kind.items():
            found |= self._store.load_contents(kind, ids)
        return found

    # --- others

    async def until_others_may_be_done(self) -> None:
        """Wait until it is time to look again at what others work on."""
        while True:
            await asyncio.sleep(self._delay)
            if self._held:
                self._delay = min(1.5 * self._delay, _LONGEST_LOOK)
                return

    def take_back(self) -> list[Item]:
        """All that was set aside, to be claimed again."""
        if not self._told:
            self._told = True
            processes = sorted(f"process {other.pid}" for other in self._leases.others.values())
            who = f" ({', '.join(processes)})" if processes else ""
            self._warn(f"another run on this store works on a part of this one{who}: it is shared")
        self._looking = True
        items = list(self._held.values())
        self._held.clear()
        return items

    def _tell_of_stopped(self) -> None:
        processes = sorted({holder.pid for holder in self._leases.stopped.values()})
        if processes and not self._told_of_stopped:
            self._told_of_stopped = True
            self._warn(
                f"another run on this store is stopped (process {processes[0]}): its part stays "
                f"pending; continue it with 'kill -CONT {processes[0]}', or end it, and run again"
            )

    def taken_back(self) -> None:
        """What was claimed again is under way, or set aside again."""
        self._looking = False

    async def keep_alive(self) -> None:
        """Show other runs every few seconds that we live."""
        while True:
            await asyncio.sleep(BEAT_SECONDS)
            self.look_at_clock()
            with suppress(StoreLockedError):  # the next beat will do
                await asyncio.to_thread(self._leases.beat)

    def look_at_clock(self) -> int:
        """How often we have slept for so long that other runs may have taken us for dead.

        A laptop that was closed, or a process that was stopped: what was claimed before it
        may be in other hands.
        """
        now = time.monotonic()
        if now - self._awake > SILENT_SECONDS:
            self._sleeps += 1
        self._awake = now
        return self._sleeps

    async def still_has(self, key: str) -> bool:
        """Whether the lease on a key is ours."""
        return await asyncio.to_thread(self._leases.has, key)

    def leave(self) -> None:
        """Give back all leases."""
        self._leases.leave()
