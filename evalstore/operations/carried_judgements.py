"""Stores the judgements that a run carries over from other evaluation versions.

Such a row is made of the judgement and the evaluation version alone, and so is its id: whoever
carries the judgement over stores the same row.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from evalstore import hashing
from evalstore.results import Cost, Evaluation
from evalstore.store.table_columns import EVALUATIONS
from evalstore.values import Usage

if TYPE_CHECKING:
    from evalstore.planning.results import CellResult
    from evalstore.results import Vote
    from evalstore.store import Store

_NOTHING_PAID = Cost(0.0, {"source": "carried over"})


class CarriedResults(NamedTuple):
    """Results whose votes are all stored."""

    results: list[CellResult]
    ids: list[str]
    """The ids of the judgements among them that are carried over."""
    added: int
    """How many of these the store lacked."""


def is_any_carried(results: Iterable[CellResult]) -> bool:
    """Return whether a vote of these results is carried over, and its row is not stored yet."""
    return any(vote.is_carried for result in results for vote in result.votes)


def carry(id: str, judgement: Evaluation, evaluation: str) -> Evaluation:
    """Return the stored judgement with this id under another evaluation version.

    It has the time and the nonce of the first one, and no call was made for it.
    """
    return replace(
        judgement,
        evaluation=evaluation,
        usage=Usage(),
        cost=_NOTHING_PAID,
        latency=0.0,
        taken_from=judgement.taken_from or id,
    )


def store_carried(store: Store, results: Sequence[CellResult]) -> CarriedResults:
    """Store the votes of results that are carried over; returns the results with their ids.

    The evaluation versions must be stored.
    """
    votes = [vote for result in results for vote in result.votes if vote.is_carried]
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

    def stored(vote: Vote) -> Vote:
        if not vote.is_carried:
            return vote
        return vote._replace(id=ids[vote.id, vote.evaluation], is_carried=False)

    return CarriedResults(
        [result._replace(votes=tuple(map(stored, result.votes))) for result in results],
        [*rows],
        len(new),
    )
