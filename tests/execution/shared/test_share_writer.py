"""The share of a runner: what it has told the others holds until it says otherwise."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Sequence

import pytest

from evalstore.execution.execution_counts import ExecutionCounts
from evalstore.execution.model_calls import Limits
from evalstore.execution.run_share import ENDED, ShareWriter
from evalstore.execution.shared_work import SharedWork
from evalstore.execution.work_sharing import Claim, Item, WorkSharing
from evalstore.store import Store
from evalstore.store.leases import remove_runner
from evalstore.store.shared_runs import ABANDONED_SECONDS
from evalstore.values import Reply, Request
from tests.execution.test_executor import Lab

RUN, RUNNER = "1" * 32, "a" * 32


def a_writer(store: Store, limit: float) -> ShareWriter:
    store.add_shared_run(RUN, {}, limit)
    work = SharedWork(RUN, leads=True, cost_limit=limit)
    return ShareWriter(store, work, RUNNER, ExecutionCounts(), lambda: None)


def test_a_runner_that_has_ended_stays_so_with_each_beat(store: Store) -> None:
    writer = a_writer(store, 1.0)
    asyncio.run(writer.end())
    asyncio.run(writer.write())
    (share,) = store.find_shares(RUN)
    assert share.counts[ENDED]
    assert json.loads(writer.describe())[ENDED]


def test_what_is_refused_is_not_reserved(store: Store) -> None:
    writer = a_writer(store, 1.0)
    assert asyncio.run(writer.reserve(0.75))
    assert not asyncio.run(writer.reserve(0.5))
    assert (writer.reserved, store.find_shares(RUN)[0].reserved) == (0.75, 0.75)
    assert asyncio.run(writer.reserve(0.25))
    assert (writer.reserved, store.find_shares(RUN)[0].reserved) == (1.0, 1.0)


def test_a_run_that_was_recorded_while_this_runner_slept_is_asked_for_nothing_more(
    store: Store,
) -> None:
    store.add_shared_run(RUN, {}, None)
    lab = Lab(store, limits=Limits(concurrency=2), shared=SharedWork(RUN, leads=True))

    def sleep(_request: Request, _count: int) -> Reply:
        if lab.suspended:
            return Reply("an answer that came after the sleep")
        lab.suspended = ABANDONED_SECONDS
        (run,) = store.find_shared_runs()
        assert store.record_abandoned_run(run, None)
        assert store.find_shared_runs() == []
        return Reply("an answer that came in the sleep")

    lab.act = sleep
    for number in range(9):
        lab.add(f"Question {number}?", instructions=None)
    outcome = lab.run()
    assert outcome.asked == len(lab.asked) == len(lab.stored("sessions")) <= 2


@pytest.mark.parametrize(("leads", "before"), [(True, 0), (False, 5)])
def test_what_others_do_is_progress_but_not_what_they_had_done_before(
    store: Store, *, leads: bool, before: int
) -> None:
    store.add_shared_run(RUN, {}, None)
    lab = Lab(store, shared=SharedWork(RUN, leads=leads))
    lab.add(instructions=None)

    def note(asked: int) -> None:
        counts = {"asked": asked, "judged": 2 * asked, "cost": 0.5 * asked, ENDED: True}
        store.write_share(RUN, "b" * 32, 0.0, 0.0, counts)

    def act(_request: Request, _count: int) -> Reply:
        note(7)
        return Reply("answer")

    async def take_part() -> None:
        executor = lab.executor()
        async with executor:
            await executor.carry_out(lab.plans[executor])
            assert await executor.finish_shared() is not None

    note(5)
    lab.act = act
    asyncio.run(take_part())
    others = 7 - before
    assert lab.seen == [("asked", 1), ("asked", others), ("judged", 2 * others)]


def test_what_was_lost_while_the_answer_of_the_store_was_on_its_way_is_not_asked(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = Lab(store)
    lab.add()
    others = Lab(store, files=lab.files)
    claim = WorkSharing.claim

    async def claim_slowly(sharing: WorkSharing, items: Sequence[Item]) -> Claim:
        claimed = await claim(sharing, items)
        if not lab.suspended:
            lab.suspended = 100.0
            with store.writing() as connection:
                remove_runner(connection, sharing.runner)
            other = threading.Thread(target=others.run)
            other.start()
            other.join()
        return claimed

    monkeypatch.setattr(WorkSharing, "claim", claim_slowly)
    lab.run()
    assert (len(others.asked), len(others.judged)) == (1, 1)
    assert (lab.asked, lab.judged) == ([], [])
    assert lab.is_done()
