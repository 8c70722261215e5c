"""What a run did not pay for: answers and judgements that earlier runs had stored."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalstore.store.results import iterate_results

if TYPE_CHECKING:
    from evalstore.runs import Run
    from evalstore.store import Store


class ReuseSavings:
    """Adds up the costs of answers and judgements that are older than a run, each once."""

    def __init__(self, run: Run) -> None:
        self._started = run.started
        self._seen: set[str] = set()
        self._sum = 0.0

    @property
    def usd(self) -> float:
        """Return the sum in USD."""
        return round(self._sum, 8)

    def add(self, id: str, started: int, usd: float | None) -> None:
        """Add the cost of an answer or a judgement that counts in the run."""
        if usd and started < self._started and id not in self._seen:
            self._seen.add(id)
            self._sum += usd


def sum_savings(store: Store, run: Run) -> float:
    """Return the cost of the answers and judgements that a stored run reused, in USD."""
    savings = ReuseSavings(run)
    for batch in iterate_results(store, run):
        for id, spent in store.find_spent(id for each in batch for id in each.sessions).items():
            savings.add(id, spent.started, spent.usd)
        judged = store.find_judgements(id for each in batch for id in each.evaluations)
        for id, judgement in judged.items():
            savings.add(id, judgement.vote.started, judgement.usd)
    return savings.usd
