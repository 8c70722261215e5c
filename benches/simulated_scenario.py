"""What is simulated of a run that many runners share, and what comes of it."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Scenario:
    """What is simulated."""

    seed: int = 1
    runners: int = 100
    cases: int = 6_000
    per_minute: float = 3_000.0
    """The limit of the account."""
    judged_per_minute: float = 0.0
    """The limit of the judge's account; without one, nothing is judged."""
    limit: float | None = None
    """The limit of the run's cost, in USD."""
    max_time: float | None = None
    """The limit of the run's time, in seconds."""
    concurrency: int = 8
    killed: int = 15
    stopped: int = 10
    """Runners that end because they are asked to."""
    asleep: int = 20
    offline: int = 10


@dataclass
class Outcome:
    """What came of a simulation."""

    seconds: float = 0.0
    """Virtual seconds until the last runner has ended."""
    answered: float = 0.0
    """Virtual seconds until the last call."""
    calls: int = 0
    paid: int = 0
    judged: int = 0
    """Judgements that were paid, of those calls."""
    left: int = 0
    """Questions without an answer, or without a judgement where answers are judged."""
    paid_again: int = 0
    """Calls for a question that was paid already, and that a runner had not lost."""
    lost: int = 0
    """Calls that were in flight when their runners were killed or fell silent, paid again."""
    spent: float = 0.0
    """USD"""
    known: float = 0.0
    """USD that the run counts as spent, with what dead runners may have paid."""
    peak: float = 0.0
    """The most calls in a minute, divided by the limit."""
    judged_peak: float = 0.0
    """The same of the judge."""
    transactions: int = 0
    uncounted: int = 0
    """Answers and verdicts in the store that no share of the run counts."""
    is_recorded: bool = False
    states: dict[str, int] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
