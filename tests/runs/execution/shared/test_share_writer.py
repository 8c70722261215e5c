"""The share of a runner: what it has told the others holds until it says otherwise."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Collection, Sequence
from contextlib import nullcontext
from functools import partial

import pytest

from evalstore.core.errors import StoreError
from evalstore.core.values import Reply, Request
from evalstore.runs.execution import executor as executor_module
from evalstore.runs.execution.execution_counts import ExecutionCounts
from evalstore.runs.execution.limits.budget import SharedBudget
from evalstore.runs.execution.model_calls import Limits
from evalstore.runs.execution.sharing import work_sharing
from evalstore.runs.execution.sharing.run_share import SharedWork, ShareWriter
from evalstore.runs.execution.sharing.work_sharing import Claim, Item, WorkSharing
from evalstore.store import Store, leases
from evalstore.store.driver import Connection
from evalstore.store.leases import (
    BEAT_SECONDS,
    ENDED,
    LEADS,
    RECORDS,
    SILENT_SECONDS,
    Leases,
    remove_runner,
)
from evalstore.store.shared_runs import ABANDONED_SECONDS, RunShare
from tests.runs.execution.test_executor import Lab
from tests.stored_rows import count_rows

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


def test_an_answer_counts_when_it_is_stored_as_its_runner_may_die_before(store: Store) -> None:
    store.add_shared_run(RUN, {}, None)
    outcome = ExecutionCounts()
    work = SharedWork(RUN, leads=True)
    writer = ShareWriter(store, work, RUNNER, outcome, lambda: None)

    def asked() -> int:
        asyncio.run(writer.write())
        (share,) = store.find_shares(RUN)
        return int(share.counts["asked"])

    outcome.asked = 1
    assert asked() == 0
    assert json.loads(writer.describe())["asked"] == 1
    outcome.asked = 2
    assert asked() == 0, "the transaction has not ended"
    writer.note_stored()
    assert asked() == 1


def test_what_is_refused_is_not_reserved(store: Store) -> None:
    writer = a_writer(store, 1.0)
    assert asyncio.run(writer.reserve(0.75))
    assert not asyncio.run(writer.reserve(0.5))
    assert (writer.reserved, store.find_shares(RUN)[0].reserved) == (0.75, 0.75)
    assert asyncio.run(writer.reserve(0.25))
    assert (writer.reserved, store.find_shares(RUN)[0].reserved) == (1.0, 1.0)


def test_a_call_is_made_if_another_is_settled_while_it_is_refused(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer, refused = a_writer(store, 1.0), list[float]()
    reserve = writer.reserve

    async def all_are_alive(runners: Collection[str]) -> Collection[str]:
        return runners

    async def make_calls() -> None:
        budget = SharedBudget(writer, 1.0, all_are_alive)

        async def reserve_while_settled(usd: float) -> bool:
            if is_within := await reserve(usd):
                return is_within
            refused.append(usd)
            budget.settle(1.0, 0.25)
            return False

        monkeypatch.setattr(writer, "reserve", reserve_while_settled)
        await budget.reserve(1.0)
        await budget.reserve(0.75)

    asyncio.run(make_calls())
    assert (refused, writer.reserved, writer.spent) == ([0.75], 0.75, 0.25)


def test_a_call_is_made_if_another_runner_settles_and_leaves_while_it_is_refused(
    store: Store,
) -> None:
    writer, other = a_writer(store, 1.0), Leases(store)
    other.register()
    store.write_share(RUN, other.runner.id, 0.75, 0.0, {})

    async def find_alive(runners: Collection[str]) -> Collection[str]:
        if other.runner.id in runners:
            store.write_share(RUN, other.runner.id, 0.0, 0.25, {})
            other.leave()
        return ()

    async def make_call() -> None:
        await SharedBudget(writer, 1.0, find_alive).reserve(0.5)

    asyncio.run(make_call())
    assert writer.reserved == 0.5


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


class Ending:
    """A runner that has joined a run and has nothing left to do; that which leads is elsewhere."""

    def __init__(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        self.store = store
        store.add_shared_run(RUN, {}, None)
        self.leader = Leases(store)
        self.leader.runner = self.leader.runner._replace(place="another machine")
        self.leader.register()
        self.note({})
        self.looks = 0
        self.takes: Sequence[str] = ()
        """What the runner has taken and does not do, as the limit of cost is reached."""
        self._lab = Lab(store, shared=SharedWork(RUN, leads=False))
        self._monkeypatch = monkeypatch

    def note(self, counts: dict[str, bool]) -> None:
        """Note something about the runner that leads."""
        leader = self.leader.runner.id
        self.store.write_share(RUN, leader, 0.0, 0.0, {LEADS: True, ENDED: True, **counts})

    def finish(self, happens: Callable[[int], object]) -> list[RunShare] | None:
        """End; before each look at the others a beat's time passes, and something happens."""
        find_alive = Leases.find_alive

        def look(leases: Leases, runners: Sequence[str]) -> dict[str, float]:
            self.looks += 1
            self._lab.suspended += BEAT_SECONDS
            happens(self.looks)
            return find_alive(leases, runners)

        async def end() -> list[RunShare] | None:
            executor = self._lab.executor()
            async with executor:
                await executor.carry_out(self._lab.plans[executor])
                await executor.sharing.claim_subjects(self.takes)
                return await executor.finish_shared()

        self._monkeypatch.setattr(Leases, "find_alive", look)
        for name in ("_FIRST_LOOK", "_LONGEST_LOOK"):
            self._monkeypatch.setattr(executor_module, name, 0.0)
        return asyncio.run(end())


def test_one_that_was_killed_just_now_does_not_record_the_run_so_another_does(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    ending = Ending(store, monkeypatch)
    shares = ending.finish(lambda _look: None)
    assert shares is not None
    assert [share.runner for share in shares] == [ending.leader.runner.id]
    assert ending.looks >= SILENT_SECONDS / BEAT_SECONDS


def test_the_runner_that_leads_does_not_wait_for_one_that_is_stopped(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.add_shared_run(RUN, {}, None)
    lab, other = Lab(store, shared=SharedWork(RUN, leads=True)), Leases(store)
    other.register()
    store.write_share(RUN, other.runner.id, 0.0, 0.0, {"asked": 3})
    monkeypatch.setattr(leases, "HUNG_SECONDS", 0.0)

    async def end() -> list[RunShare] | None:
        executor = lab.executor()
        async with executor:
            await executor.carry_out(lab.plans[executor])
            return await executor.finish_shared()

    shares = asyncio.run(end())
    assert shares is not None
    assert [share.counts["asked"] for share in shares] == [3]


def test_one_that_shows_that_it_is_alive_records_the_run(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    ending = Ending(store, monkeypatch)
    assert ending.finish(lambda look: ending.leader.beat() if look in (1, 3) else None) is None
    assert ending.looks == 3, "what it did before the first look does not count"


def test_one_that_has_begun_to_record_the_run_is_left_to_it(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    ending = Ending(store, monkeypatch)
    ending.note({RECORDS: True})
    assert ending.finish(lambda _look: None) is None
    assert ending.looks == 1


def test_nobody_waits_for_a_run_that_is_recorded_meanwhile(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    ending = Ending(store, monkeypatch)
    remove = partial(store.remove_shared_runs, [RUN])
    assert ending.finish(lambda look: remove() if look == 2 else None) is None
    assert ending.looks == 2


def test_what_a_runner_does_not_do_any_more_is_free_while_it_waits_for_others(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else they would wait for it, too, and for ever."""
    ending = Ending(store, monkeypatch)
    ending.takes = ["c" * 32]
    granted: set[str] = set()
    other = Leases(store)
    ending.finish(lambda _look: granted.update(other.claim(ending.takes)))
    assert granted == {*ending.takes}
    other.leave()


@pytest.mark.parametrize("fails", [True, False])
def test_a_run_is_abandoned_at_once_when_all_its_runners_have_left_it(
    store: Store, monkeypatch: pytest.MonkeyPatch, *, fails: bool
) -> None:
    store.add_shared_run(RUN, {}, None)
    lab = Lab(store, shared=SharedWork(RUN, leads=fails))
    lab.add(instructions=None)
    seen: list[bool] = []

    async def take_part() -> None:
        async with lab.executor() as executor:
            seen.append(store.find_shared_runs()[0].is_abandoned)
            if fails:
                raise StoreError("the server does not come back")
            executor.leaves_run = True

    with nullcontext() if not fails else pytest.raises(StoreError, match="does not come back"):
        asyncio.run(take_part())
    (run,) = store.find_shared_runs()
    assert seen == [False]
    assert run.is_abandoned
    assert count_rows(store, "runners") == 0
    store.remove_shared_runs([RUN])


def test_a_beat_that_is_on_its_way_when_a_run_ends_does_not_register_its_runner_again(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = Lab(store)
    lab.add(instructions=None)
    began, released = threading.Event(), threading.Event()
    beat, release_all = Leases._beat, WorkSharing.release_all

    late = iter(range(5))  # more could keep the lock from the writer for longer than it waits

    def beat_late(leases: Leases, connection: Connection) -> bool:
        began.set()
        if next(late, None) is not None:
            released.wait(0.3)
        return beat(leases, connection)

    def release(sharing: WorkSharing, *, stays: bool = False) -> None:
        release_all(sharing, stays=stays)
        released.set()

    async def answer() -> Reply:
        while not began.is_set():
            await asyncio.sleep(0)
        return Reply("answer")

    monkeypatch.setattr(Leases, "_beat", beat_late)
    monkeypatch.setattr(WorkSharing, "release_all", release)
    monkeypatch.setattr(work_sharing, "BEAT_SECONDS", 0.0)
    lab.act = lambda _request, _count: answer()
    assert lab.run().asked == 1
    assert count_rows(store, "runners") == 0
