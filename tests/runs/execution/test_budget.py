"""What is set aside for a call before it is made, and who has to wait for room."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine

import pytest

from evalstore.core.values import FilePart, OutgoingMessage, Request, Text, ToolVersion
from evalstore.providers.price_table import Price
from evalstore.runs.execution.limits.budget import (
    Budget,
    OverBudgetError,
    count_input,
    estimate_call_cost,
)

TOOL = ToolVersion("look", "Look.", {"type": "object"})
SCHEMA = {"type": "string"}


def request(*parts: Text | FilePart, **fields: object) -> Request:
    return Request("m", (OutgoingMessage("user", parts),), **fields)  # type: ignore[arg-type]


# --- the size of a request


@pytest.mark.parametrize(("text", "tokens"), [("", 1), ("ab", 1), ("abc", 2), ("a" * 300, 101)])
def test_a_token_is_three_characters_and_every_part_has_one_more(text: str, tokens: int) -> None:
    assert count_input(request(Text(text))) == tokens
    assert count_input(request(Text(text), Text(text))) == 2 * tokens


def test_all_messages_count() -> None:
    turn = OutgoingMessage("user", (Text("abc"),))
    assert count_input(Request("m", (turn, turn, turn))) == 6


@pytest.mark.parametrize(
    ("media_type", "size", "tokens"),
    [
        ("image/png", 8, 2_000),
        ("image/png", 800_000, 2_000),
        ("application/pdf", 7, 0),
        ("application/pdf", 800, 100),
        ("audio/image", 800, 100),
    ],
)
def test_an_image_has_one_size_and_other_files_have_their_own(
    media_type: str, size: int, tokens: int
) -> None:
    assert count_input(request(FilePart("f", media_type, b"x" * size))) == tokens


def test_the_parts_of_a_message_are_added_up() -> None:
    image, document = FilePart("i", "image/png", b""), FilePart("d", "text/plain", b"x" * 80)
    assert count_input(request(Text("abc"), image, document, Text("abc"))) == 2 + 2_000 + 10 + 2


def test_the_schema_and_the_tools_are_part_of_the_input() -> None:
    """The schema has 18 characters, and the tool about 75."""
    assert count_input(request(Text("abc"))) == 2
    assert count_input(request(Text("abc"), schema=SCHEMA)) == 8
    assert count_input(request(Text("abc"), tools=(TOOL,))) == 29
    assert count_input(request(Text("abc"), schema=SCHEMA, tools=(TOOL,))) == 34


# --- what a call may cost


def test_input_tokens_are_part_of_what_is_set_aside() -> None:
    price = Price("t", per_input_token=0.01, per_output_token=1.0)
    assert estimate_call_cost(price, request(Text("a" * 297), max_output_tokens=2), 0) == 3.0


@pytest.mark.parametrize(
    ("limit", "longest", "tokens"),
    [
        (None, 0, 300),
        (None, 300, 300),
        (None, 301, 301),
        (50, 0, 50),
        (50, 700, 50),
        (700, 0, 700),
    ],
)
def test_the_longest_answer_seen_is_set_aside_unless_there_is_a_limit(
    limit: int | None, longest: int, tokens: int
) -> None:
    price = Price("t", per_output_token=1.0)
    assert estimate_call_cost(price, request(max_output_tokens=limit), longest) == tokens


def test_without_a_price_nothing_is_set_aside() -> None:
    assert estimate_call_cost(None, request(Text("a")), 1_000) == 0.0


# --- reserving


def run(scenario: Coroutine[None, None, None]) -> None:
    asyncio.run(scenario)


def test_what_is_spent_and_set_aside_never_exceeds_the_most() -> None:
    async def scenario() -> None:
        budget = Budget(1.0)
        await budget.reserve(0.6)
        budget.settle(0.6, 0.5)
        assert budget.spent == 0.5
        assert budget.remaining == 0.5
        with pytest.raises(OverBudgetError):
            await budget.reserve(0.51)
        await budget.reserve(0.5)
        budget.settle(0.5, 0.5)
        assert (budget.spent, budget.remaining) == (1.0, 0.0)

    run(scenario())


def test_a_call_that_does_not_fit_yet_waits_for_those_in_flight() -> None:
    async def scenario() -> None:
        budget = Budget(1.0)
        await budget.reserve(0.4)
        await budget.reserve(0.4)
        waiting = asyncio.ensure_future(budget.reserve(0.5))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not waiting.done()
        budget.settle(0.4, 0.3)  # 0.3 spent, 0.4 set aside: 0.5 does not fit
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not waiting.done()
        budget.settle(0.4, 0.1)  # 0.4 spent, nothing set aside
        await waiting
        budget.settle(0.5, 0.55)
        with pytest.raises(OverBudgetError):
            await budget.reserve(0.1)

    run(scenario())


def test_a_call_that_is_over_leaves_its_room_while_others_go_on() -> None:
    async def scenario() -> None:
        budget = Budget(1.0)
        for _ in range(3):
            await budget.reserve(0.3)
        budget.settle(0.3, 0.0)
        await asyncio.wait_for(budget.reserve(0.4), 10)

    run(scenario())


def test_a_call_that_fits_beside_no_other_is_refused_when_the_others_are_over() -> None:
    async def scenario() -> None:
        budget = Budget(1.0)
        await budget.reserve(0.4)
        waiting = asyncio.ensure_future(budget.reserve(0.9))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not waiting.done()
        budget.settle(0.4, 0.2)
        with pytest.raises(OverBudgetError):
            await waiting

    run(scenario())


def test_all_that_wait_are_woken() -> None:
    async def scenario() -> None:
        budget = Budget(1.0)
        await budget.reserve(1.0)
        waiting = [asyncio.ensure_future(budget.reserve(0.3)) for _ in range(3)]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        budget.settle(1.0, 0.0)
        await asyncio.gather(*waiting)
        for _ in waiting:
            budget.settle(0.3, 0.3)
        assert budget.remaining == pytest.approx(0.1)

    run(scenario())


def test_a_call_that_is_cancelled_while_it_waits_wakes_nobody_and_hinders_nobody() -> None:
    async def scenario() -> None:
        budget = Budget(1.0)
        await budget.reserve(1.0)
        first, second = (asyncio.ensure_future(budget.reserve(0.5)) for _ in range(2))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert (first.cancelled(), second.done()) == (True, False)
        budget.settle(1.0, 0.5)
        await second

    run(scenario())


def test_without_a_bound_everything_fits_and_what_is_left_is_nothing() -> None:
    async def scenario() -> None:
        budget = Budget()
        assert budget.remaining == 0.0
        for _ in range(3):
            await budget.reserve(1e9)
        budget.settle(1e9, 2.0)
        assert (budget.spent, budget.remaining) == (2.0, 0.0)

    run(scenario())


def test_rounding_leaves_nothing_set_aside_when_all_calls_are_over() -> None:
    async def scenario() -> None:
        budget = Budget(0.3)
        for _ in range(3):
            await budget.reserve(0.1)
        for _ in range(3):
            budget.settle(0.1, 0.0)
        await budget.reserve(0.3)  # exactly all of it, whatever 0.1 + 0.1 + 0.1 is
        budget.settle(0.3, 0.3)
        assert budget.remaining == 0.0

    run(scenario())


def test_a_bound_of_nothing_lets_only_free_calls_through() -> None:
    async def scenario() -> None:
        budget = Budget(0.0)
        await budget.reserve(0.0)
        budget.settle(0.0, 0.0)
        with pytest.raises(OverBudgetError):
            await budget.reserve(1e-6)

    run(scenario())
