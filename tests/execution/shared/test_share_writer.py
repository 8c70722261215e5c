"""The share of a runner: what it has told the others holds until it says otherwise."""

from __future__ import annotations

import asyncio
import json

from evalstore.execution.execution_counts import ExecutionCounts
from evalstore.execution.run_share import ENDED, ShareWriter
from evalstore.execution.shared_work import SharedWork
from evalstore.store import Store

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
