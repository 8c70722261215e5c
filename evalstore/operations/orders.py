"""What a command is asked to do: where, about what, and how. Light: imports nothing slow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from pathlib import Path

FailOn = Literal["failure", "regression", "undecided", "error", "none"]
Kind = Literal[
    "tests",
    "cases",
    "models",
    "evaluators",
    "prompts",
    "tools",
    "schemas",
    "tags",
    "runs",
    "checks",
]
"""What can be listed."""


@dataclass(frozen=True, slots=True)
class Where:
    """Which workspace and store a command is about."""

    directory: Path
    config: Path | None = None
    store: str | None = None
    """Instead of the settings' store."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the command line selects and overrides."""

    paths: tuple[str, ...] = ()
    """`PATH` or `PATH::row`, relative to the current directory."""
    tags: tuple[str, ...] = ()
    exclude_tags: tuple[str, ...] = ()
    name: str | None = None
    models: tuple[str, ...] = ()
    evaluators: tuple[str, ...] = ()
    attempts: int | None = None


@dataclass(frozen=True, slots=True)
class Orders:
    """How a run is to go."""

    concurrency: int | None = None
    """The most calls in flight at once, for each account."""
    timeout: float | None = None
    """Seconds for one call with all its tries."""
    retries: int | None = None
    threshold: float | None = None
    fail_on: FailOn = "failure"
    message: str | None = None
    judge_only: bool = False
    max_cost: float | None = None
    """USD"""
    max_time: float | None = None
    """Seconds"""
    yes: bool = False
    """Whatever it costs, nobody is asked."""
    exit_first: bool = False
    """Stop at the first verdict that is no pass."""
