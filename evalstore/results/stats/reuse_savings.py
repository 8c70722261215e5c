"""What a run did not pay for: answers and judgements that earlier runs had stored."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evalstore.core.runs import Run
    from evalstore.store.rows.result_sums import ResultSums


def sum_savings(sums: ResultSums, run: Run) -> float:
    """Return the cost of the answers and judgements that are older than a run, in USD."""
    calls = chain(sums.answers((), run.started), sums.judgements((), run.started))
    return round(sum(each.usd for each in calls), 8)
