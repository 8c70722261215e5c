"""Shows what the other runners of a shared run have done while this one takes part in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evalstore.execution.model_calls import RunEnvironment
    from evalstore.store.shared_runs import RunShare

_KINDS = ("asked", "judged", "failed")


class OthersProgress:
    """What the others had done when it was last shown."""

    def __init__(self, environment: RunEnvironment) -> None:
        self._environment = environment
        self._shown: Counter[str] = Counter()

    def begin(self, shares: Iterable[RunShare]) -> None:
        """Leave out what was done before this runner made its plan."""
        self._shown = _sum_up(shares)

    def show(self, shares: Iterable[RunShare]) -> None:
        """Add what was done since to the progress, and what it cost."""
        now = _sum_up(shares)
        new, self._shown = now - self._shown, now
        for kind in _KINDS:
            if new[kind]:
                self._environment.progress(kind, int(new[kind]))
        if new["cost"] or new["tokens"]:
            self._environment.spent(new["cost"], int(new["tokens"]))


def _sum_up(shares: Iterable[RunShare]) -> Counter[str]:
    """Return the numbers of all of these runners together; the cost is in USD."""
    total: Counter[str] = Counter()
    for share in shares:
        counts = share.counts
        for kind in _KINDS:
            total[kind] += counts.get(kind, 0)
        total["cost"] += counts.get("cost", 0.0) + counts.get("judge_cost", 0.0)
        for _model, _role, spent in counts.get("spending", ()):
            total["tokens"] += spent.get("input_tokens", 0) + spent.get("output_tokens", 0)
    return total
