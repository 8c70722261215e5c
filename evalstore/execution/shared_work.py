"""A run that several programs carry out, as each of them knows it."""

from __future__ import annotations

from typing import NamedTuple


class SharedWork(NamedTuple):
    """A run that this runner carries out together with others."""

    id: str
    leads: bool
    """Whether this runner has begun it."""
    cost_limit: float | None = None
    """The most that all runners together may spend, in USD."""
    elapsed: float = 0.0
    """Seconds for which it was in progress when this runner joined it."""
