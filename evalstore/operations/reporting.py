"""What a run reports."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from evalstore.operations.results import CellResult, join_feedback
from evalstore.values import Json

if TYPE_CHECKING:
    from evalstore.execute import Outcome
    from evalstore.report.statistics import Rate


def describe_spending(outcome: Outcome) -> list[Json]:
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
        for (model, part), one in sorted(outcome.spending.items())
    ]


@dataclass
class RunReport:
    """What a run did and found."""

    run: str
    status: str
    asked: int
    judged: int
    reused: int
    failed: int
    failures: dict[str, int]
    verdicts: dict[str, int]
    cost: float | None
    judge_cost: float
    """What the judges have cost, of it."""
    spending: list[Json]
    """For each model and part (`candidate`, `evaluator`): calls, tokens, cost."""
    saved: float
    """What the stored answers and judgements that were used again had cost."""
    seconds: float
    gate: str
    exit_code: int
    cells: list[CellResult]
    feedback: dict[str, str]
    rate: Rate
    skipped: list[tuple[str, str, str, str]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    prompts: dict[str, dict[str | None, str]] = field(default_factory=dict)
    """Test files with several system prompts -> what to call each."""
    gate_off: bool = False
    """Whether verdicts cannot fail the gate."""

    def document(self) -> Json:
        """As JSON."""
        return {
            "run": self.run,
            "status": self.status,
            "asked": self.asked,
            "judged": self.judged,
            "reused": self.reused,
            "failed": self.failed,
            "failures": [
                {"message": message, "count": count} for message, count in self.failures.items()
            ],
            "verdicts": self.verdicts,
            "cost": self.cost,
            "judgeCost": self.judge_cost,
            "saved": self.saved,
            "seconds": round(self.seconds, 3),
            "spending": self.spending,
            "gate": self.gate,
            "cases": [
                {
                    "file": one.cell.file,
                    "row": one.cell.case.row,
                    "prompt": one.cell.prompt,
                    "model": one.cell.candidate.id,
                    "verdict": one.word,
                    "score": one.score,
                    "feedback": join_feedback((vote.id for vote in one.votes), self.feedback),
                    "session": one.sessions[0] if one.sessions else None,
                    "sessions": list(one.sessions),
                }
                for one in self.cells
            ],
        }
