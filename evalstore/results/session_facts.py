"""The tokens, cost, time and options of a session, as they are shown."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from evalstore.core.errors import EvalstoreError
from evalstore.core.values import RECORDED
from evalstore.planning.open_project import open_catalogue
from evalstore.planning.pricing import sum_usage

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evalstore.core.results import Session
    from evalstore.planning.options import Location
    from evalstore.planning.pricing import Price


@dataclass(frozen=True, slots=True)
class SessionFacts:
    """The tokens, cost, time and options of a session."""

    started: int
    """Microseconds since 1970, UTC."""
    origin: str
    """`run`, `recorded`, or the format it was imported from."""
    input_tokens: int | None
    output_tokens: int | None
    cached_tokens: int | None
    reasoning_tokens: int | None
    cost: float | None
    """The cost in USD; None if it is not known."""
    latency: float
    """The duration of all turns together, in seconds."""
    temperature: float | None
    seed: int | None
    finish_reason: str
    cut_at: int | None
    """The token limit that cut the answer off; None if it was not cut off."""
    resolved: tuple[str, ...]
    """The models that answered, as reported by the provider."""
    is_simulated: bool = False
    """Whether the model is scripted, so that nobody is paid."""
    is_priced_later: bool = False
    """Whether the cost is at today's price, as the price was not known."""


def read_session_facts(location: Location, session: Session, *, is_scripted: bool) -> SessionFacts:
    """Return the facts of a session; its cost is at today's price if it was not known."""
    facts = session_facts(session, is_scripted=is_scripted)
    if facts.cost is not None or facts.origin == RECORDED:
        return facts
    with suppress(EvalstoreError), open_catalogue(location) as project:
        prices = project.prices_by_version()
        return session_facts(session, is_scripted=is_scripted, prices=prices)
    return facts


def session_facts(
    session: Session,
    *,
    is_scripted: bool = False,
    prices: Mapping[str, Price] = MappingProxyType({}),
) -> SessionFacts:
    """Return the tokens, cost, time and options of a session.

    Answers of a model that `is_scripted` cost nothing by default. `prices` are those of today by
    model version, for a session whose price was not known.
    """
    cost = session.cost.usd if session.cost else 0.0 if is_scripted else None
    price = prices.get(session.question.model) if cost is None else None
    later = price.cost_of(session.turns) if price and session.origin != RECORDED else None
    usage = sum_usage(session.turns)
    return SessionFacts(
        started=session.started,
        origin=session.origin,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cached_tokens=usage.cached_tokens,
        reasoning_tokens=usage.reasoning_tokens,
        cost=cost if later is None else later,
        latency=sum(turn.latency for turn in session.turns),
        temperature=session.question.temperature,
        seed=session.question.seed,
        finish_reason=session.answer.finish_reason or "",
        cut_at=session.limit,
        resolved=tuple(
            dict.fromkeys(turn.resolved_model for turn in session.turns if turn.resolved_model)
        ),
        is_simulated=is_scripted,
        is_priced_later=later is not None,
    )
