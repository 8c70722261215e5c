"""Hands out the items of a plan to the queues of accounts, in an order that several runners share.

In a SQLite file a runner begins at a place of its own where others are at work, and meets them as
late as possible. In PostgreSQL the items are rows, of which each runner takes the next free ones.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from evalstore.core import hashing
from evalstore.planning.plan import PlannedAsk
from evalstore.runs.execution.sharing.work_sharing import Item, WorkSharing, lease_key_of
from evalstore.runs.execution.short_transaction import run_in_thread
from evalstore.store.work.work_rows import OfferedItem

if TYPE_CHECKING:
    from evalstore.core.results import Failure
    from evalstore.planning.plan import Plan
    from evalstore.runs.execution.plan_progress import PlanProgress
    from evalstore.store.work.work_rows import WorkRows

_FIRST_LOOK, _LONGEST_LOOK = 0.2, 2.0
"""Seconds until the store is checked again for items that others have taken."""
_AT_THE_END = 500
"""Items of other runners that are looked up together when they are done."""


class OwnOrder:
    """The items of a plan in its order, or from a place in the middle on."""

    def __init__(
        self, sharing: WorkSharing, progress: PlanProgress, planned: Mapping[str, Sequence[Item]]
    ) -> None:
        """`planned` are the items by account."""
        part = sharing.starting_place()
        self._items: dict[str, Iterator[Item]] = {
            account: progress.take_open(_rotate(items, part)) for account, items in planned.items()
        }

    async def take(self, account: str, count: int) -> list[Item]:
        """Return up to `count` items of an account; none when none are left."""
        return list(islice(self._items.get(account, iter(())), count))


def _rotate(items: Sequence[Item], part: float) -> Sequence[Item]:
    """Return items from a place on; `part` is the share of them before it."""
    start = int(len(items) * part)
    return [*items[start:], *items[:start]] if start else items


class WorkSource:
    """The items of a plan that are rows in the store."""

    def __init__(
        self,
        sharing: WorkSharing,
        progress: PlanProgress,
        planned: Mapping[str, Sequence[Item]],
        place_of: Callable[[str], str],
        is_halted: Callable[[], bool],
    ) -> None:
        """`planned` are the items by account; `place_of` names an account for all machines."""
        self._sharing = sharing
        self._progress = progress
        self._place_of = place_of
        self._is_halted = is_halted
        self._left = {
            account: {lease_key_of(item): item for item in items}
            for account, items in planned.items()
        }
        self._rows: WorkRows = sharing.work_rows(_batch_of(progress.plan))
        self._offering = asyncio.Lock()
        self._failed: Mapping[str, Failure] | None = None
        """The newest failures of the questions before the items were offered; None until then."""

    async def take(self, account: str, count: int) -> list[Item]:
        """Return up to `count` items of an account; none when none are left.

        While others work on the last ones, it waits: an item of a runner that dies is free again.
        """
        left = self._left.get(account, {})
        delay = _FIRST_LOOK
        while left and not self._is_halted():
            await self._offer()
            place = self._place_of(account)
            keys = await run_in_thread(partial(self._rows.take, place, count))
            taken = [left.pop(key) for key in keys if key in left]
            items = list(self._progress.take_open(taken))
            if unneeded := set(keys).difference(map(lease_key_of, items)):
                # A runner that planned earlier has offered what was done since; others would wait.
                await run_in_thread(partial(self._rows.delete, sorted(unneeded)))
            if items:
                return items
            if keys:
                continue
            if not await run_in_thread(partial(self._rows.is_left, place)):
                return await self._take_rest(left)
            await asyncio.sleep(delay)
            delay = min(1.5 * delay, _LONGEST_LOOK)
        return []

    async def _offer(self) -> None:
        async with self._offering:
            if self._failed is not None:
                return
            questions = [
                key
                for items in self._left.values()
                for key, item in items.items()
                if isinstance(item, PlannedAsk)
            ]
            self._failed = await asyncio.to_thread(self._sharing.find_failed, questions)
            offered = [
                OfferedItem(key, self._place_of(account))
                for account, items in self._left.items()
                for key in items
            ]
            await run_in_thread(partial(self._rows.offer, offered))

    async def _take_rest(self, left: dict[str, Item]) -> list[Item]:
        """Return items that others have done, whose results then count here.

        Those that have failed for other runners of a shared run are not tried again in it.
        """
        while left:
            keys = list(islice(left, _AT_THE_END))
            items = [left.pop(key) for key in keys]
            failed: Mapping[str, Failure] = {}
            if not self._sharing.repeats_failures:
                failed = await asyncio.to_thread(self._sharing.find_failed, keys)
            earlier = self._failed or {}
            for item in items:
                key = lease_key_of(item)
                if key in failed and failed[key] != earlier.get(key):
                    self._progress.fail_all(key, item.count)
            if found := list(self._progress.take_open(items)):
                return found
        return []


def _batch_of(plan: Plan) -> str:
    """Return an id of the cells of a plan, which is the same in all runners."""
    names = (
        f"{cell.file} {cell.number} {cell.prompt} {' '.join(cell.questions)}" for cell in plan.cells
    )
    return hashing.hash_content("\n".join(names))
