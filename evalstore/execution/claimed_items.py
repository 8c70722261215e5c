"""The items of a plan that runners claim, and the keys of their leases."""

from __future__ import annotations

from evalstore import hashing
from evalstore.planning.plan import CHECKS, PlannedAsk, PlannedJudgement

Item = PlannedAsk | PlannedJudgement


def lease_key_of(item: Item) -> str:
    """Return the key of an item's lease: of a question, or of a judgement of a subject."""
    if isinstance(item, PlannedAsk):
        return item.question_id
    evaluator = item.judge.evaluator if item.judge else CHECKS
    return hashing.hash_content(f"{item.subject} {item.cell.case.evaluation} {evaluator}")
