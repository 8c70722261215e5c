"""A run that several programs carry out, as each of them knows it."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple, Protocol


class RunnerLauncher(Protocol):
    """Starts further runners of a run."""

    def start(self, run: str, known: Collection[str]) -> None:
        """Start them; raises `EvalstoreError`. `known` are warnings that were shown already."""

    def stop(self) -> None:
        """End those that are still at work."""

    @property
    def remark(self) -> str:
        """Return what the end of the run says when all were lost; empty if they were not."""


class SharedWork(NamedTuple):
    """A run that this runner carries out together with others."""

    id: str
    leads: bool
    """Whether this runner has begun it."""
    cost_limit: float | None = None
    """The most that all runners together may spend, in USD."""
    elapsed: float = 0.0
    """Seconds for which it was in progress when this runner joined it."""
    launcher: RunnerLauncher | None = None
    """Starts its further runners; None where others join by themselves, if at all."""
