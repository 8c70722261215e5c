"""What the runners of a shared run have spent and reserved, also those that were given up."""

from __future__ import annotations

import pytest

from evalstore.store import Store
from evalstore.store.leases import Leases, release_items

RUN, A, B = "1" * 32, "a" * 32, "b" * 32


@pytest.fixture(autouse=True)
def _a_run(store: Store) -> None:
    store.add_shared_run(RUN, {}, 1.0)


def amounts(store: Store) -> dict[str, tuple[float, float]]:
    """Return what each runner has reserved and spent."""
    return {share.runner: (share.reserved, share.spent) for share in store.find_shares(RUN)}


def test_more_is_reserved_while_all_together_are_within_the_limit(store: Store) -> None:
    assert store.write_share(RUN, A, 0.0, 0.2, {}, more=0.4).is_within
    state = store.write_share(RUN, B, 0.0, 0.1, {}, more=0.3)
    assert state[:4] == (True, True, 0.4, 0.2)
    assert not store.write_share(RUN, A, 0.4, 0.2, {}, more=0.1).is_within
    assert amounts(store) == {A: (0.4, 0.2), B: (0.3, 0.1)}


def test_a_runner_that_was_given_up_frees_nothing_that_is_in_flight(store: Store) -> None:
    store.write_share(RUN, A, 0.0, 0.1, {}, more=0.4)
    with store.writing() as connection:
        release_items(connection, A)
    assert amounts(store) == {A: (0.0, 0.5)}
    assert store.write_share(RUN, B, 0.0, 0.0, {}, more=0.5).is_within
    # It was not dead: its calls are still in flight, and it asks for more.
    assert not store.write_share(RUN, A, 0.4, 0.1, {}, more=0.1).is_within
    assert amounts(store) == {A: (0.4, 0.1), B: (0.5, 0.0)}
    assert not store.write_share(RUN, B, 0.5, 0.0, {}, more=0.1).is_within


def test_nothing_is_noted_after_the_run_was_recorded(store: Store) -> None:
    store.write_share(RUN, A, 0.0, 0.1, {})
    store.remove_shared_runs([RUN])
    assert store.write_share(RUN, A, 0.0, 0.1, {}, more=0.1)[:4] == (False, False, 0, 0)
    assert store.find_shares(RUN) == []


def test_the_share_of_a_dead_runner_stays(store: Store) -> None:
    dead = Leases(store)
    dead.runner = dead.runner._replace(born="long ago")
    dead.claim([A])
    store.write_share(RUN, dead.runner.id, 0.0, 0.1, {}, more=0.2)
    Leases(store).has_others()
    assert amounts(store)[dead.runner.id] == pytest.approx((0.0, 0.3))
