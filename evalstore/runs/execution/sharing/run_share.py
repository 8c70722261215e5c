"""A run that several programs carry out: writes what a runner has spent, asked and judged."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Collection, Iterable
from dataclasses import asdict
from functools import partial
from typing import NamedTuple, Protocol

from evalstore.core.values import Json
from evalstore.runs.execution.execution_counts import ExecutionCounts, ModelSpending
from evalstore.runs.execution.writer import run_in_thread
from evalstore.store import Store
from evalstore.store.leases import (
    CALLS,
    COSTS,
    ENDED,
    ENDS,
    FACTS,
    LEADS,
    LEFT,
    NOTED,
    NUMBERS,
    RECORDS,
)
from evalstore.store.shared_runs import RunShare, ShareState


class RunnerLauncher(Protocol):
    """Starts further runners of a run."""

    def start(self, run: str, known: Collection[str]) -> None:
        """Start them; raises `EvalstoreError`. `known` are warnings that were shown already."""

    def stop(self) -> None:
        """End those that are still at work."""


class SharedWork(NamedTuple):
    """A run that this runner carries out together with others."""

    id: str
    leads: bool
    """Whether this runner has begun it."""
    cost_limit: float | None = None
    """The most that all runners together may spend, in USD."""
    elapsed: float = 0.0
    """Seconds for which it was in progress when this runner joined it."""
    launcher: RunnerLauncher | None = None
    """Starts its further runners; None where others join by themselves, if at all."""


class ShareWriter:
    """The share of this runner; its costs are in USD."""

    def __init__(
        self,
        store: Store,
        run: SharedWork,
        runner: str,
        outcome: ExecutionCounts,
        on_end: Callable[[], None],
    ) -> None:
        """`on_end` is called when another runner has recorded the run."""
        self._on_end = on_end
        self._store = store
        self._run = run
        self._runner = runner
        self._outcome = outcome
        self.writing = asyncio.Lock()
        """Held while the share is written; what is counted must not be stored meanwhile."""
        self._has_ended = self._records = self._has_left = False
        self._stored = self._storing = self._count_facts()
        self.reserved = 0.0
        self.spent = 0.0
        self.state = ShareState(is_open=True, is_within=True, reserved=0.0, spent=0.0)
        """That of the run when the share was last written."""

    async def reserve(self, usd: float) -> bool:
        """Reserve more for calls; returns False, and reserves nothing, if it is above the limit."""
        async with self.writing:
            is_within = await self._write(more=usd)
            if is_within:
                self.reserved += usd
            return is_within

    async def write(self) -> None:
        """Note what was done so far."""
        async with self.writing:
            await self._write()

    async def end(self) -> None:
        """Note that this runner has nothing left to do, now and with everything noted later."""
        self._has_ended = True
        await self.write()

    async def record(self) -> None:
        """Note that this runner records the run: until it has done so, it shows no sign of life."""
        self._records = True
        await self.write()

    async def leave(self) -> None:
        """Note that this runner takes no part in the run any more, and will not record it."""
        self._has_ended = self._has_left = True
        await self.write()

    def describe(self) -> str:
        """Return what this runner has done so far, as JSON; what it counts is to be stored now."""
        self._storing = self._count_facts()
        return json.dumps({**self._describe(), **self._storing, NOTED: self.state.noted})

    def note_stored(self) -> None:
        """Note that what was described last is stored, and so counts from now on."""
        self._stored = self._storing

    def _count_facts(self) -> dict[str, int]:
        return {name: getattr(self._outcome, name) for name in FACTS}

    def _describe(self) -> dict[str, Json]:
        """Return the counts; of the facts only those that are stored, as this runner may die."""
        counts = describe_counts(self._outcome, leads=self._run.leads, ended=self._has_ended)
        return {**counts, **self._stored, RECORDS: self._records, LEFT: self._has_left}

    async def _write(self, more: float = 0.0) -> bool:
        own = (self._run.id, self._runner, self.reserved, self.spent, self._describe())
        limit = self._run.cost_limit
        state = await run_in_thread(
            partial(self._store.write_share, *own, more=more, own_limit=limit)
        )
        self.state = state if state.is_open else state._replace(noted=self.state.noted)
        if not state.is_open:
            self._on_end()
        return state.is_within


def describe_counts(outcome: ExecutionCounts, *, leads: bool, ended: bool) -> dict[str, Json]:
    """Return the counts of an outcome as JSON."""
    numbers = {name: getattr(outcome, name) for name in (*NUMBERS, *COSTS, *ENDS, "priced")}
    spending = [[*key, asdict(spent)] for key, spent in outcome.spending.items()]
    lists = {"failures": dict(outcome.failures), "spending": spending}
    return {**numbers, **lists, LEADS: leads, ENDED: ended}


def is_halted_by(share: RunShare) -> bool:
    """Return whether what a runner has noted halts all runners of the run.

    That is an interruption of the one that has begun it, and the failure at which a run stops.
    """
    counts = share.counts
    return bool(
        counts.get("stopped_at_failure") or (counts.get(LEADS) and counts.get("interrupted"))
    )


def add_shares(outcome: ExecutionCounts, shares: Iterable[RunShare]) -> None:
    """Add the counts of other runners to the outcome of this one.

    What a runner has noted that cannot be read may have cost anything.
    """
    for share in shares:
        counts = share.counts
        outcome.priced &= not share.problem
        for name in (*NUMBERS, *COSTS):
            setattr(outcome, name, getattr(outcome, name) + counts.get(name, 0))
        for name in ENDS:
            if name != "interrupted" or counts.get(LEADS):  # the others do the work of the rest
                setattr(outcome, name, getattr(outcome, name) or counts.get(name, False))
        outcome.priced &= counts.get("priced", True)
        for message, times in counts.get("failures", {}).items():
            outcome.failures[message] = outcome.failures.get(message, 0) + times
        for model, role, spent in counts.get("spending", ()):
            total = outcome.spending.setdefault((model, role), ModelSpending())
            for name in (*CALLS, "cost"):
                setattr(total, name, getattr(total, name) + spent.get(name, 0))
