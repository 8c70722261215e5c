"""Carries votes of judges over to an evaluation version that differs only in its checks.

A judge is told the instructions, and the check `judge` says how its reply is read. It is told
nothing of the other checks, so its vote is the same whatever they are. A vote is carried over only
if the subject, the evaluator and all that judges are told are equal.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from evalstore.checks.judging.aggregation import wants_models
from evalstore.checks.types.judge import JUDGE
from evalstore.core import hashing
from evalstore.core.batches import in_batches
from evalstore.core.canonical_json import canonical_json
from evalstore.core.results import Vote
from evalstore.core.values import Json
from evalstore.planning.cells.cells import Cell
from evalstore.planning.plan import CHECKS, Missing, Plan, PlannedJudgement, decided_first

Load = Callable[[Iterable[str]], Mapping[str, Json]]
"""Returns the contents of those of these evaluation versions that are available, by id."""

Key = tuple[str, str, int] | str
"""The id of a vote; or the evaluation version, the evaluator and the time of one carried over."""


def told_to_judges(evaluation: Json) -> Json:
    """Return the part of an evaluation version on which the calls of judges depend.

    That is everything except the checks that judges are not told of: all but the check `judge`.
    """
    told = {name: value for name, value in evaluation.items() if name != "checks"}
    judges = [check for check in evaluation.get("checks", ()) if check["type"] == JUDGE]
    return {**told, "checks": judges} if judges else told


def digest_told(evaluation: Json) -> str:
    """Return the digest of what judges are told; equal digests lead to equal calls."""
    return hashing.hash_content(canonical_json(told_to_judges(evaluation)))


def carry_over(plan: Plan, missing: Missing, load: Load) -> None:
    """Take votes under other evaluation versions for missing judgements, as many as are missing.

    They are added to the votes of the plan under the evaluation version of the judgement, with the
    id and the time of the stored vote. Judgements that lack no more are taken out of `missing`;
    those about which nothing else is missing are noted in the plan.
    """
    wanted = {
        key: (judgement, votes)
        for key, judgement in missing.items()
        if judgement.judge and judgement.sessions and (votes := _votes_elsewhere(plan, judgement))
    }
    if not wanted:
        return
    versions = dict.fromkeys(key[1] for key in wanted)
    versions |= dict.fromkeys(vote.evaluation for _, votes in wanted.values() for vote in votes)
    told = {
        id: digest_told(content)
        for batch in in_batches(versions)
        for id, content in load(batch).items()
    }
    for key, (judgement, votes) in wanted.items():
        evaluation = key[1]
        here = told.get(evaluation)
        same = [vote for vote in votes if here and told.get(vote.evaluation) == here]
        if taken := _take(plan, judgement, evaluation, same):
            subject = hashing.subject_of(judgement.sessions)
            cast = [*plan.votes[subject], *taken]
            plan.votes[subject] = sorted(cast, key=lambda vote: vote[:2])
            left = judgement.count - len(taken)
            if left:
                missing[key] = replace(judgement, count=left)
            else:
                del missing[key]
                plan.carried.append(judgement)
    if plan.carried:
        incomplete = {key[:2] for key in missing}
        plan.carried = [each for each in plan.carried if _is_all(plan, each, incomplete)]


def _is_all(
    plan: Plan, judgement: PlannedJudgement, incomplete: Collection[tuple[object, str]]
) -> bool:
    """Return whether a judgement is carried over and nothing else is missing about its subject."""
    cell, subject = judgement.cell, hashing.subject_of(judgement.sessions)
    votes = [vote for vote in plan.votes[subject] if vote.evaluation == cell.case.evaluation]
    return (subject, cell.case.evaluation) not in incomplete and any(
        vote.is_carried for vote in without_unneeded(cell, votes)
    )


def _votes_elsewhere(plan: Plan, judgement: PlannedJudgement) -> list[Vote]:
    """Return the votes that count of the same evaluator under other evaluation versions."""
    return [
        vote
        for vote in plan.votes.get(hashing.subject_of(judgement.sessions), ())
        if vote.evaluator == judgement.evaluator
        and vote.evaluation != judgement.cell.case.evaluation
        and not vote.is_carried
        and not vote.human
    ]


def _take(
    plan: Plan, judgement: PlannedJudgement, evaluation: str, votes: Sequence[Vote]
) -> list[Vote]:
    """Return as many of these votes as are missing, those first that count first.

    A vote that was carried over earlier has the time of the first one, so both count once; the
    first one tells what was paid.
    """
    subject, evaluator = hashing.subject_of(judgement.sessions), judgement.evaluator
    times = {
        vote.started
        for vote in plan.votes[subject]
        if (vote.evaluation, vote.evaluator) == (evaluation, evaluator)
    }
    taken: list[Vote] = []
    by_time = sorted(votes, key=lambda vote: (vote.started, -plan.costs.get(vote.id, 0.0)))
    for vote in decided_first(by_time):
        if len(taken) < judgement.count and vote.started not in times:
            times.add(vote.started)
            taken.append(vote._replace(evaluation=evaluation, is_carried=True))
    return taken


def without_unneeded(cell: Cell, votes: Sequence[Vote]) -> Sequence[Vote]:
    """Return votes without those carried over that the verdict of the checks makes needless."""
    if "checks" not in cell.case.judged_by or not any(vote.is_carried for vote in votes):
        return votes
    checked = next((vote.verdict for vote in votes if vote.evaluator == CHECKS), None)
    if checked is not None and wants_models(cell.case.judged_by, checked):
        return votes
    return [vote for vote in votes if not vote.is_carried]


def keys_of(votes: Iterable[Vote]) -> set[Key]:
    """Return the keys of votes that are known, by which `is_known` finds others."""
    keys: set[Key] = set()
    for vote in votes:
        keys.add((vote.evaluation, vote.evaluator, vote.started) if vote.is_carried else vote.id)
    return keys


def is_known(vote: Vote, known: Collection[Key]) -> bool:
    """Return whether a stored vote is among those that are known.

    Another run may have stored one that this one carries over, too.
    """
    return vote.id in known or (vote.evaluation, vote.evaluator, vote.started) in known
