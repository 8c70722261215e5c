"""The numbers of an execution: calls, failures and costs."""

from __future__ import annotations

from dataclasses import dataclass, field

from evalstore.core.values import Sample, Vote


@dataclass
class ModelSpending:
    """The number, tokens and cost of the calls of one model."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cost: float = 0.0
    """USD of the calls whose cost is known."""
    unpriced: int = 0
    """Calls whose price or tokens are not known."""
    simulated: int = 0
    """Calls of a scripted model, which cost nothing."""
    local: int = 0
    """Calls of a server in one's own network, which cost nothing."""


@dataclass
class ExecutionCounts:
    """The numbers and the new results of an execution."""

    asked: int = 0
    recorded: int = 0
    """The number of answers that were taken from test files."""
    judged: int = 0
    judged_by_checks: int = 0
    """The number of judgements by checks, which call no model."""
    failed: int = 0
    """The number of answers and judgements that failed."""
    failures: dict[str, int] = field(default_factory=dict)
    """Message -> how often."""
    permanent_failures: int = 0
    """The number of failures that recur until something is changed, such as a missing key."""
    cost: float = 0.0
    judge_cost: float = 0.0
    priced: bool = True
    """Whether every call had a known price."""
    interrupted: bool = False
    over_budget: bool = False
    """Whether it ended at its limit of cost or time."""
    time_is_up: bool = False
    stopped_at_failure: bool = False
    spending: dict[tuple[str, str], ModelSpending] = field(default_factory=dict)
    """Display id and `candidate` or `evaluator` -> its calls."""
    sessions: dict[str, list[Sample]] = field(default_factory=dict)
    """Question id -> new sessions."""
    votes: dict[str, list[Vote]] = field(default_factory=dict)
    """Id of a subject -> new votes."""
    costs: dict[str, float] = field(default_factory=dict)
    """Id of a new session or vote -> its cost in USD, if it is known."""
