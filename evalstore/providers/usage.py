"""Reads what servers count of a call: its tokens and, at OpenRouter, its cost."""

from __future__ import annotations

from evalstore.core.values import Json, Usage
from evalstore.providers.base_urls import host_of

_MOST_TOKENS = 10**9
_MOST_COST = 1e6


def read_usage(usage: Json, *, is_empty: bool) -> Usage:
    """Return the tokens that a server counted; impossible counts are ignored.

    A request always has tokens, and an answer has some unless it `is_empty`. Where the total is
    more than both, the rest is reasoning, which is paid as output; so is more than an answer has.
    """

    def count(*path: str) -> int | None:
        value = usage
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        is_count = isinstance(value, int) and not isinstance(value, bool)
        return value if is_count and 0 <= value <= _MOST_TOKENS else None

    def first(*paths: tuple[str, ...]) -> int | None:
        return next((found for path in paths if (found := count(*path)) is not None), None)

    sent, answered, total = (count(f"{name}_tokens") for name in ("prompt", "completion", "total"))
    if sent and total and total - sent > (answered or 0):
        answered = total - sent
    reasoning = count("completion_tokens_details", "reasoning_tokens")
    if answered is not None and reasoning is not None and reasoning > answered:
        answered += reasoning
    return Usage(
        input_tokens=sent or None,
        output_tokens=answered if is_empty else answered or None,
        cached_tokens=first(
            ("prompt_tokens_details", "cached_tokens"),
            ("prompt_cache_hit_tokens",),  # DeepSeek
            ("cached_tokens",),  # Moonshot
        ),
        reasoning_tokens=reasoning,
        cache_write_tokens=first(
            ("prompt_tokens_details", "cache_write_tokens"),
            ("cache_creation_input_tokens",),  # Anthropic
        )
        or None,
    )


def reports_cost(kind: str, base_url: str | None) -> bool:
    """Return whether answers say what they cost: at OpenRouter, by its kind or its address."""
    is_there = base_url is not None and f".{host_of(base_url)}".endswith(".openrouter.ai")
    return kind == "openrouter" or is_there


def read_cost(document: Json) -> float | None:
    """Return the USD that an answer of OpenRouter cost; None if it does not say so.

    With a key of one's own for the provider behind it, what that provider takes is added.
    """
    match document:
        case {"usage": {"is_byok": True, "cost": cost, **usage}}:
            details = usage.get("cost_details")
            more = details.get("upstream_inference_cost") if isinstance(details, dict) else None
            parts = [cost, more]
        case {"usage": {"cost": cost}}:
            parts = [cost]
        case _:
            return None
    numbers = [
        part for part in parts if isinstance(part, int | float) and not isinstance(part, bool)
    ]
    is_known = len(numbers) == len(parts) and all(0 <= part <= _MOST_COST for part in numbers)
    return float(sum(numbers)) if is_known else None
