"""Items that several runners take: each by one, in the order of the plan, again after a death."""

from __future__ import annotations

import pytest

from evalstore.store import Store
from evalstore.store.leases import HUNG_SECONDS, Leases, OfferedItem, WorkRows

BATCH = "b" * 32
KEYS = [f"{number:032x}" for number in (7, 3, 9, 1, 5)]


class Clock:
    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def offer(store: Store, *keys: str, account: str = "a") -> WorkRows:
    rows = WorkRows(store, Leases(store), BATCH)
    rows.offer([OfferedItem(key, account) for key in keys])
    return rows


def test_items_are_taken_in_the_order_of_the_plan_and_by_one_runner(store: Store) -> None:
    first = offer(store, *KEYS)
    second = WorkRows(store, Leases(store), BATCH)
    assert first.take("a", 2) == KEYS[:2]
    assert second.take("a", 9) == KEYS[2:]
    assert first.take("a", 1) == second.take("a", 1) == []


def test_an_item_is_offered_once_however_many_runners_offer_it(store: Store) -> None:
    first = offer(store, *KEYS)
    assert first.take("a", 2) == KEYS[:2]
    assert offer(store, *KEYS).take("a", 9) == KEYS[2:]


def test_each_account_and_each_batch_has_its_own_items(store: Store) -> None:
    rows = offer(store, KEYS[0])
    offer(store, KEYS[1], account="other")
    assert WorkRows(store, Leases(store), "c" * 32).take("a", 9) == []
    assert rows.take("a", 9) == KEYS[:1]
    assert rows.take("other", 9) == KEYS[1:2]


@pytest.mark.parametrize("dies", [True, False])
def test_what_a_dead_runner_had_taken_is_free_again(store: Store, dies: bool) -> None:
    rows, clock = offer(store, *KEYS), Clock()
    ours = WorkRows(store, Leases(store, monotonic=clock), BATCH)
    rows.take("a", 2)
    assert ours.take("a", 9) == KEYS[2:]
    assert ours.is_left("a")
    ours.delete(KEYS[2:])
    for _ in range(20 if dies else 10):  # a long look away would give it its time anew
        clock.seconds += HUNG_SECONDS / 20
        ours.is_left("a")
    assert ours.take("a", 9) == (KEYS[:2] if dies else [])
