"""What a run reports."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from evalstore.values import Json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from evalstore.errors import Problem
    from evalstore.execution.execution_counts import ExecutionCounts
    from evalstore.operations.run_totals import RunTotals
    from evalstore.planning.code_trust import Untrusted
    from evalstore.results import Result


def describe_spending(outcome: ExecutionCounts) -> list[Json]:
    """What each model was called for, and what that came to."""
    return [
        {
            "model": model,
            "part": part,
            "calls": one.calls,
            "inputTokens": one.input_tokens,
            "outputTokens": one.output_tokens,
            "cachedTokens": one.cached_tokens,
            "cost": None if one.cost is None else round(one.cost, 8),
        }
        for (model, part), one in sorted(outcome.spending.items(), key=lambda one: one[0][::-1])
    ]


@dataclass
class RunReport:
    """What a run did and found."""

    run: str
    status: str
    asked: int
    recorded: int
    """Answers that files bring themselves."""
    judged: int
    reused: int
    failed: int
    failures: dict[str, int]
    hopeless: int
    """Of the failures those that stay as long as nothing is changed."""
    cost: float | None
    judge_cost: float
    """What the judges have cost, of it."""
    spending: list[Json]
    """For each model and part (`candidate`, `evaluator`): calls, tokens, cost."""
    saved: float
    """What the stored answers and judgements that were used again had cost."""
    seconds: float
    stopped_at_failure: bool
    time_is_up: bool
    is_refresh: bool
    judge_only: bool
    gate: str
    """`passed`, `failed`, `undetermined` (something that is missing may decide it) or `off`."""
    exit_code: int
    totals: RunTotals
    lines: Callable[[], Iterator[tuple[Result, str]]]
    """Reads all cells with their feedback from the store, in the order of files and rows."""
    skipped: list[tuple[str, str, str, str]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    untrusted: list[Untrusted] = field(default_factory=list)
    """Python files that checks wait for."""
    left_out: list[Problem] = field(default_factory=list)
    """Errors of test files that are left out."""
    gate_off: bool = False
    """Whether verdicts cannot fail the gate."""

    def document(self) -> Json:
        """As JSON, but for the cases: they are read while they are printed."""
        return {
            "run": self.run,
            "status": self.status,
            "asked": self.asked,
            "recorded": self.recorded,
            "judged": self.judged,
            "reused": self.reused,
            "failed": self.failed,
            "failures": [
                {"message": message, "count": count} for message, count in self.failures.items()
            ],
            "verdicts": self.totals.verdicts,
            "leftOut": sorted({problem.file for problem in self.left_out}),
            "untrusted": [file.path for file in self.untrusted],
            "cost": self.cost,
            "judgeCost": round(self.judge_cost, 8),
            "saved": self.saved,
            "seconds": round(self.seconds, 3),
            "spending": self.spending,
            "gate": self.gate,
            "cases": (
                {
                    "file": one.file,
                    "row": one.row,
                    "prompt": one.prompt,
                    "model": one.model,
                    "verdict": one.word,
                    "score": one.score,
                    "feedback": feedback,
                    "session": one.sessions[0] if one.sessions else None,
                    "sessions": list(one.sessions),
                }
                for one, feedback in self.lines()
            ),
        }
