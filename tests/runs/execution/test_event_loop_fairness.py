"""Bursts of answers."""

from __future__ import annotations

import asyncio

from evalstore.runs.execution.writer import BurstLimit


def rounds_of(count: int, cancelled: frozenset[int] = frozenset()) -> dict[int, int]:
    """In which round of the loop each of those who came together got its turn."""

    async def main() -> dict[int, int]:
        bursts, passed, now = BurstLimit(), dict[int, int](), 0

        async def pass_the_limit(number: int) -> None:
            await bursts.wait()
            passed[number] = now

        tasks = [asyncio.create_task(pass_the_limit(number)) for number in range(count)]
        while not all(task.done() for task in tasks):
            await asyncio.sleep(0)
            now += 1
            for number in cancelled:
                tasks[number].cancel()
        return passed

    return asyncio.run(main())


def test_few_pass_at_once() -> None:
    assert len(set(rounds_of(8).values())) == 1


def test_many_pass_a_few_in_each_round_in_the_order_they_came() -> None:
    rounds = rounds_of(30)
    assert list(rounds) == list(range(30))
    counts = [
        list(rounds.values()).count(round_number) for round_number in sorted(set(rounds.values()))
    ]
    assert max(counts) == 8
    assert len(counts) == 4


def test_who_has_left_takes_no_turn() -> None:
    rounds = rounds_of(30, frozenset(range(10, 30)))
    assert list(rounds) == list(range(10))
