"""Finds the items of a plan whose calls have failed for other runners of the same run.

These are not tried again in the run, which would make and perhaps pay each failing call once for
each runner.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from evalstore.execution.work_sharing import Item, lease_key_of
from evalstore.planning.plan import PlannedAsk

if TYPE_CHECKING:
    from evalstore.planning.plan import PlannedJudgement
    from evalstore.store import Store
    from evalstore.store.failures import Place


class FailedItems:
    """The items that have failed since a shared run began.

    They are later than all failures that the store had at its beginning. Where clocks differ, a
    failure may be taken for an earlier one, and its call is made again; an earlier one is never
    taken for one of the run.
    """

    def __init__(self, store: Store, failed_before: int) -> None:
        """`failed_before` is the time of the newest failure at the beginning of the run."""
        self._store = store
        self._failed_before = failed_before
        self._judgements: dict[str, Place] = {}
        """The judgements that have failed, by the ids of their failures."""

    def find(self, items: Collection[Item]) -> set[str]:
        """Return the lease keys of those among claimed items that have failed."""
        asks = [item.question_id for item in items if isinstance(item, PlannedAsk)]
        failures = self._store.find_failed(asks)
        failed = {key for key, failure in failures.items() if failure.at > self._failed_before}
        judgements = [item for item in items if not isinstance(item, PlannedAsk)]
        if judgements:
            self._judgements |= self._store.find_failed_judgements_after(
                self._failed_before, self._judgements
            )
            places = {*self._judgements.values()}
            failed.update(lease_key_of(each) for each in judgements if _place_of(each) in places)
        return failed


def _place_of(judgement: PlannedJudgement) -> Place:
    assert judgement.subject
    assert judgement.judge
    return judgement.subject, judgement.cell.case.evaluation, judgement.judge.evaluator
