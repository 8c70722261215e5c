"""Stores the judgements that a run carries over from other evaluation versions.

Such a row is made of the judgement and the evaluation version alone, and so is its id: whoever
carries the judgement over stores the same row.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from evalstore.core import hashing
from evalstore.core.results import Evaluation
from evalstore.store.schema.table_columns import EVALUATIONS

if TYPE_CHECKING:
    from evalstore.core.results import Vote
    from evalstore.planning.results import CellResult
    from evalstore.store import Store


def carry(id: str, judgement: Evaluation, evaluation: str) -> Evaluation:
    """Return the stored judgement with this id under another evaluation version.

    It has the time, the nonce and the cost of the first one, as any judgement that is used again.
    """
    return replace(judgement, evaluation=evaluation, taken_from=judgement.taken_from or id)


class CarriedJudgements:
    """Stores the judgements that one run carries over."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.count = 0
        """How many judgements were stored that the store lacked."""

    def store(
        self, results: list[CellResult], costs: dict[str, float]
    ) -> tuple[list[CellResult], int]:
        """Store the votes of results that are carried over, and add their costs.

        `costs` are in USD by id. Returns the results with the ids of these votes, and how many of
        them the store lacked.
        """
        votes = [vote for result in results for vote in result.votes if vote.is_carried]
        if not votes:
            return results, 0
        store = self._store
        sources = store.load_evaluations(vote.id for vote in votes)
        rows: dict[str, tuple[Evaluation, str]] = {}
        ids: dict[tuple[str, str], str] = {}
        for place in dict.fromkeys((vote.id, vote.evaluation) for vote in votes):
            made = carry(place[0], sources[place[0]], place[1])
            ids[place], content = hashing.identify(hashing.describe_evaluation_result(made))
            rows[ids[place]] = made, content
        known = store.find_present(EVALUATIONS.name, map(bytes.fromhex, rows))
        new = {id: row for id, row in rows.items() if bytes.fromhex(id) not in known}
        if new:
            store.record(evaluations=new)
            self.count += len(new)
        costs.update({ids[place]: costs[place[0]] for place in ids if place[0] in costs})

        def stored(vote: Vote) -> Vote:
            if not vote.is_carried:
                return vote
            return vote._replace(id=ids[vote.id, vote.evaluation], is_carried=False)

        return [result._replace(votes=tuple(map(stored, result.votes))) for result in results], len(
            new
        )
