"""Says in words how the judgements on a case differ: by a label, another evaluator, or neither."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalstore.planning.plan import CHECKS
from evalstore.planning.reasons import describe_evaluator_change

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from evalstore.planning.version_reader import VersionReader
    from evalstore.reports.comparison import Pair
    from evalstore.results import Vote
    from evalstore.store import Store
    from evalstore.values import Json

Judgements = tuple[str, ...]
"""The ids of the judgements on one side of a pair."""


def judgement_changes(
    store: Store, versions: VersionReader, pairs: Iterable[Pair]
) -> dict[tuple[Judgements, Judgements], list[str]]:
    """Return how the judgements of both sides differ, in the words of `status --explain`.

    Empty for further judgements by the same evaluators.
    """
    sides = {
        (pair.was.evaluations, pair.now.evaluations)
        for pair in pairs
        if pair.was and pair.now and pair.was.evaluations != pair.now.evaluations
    }
    ids = {id for was, now in sides for id in {*was} ^ {*now}}
    votes = {id: stored.vote for id, stored in store.find_judgements(ids).items()}
    makers = {vote.evaluator for vote in votes.values()}
    evaluators = store.load_contents("evaluator", makers)
    known: dict[tuple[frozenset[str], frozenset[str]], list[str]] = {}
    changes: dict[tuple[Judgements, Judgements], list[str]] = {}
    for was, now in sides:
        lost = [votes[id] for id in was if id in votes and id not in now]
        gained = [votes[id] for id in now if id in votes and id not in was]
        models = _models(lost), _models(gained)
        if models not in known:
            known[models] = list(_evaluators(versions, evaluators, *models))
        changes[was, now] = [*_labels(evaluators, lost, gained), *known[models]]
    return changes


def _models(votes: Iterable[Vote]) -> frozenset[str]:
    """Return the evaluators of these votes that are models."""
    return frozenset(
        vote.evaluator for vote in votes if not vote.human and vote.evaluator != CHECKS
    )


def _labels(
    evaluators: Mapping[str, Json], lost: Iterable[Vote], gained: Iterable[Vote]
) -> Iterable[str]:
    """Return who labelled the answer, or whose label was removed."""

    def names(votes: Iterable[Vote]) -> list[str]:
        people = {str(evaluators[vote.evaluator]["human"]) for vote in votes if vote.human}
        return sorted(people)

    if new := names(vote for vote in gained if vote.verdict != "none"):
        return [f"labelled by {', '.join(new)}"]
    if old := names([*lost, *gained]):
        return [f"label of {', '.join(old)} removed"]
    return []


def _evaluators(
    versions: VersionReader,
    evaluators: Mapping[str, Json],
    was: frozenset[str],
    now: frozenset[str],
) -> Iterable[str]:
    """Yield how the evaluators differ, each new one from the nearest one that is gone."""
    lost = [evaluators[id] for id in sorted(was - now) if id in evaluators]
    for id in sorted(now - was):
        new = evaluators.get(id, {})
        nearest = next(
            (old for old in lost if old.get("model") == new.get("model")), next(iter(lost), None)
        )
        if nearest is not None:
            lost.remove(nearest)
            yield describe_evaluator_change(versions.find, nearest, new).text
