"""Shares work with other runs on the same store.

Items that another run works on are deferred. When that run has done them, its answers and
judgements count here as if they had been stored before the plan was made. When it dies, its work
is taken over.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial

from evalstore.core import hashing
from evalstore.core.errors import StoreLockedError
from evalstore.core.values import Json, Session, Vote
from evalstore.planning.cell_results import Key, is_known, keys_of
from evalstore.planning.cells import limit_of
from evalstore.planning.plan import CHECKS, Plan, PlannedAsk, PlannedJudgement, counts
from evalstore.runs.execution.limits.rate_limiter import RateLimiter
from evalstore.runs.execution.model_calls import RunEnvironment
from evalstore.runs.execution.writer import run_in_thread, run_short_transaction
from evalstore.store import Store
from evalstore.store.leases import (
    BEAT_SECONDS,
    SILENT_SECONDS,
    Leases,
    release_items,
)

_FIRST_LOOK, _LONGEST_LOOK = 0.1, 1.0
"""Seconds until the store is checked again for the results of other runs."""

Item = PlannedAsk | PlannedJudgement


def _versions_of(item: Item) -> Iterator[tuple[str, str]]:
    """Yield the kinds and ids of the versions that just this call or judgement needs."""
    case = item.cell.case
    if isinstance(item, PlannedJudgement):
        for test in case.tests:  # its prompt may show the question
            yield "test", test
    elif case.recorded:
        yield "model", case.recorded
    else:
        yield "test", case.tests[item.number]
    if case.evaluation:
        yield "evaluation", case.evaluation


def lease_key_of(item: Item) -> str:
    """Return the key of an item's lease: of a question, or of a judgement of a subject."""
    if isinstance(item, PlannedAsk):
        return item.question_id
    evaluator = item.judge.evaluator if item.judge else CHECKS
    return hashing.hash_content(f"{item.subject} {item.cell.case.evaluation} {evaluator}")


@dataclass
class Claim:
    """The items that are claimed, done or deferred."""

    items: list[Item] = field(default_factory=list)
    """The items claimed by this run, with the counts that are still missing."""
    done: list[str] = field(default_factory=list)
    """Keys of the items that other runs have done in the meantime."""
    sessions: dict[str, dict[str, Session]] = field(default_factory=dict)
    """Question id -> sessions that others have stored, by id, oldest first."""
    votes: dict[str, list[Vote]] = field(default_factory=dict)
    """Id of a subject -> votes that others have stored."""
    deferred: list[str] = field(default_factory=list)
    """Keys of the items that other runs work on."""
    contents: Mapping[str, Json] = field(default_factory=dict)
    """The contents that the items need, by id, which are read together."""


class WorkSharing:
    """Divides the plans of a run with other runs on the same store."""

    def __init__(
        self, store: Store, environment: RunEnvironment, *, is_expected: bool = False
    ) -> None:
        """`is_expected` tells that this is one of several runners of a run."""
        self.store = store
        self._warn = environment.listener.note
        self.leases = Leases(store, monotonic=environment.uptime, runner=environment.runner())
        self.runner = self.leases.runner.id
        self.is_expected = is_expected
        self._warned_of_sharing = is_expected
        self.presence = RunnerPresence(self.leases, environment)
        self._claim_lock = asyncio.Lock()
        self.open(Plan())

    def starting_place(self) -> float:
        """Return the part of a plan after which this run begins: 0 while it is alone."""
        return int(self.runner[:8], 16) / 2**32 if self.leases.has_others() else 0.0

    def release_items(self) -> None:
        """Release what this run has taken and not done: others may do it."""
        self.store.write(lambda connection: release_items(connection, self.runner))

    def open(self, plan: Plan) -> None:
        """Begin a plan, and forget the one before it."""
        self._plan = plan
        self._deferred: dict[str, Item] = {}
        """The items that other runs work on, by key."""
        self._is_reclaiming = False
        """Whether deferred items are being claimed again."""
        self._delay = _FIRST_LOOK
        """Seconds until the work of other runs is checked again."""

    @property
    def is_waiting(self) -> bool:
        """Return whether other runs work on a part of the plan."""
        return bool(self._deferred) or self._is_reclaiming

    async def claim(self, items: Sequence[Item]) -> Claim:
        """Claim those of these items that no other run works on; the others are deferred."""
        if not items:
            return Claim()
        by_key = {lease_key_of(item): item for item in items}
        async with self._claim_lock:
            claimed = await run_short_transaction(
                partial(self._claim, by_key), is_remote=self.store.is_remote
            )
        self._deferred |= {key: by_key[key] for key in claimed.deferred}
        counted = self._plan.sessions
        for question, sessions in claimed.sessions.items():
            counted[question] = [*counted.get(question, ()), *sessions]
        self._add_votes(claimed.votes)
        return claimed

    def find_new_votes(self, known: Mapping[str, Sequence[Vote]]) -> None:
        """Add the votes of other runs; `known` are the votes on each subject that are known."""
        new: dict[str, list[Vote]] = {}
        for subject, votes in self.store.find_votes(known).items():
            keys = keys_of(known[subject])
            new[subject] = [vote for vote in votes if self._is_new(vote, keys)]
        self._add_votes(new)

    def _is_new(self, vote: Vote, known: Collection[Key]) -> bool:
        """Return whether a vote was made after the plan; `known` are keys."""
        return not is_known(vote, known) and vote.id not in self._plan.passed_over

    def _add_votes(self, votes_by_subject: Mapping[str, Sequence[Vote]]) -> None:
        counted = self._plan.votes
        for subject, votes in votes_by_subject.items():
            known = keys_of(counted.get(subject, ()))
            new = [vote for vote in votes if not is_known(vote, known)]
            counted[subject] = sorted([*counted.get(subject, ()), *new], key=lambda vote: vote[:2])

    def _claim(self, by_key: Mapping[str, Item], *, wait: bool) -> Claim:
        granted = self.leases.claim(by_key.keys(), wait=wait)
        others = by_key.keys() - granted
        claimed = Claim(deferred=[key for key in by_key if key in others])
        granted_items = [item for key, item in by_key.items() if key in granted]
        self._sort_asks([item for item in granted_items if isinstance(item, PlannedAsk)], claimed)
        self._sort_judgements(
            [item for item in granted_items if isinstance(item, PlannedJudgement)], claimed
        )
        claimed.contents = self._read_ahead(claimed.items)
        return claimed

    def _sort_asks(self, asks: list[PlannedAsk], claimed: Claim) -> None:
        """Move questions that were answered after the plan was made to the done items."""
        stored = self.store.find_samples(ask.question_id for ask in asks)
        new: dict[str, list[str]] = {}
        for ask in asks:
            question = ask.question_id
            known = self._plan.newest.get(question, -1)
            ids = [
                sample.id
                for sample in stored.get(question, ())
                if sample.started > known and counts(sample, limit_of(ask.cell))
            ][: ask.count]
            if ids:
                new[question] = ids
            if len(ids) < ask.count:
                left = replace(ask, count=ask.count - len(ids)) if ids else ask
                claimed.items.append(left)
            else:
                claimed.done.append(question)
        if new:
            all_ids = [id for ids in new.values() for id in ids]
            loaded = self.store.load_sessions(all_ids)
            claimed.sessions |= {
                question: {id: loaded[id] for id in ids} for question, ids in new.items()
            }
            claimed.votes |= self.store.find_votes(all_ids)

    def _sort_judgements(self, judgements: list[PlannedJudgement], claimed: Claim) -> None:
        """Move judgements that were made after the plan was made to the done items."""
        stored = self.store.find_votes(
            judgement.subject for judgement in judgements if judgement.subject
        )
        for judgement in judgements:
            subject = judgement.subject
            assert subject
            assert judgement.judge
            known = keys_of(self._plan.votes.get(subject, ()))
            new = [
                vote
                for vote in stored.get(subject, ())
                if self._is_new(vote, known)
                and vote.evaluation == judgement.cell.case.evaluation
                and vote.evaluator == judgement.judge.evaluator
            ]
            if new:
                claimed.votes.setdefault(subject, []).extend(new)
            if len(new) < judgement.count:
                claimed.items.append(replace(judgement, count=judgement.count - len(new)))
            else:
                claimed.done.append(lease_key_of(judgement))

    def _read_ahead(self, items: Iterable[Item]) -> dict[str, Json]:
        """Return the contents that items need, by id."""
        by_kind: dict[str, set[str]] = {}
        for kind, id in (version for item in items for version in _versions_of(item)):
            by_kind.setdefault(kind, set()).add(id)
        contents: dict[str, Json] = {}
        for kind, ids in by_kind.items():
            contents |= self.store.load_contents(kind, ids)
        return contents

    # --- other runs

    async def claim_subjects(self, keys: Sequence[str]) -> tuple[set[str], set[str]]:
        """Claim subjects whose checks are to be made, by the keys of their leases.

        Returns those that are granted, and those that others work on.
        """
        async with self._claim_lock:
            granted = await run_short_transaction(
                partial(self.leases.claim, keys), is_remote=self.store.is_remote
            )
        return granted, {*keys} - granted

    async def find_alive(self, runners: Collection[str]) -> Collection[str]:
        """Return those of these runners that are not known to be dead."""
        return await run_in_thread(partial(self.leases.find_alive, runners))

    async def until_others_may_be_done(self) -> None:
        """Wait until it is time to check the work of other runs again."""
        while True:
            await asyncio.sleep(self._delay)
            if self._deferred:
                self._delay = min(1.5 * self._delay, _LONGEST_LOOK)
                return

    def take_deferred(self) -> list[Item]:
        """Return all deferred items to be claimed again; the caller then calls `end_reclaiming`."""
        if not self._warned_of_sharing:
            self._warned_of_sharing = True
            processes = sorted(f"process {other.pid}" for other in self.leases.others.values())
            others = f" ({', '.join(processes)})" if processes else ""
            self._warn(f"another run on this store is doing part of this one{others}: it is shared")
        self._is_reclaiming = True
        items = list(self._deferred.values())
        self._deferred.clear()
        return items

    def end_reclaiming(self) -> None:
        """Note that all deferred items were queued, or deferred again."""
        self._is_reclaiming = False

    def release_all(self, *, stays: bool = False) -> None:
        """Release all leases."""
        self.leases.leave(stays=stays)


# --- shows other runs that this one is alive, and notices when it was silent for too long


PlacedLimiter = tuple[str, "RateLimiter"]
"""The name of an account on all machines, and its rate limiter."""
_LONG_SILENCE = SILENT_SECONDS - BEAT_SECONDS
"""Seconds after which a run counts itself as silent: before others consider it dead."""
_NEWS_SECONDS = 1.5 * BEAT_SECONDS
"""Seconds after which others know of a change: those between two beats, and of a transaction."""


class RunnerPresence:
    """The signs of life of one run."""

    def __init__(self, leases: Leases, environment: RunEnvironment) -> None:
        self._leases = leases
        self._environment = environment
        self._limiters: Sequence[PlacedLimiter] = ()
        self.on_beat: Callable[[], Awaitable[None]] | None = None
        """Called with each beat."""
        self._last_beat = self._divided_at = environment.uptime()
        self._sleeps = 0

    async def keep_alive(self) -> None:
        """Show other runs every few seconds that this one is alive."""
        while True:
            await asyncio.sleep(BEAT_SECONDS)
            self.count_sleeps()
            with suppress(StoreLockedError):  # the next beat will do
                await self._beat()
                if self.on_beat:
                    await self.on_beat()

    def count_sleeps(self) -> int:
        """Return how often this run was silent so long that others may have considered it dead.

        Examples are a closed laptop, a stopped process, and a server that was away. Other runs may
        have taken over items that were claimed before.
        """
        if self._environment.uptime() - self._last_beat > _LONG_SILENCE:
            self._sleeps += 1
            self._last_beat = self._environment.uptime()
        return self._sleeps

    async def share_accounts(self, limiters: Sequence[PlacedLimiter]) -> None:
        """Divide the limits a minute of these accounts with other runs from now on.

        A run that is not the first one waits until the others know of it.
        """
        self._limiters = limiters
        self._leases.accounts = frozenset(place for place, _ in limiters)
        began = self._environment.uptime()
        sharers = await run_in_thread(self._leases.count_sharers)
        self._divide(sharers, began)
        now = self._environment.monotonic()
        for place, limiter in limiters:
            limiter.is_share_current = self._knows_sharers
            if sharers[place] > 1:
                limiter.begin_late(now, self._environment.jitter())
                limiter.pause(now, _NEWS_SECONDS)

    def _knows_sharers(self) -> bool:
        return self._environment.uptime() - self._divided_at <= _LONG_SILENCE

    async def _beat(self) -> None:
        began = self._environment.uptime()
        is_known = await run_in_thread(self._leases.beat)
        if not is_known:
            self._sleeps += 1  # others considered this run dead
        self._last_beat = began
        if self._limiters:
            if not (is_known and self._knows_sharers()):
                now = self._environment.monotonic()
                for _, limiter in self._limiters:
                    limiter.resume(now, _NEWS_SECONDS)
            self._divide(self._leases.sharers, began)

    def _divide(self, sharers: Mapping[str, int], began: float) -> None:
        """Divide the limits of the accounts among so many runs each, as known at this time."""
        now = self._environment.monotonic()
        for place, limiter in self._limiters:
            limiter.share(now, sharers[place])
        self._divided_at = began
