"""The tool `run`: asks and judges, within the budget that the user gave the server.

The budget is for all runs of the server together, and only one run is made at a time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from evalstore.api.progress import CallbackListener, Progress
from evalstore.display import money
from evalstore.errors import STOPPED, EvalstoreError
from evalstore.mcp.arguments import RunArguments
from evalstore.mcp.result_text import PAGE, fit
from evalstore.operations.json_output import to_json
from evalstore.planning.options import Location, RunOptions
from evalstore.store.results import join_feedback
from evalstore.values import Json

if TYPE_CHECKING:
    from evalstore.operations.run_report import RunReport

_SHOWN = 10
"""Results that did not pass in the report of a run; `list_results` has all."""


class BudgetSpentError(EvalstoreError):
    """The budget of the server is used up."""

    exit_code = STOPPED


class RunBudget:
    """What all runs of a server may cost together, in USD."""

    def __init__(self, limit: float) -> None:
        self.limit = limit
        self.spent = 0.0
        self.is_closing = threading.Event()
        """Set when the server ends; `report` of a run then raises."""
        self._running = threading.Lock()

    @property
    def remaining(self) -> float:
        """Return the cost that may still be spent."""
        return max(self.limit - self.spent, 0.0)

    def document(self) -> dict[str, Json]:
        """Return the budget as JSON, in USD."""
        return {
            "limit": self.limit,
            "spent": round(self.spent, 8),
            "remaining": round(self.remaining, 8),
        }

    def run(
        self, location: Location, arguments: RunArguments, report: Callable[[Progress], object]
    ) -> dict[str, Json]:
        """Return what a run did; `report` is called with its progress, and may raise to stop it.

        Raises `BudgetSpentError` when nothing remains, and `EvalstoreError` when another run is
        not finished, a price is not known, or a key may not be sent.
        """
        if not self._running.acquire(blocking=False):
            raise EvalstoreError("a run is not finished yet", hint="wait for its result")
        try:
            return self._run(location, arguments, report)
        finally:
            self._running.release()

    def close(self) -> None:
        """Stop the run in progress, wait until it is recorded, and allow no other."""
        self.is_closing.set()
        self._running.acquire()

    def _run(
        self, location: Location, arguments: RunArguments, report: Callable[[Progress], object]
    ) -> dict[str, Json]:
        from evalstore.operations.run import run
        from evalstore.planning.open_project import open_workspace

        setting = open_workspace(location).settings.max_cost
        limits = [limit for limit in (arguments.max_cost, setting) if limit is not None]
        if self.limit and not self.remaining:
            raise BudgetSpentError(
                f"the budget of {money(self.limit)} is spent",
                hint="the user can start the server again with another '--max-cost'",
            )
        listener = CallbackListener(report)
        options = RunOptions(
            judge_only=arguments.judge_only,
            max_cost=min([self.remaining, *limits]),
            message=arguments.message,
            yes=True,  # within the budget
        )
        try:
            done = run(location, arguments.options, options, listener)
        finally:
            self.spent += listener.usd
        if listener.error is not None:
            raise listener.error
        return {"budget": self.document(), **_describe(done, arguments.max_text)}


def _describe(report: RunReport, max_text: int) -> dict[str, Json]:
    """Return a report as JSON, with the first results that did not pass."""
    document = {
        name: list(value) if isinstance(value, Iterator) else value
        for name, value in to_json(report).items()
        if name not in ("cases", "format")
    }
    notable = report.totals.notable[:_SHOWN]
    document["notPassed"] = [
        {
            "case": f"{result.file}::{result.row}" if result.row else result.file,
            "model": result.model,
            "verdict": result.word,
            "feedback": join_feedback(result.evaluations, report.totals.feedback),
        }
        for result in notable
    ]
    document["warnings"] = report.warnings
    fitted: dict[str, Json] = fit(document, PAGE, max_text)
    return fitted
