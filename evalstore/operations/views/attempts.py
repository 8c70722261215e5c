"""The verdicts on the attempts of a result: on each of the answers that were asked for."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from evalstore.judging.aggregation import judge_session
from evalstore.planning.plan import CHECKS
from evalstore.results import Vote

if TYPE_CHECKING:
    from evalstore.judging.aggregation import JudgedSession
    from evalstore.operations.views.result_changes import JudgedResult
    from evalstore.store import Store
    from evalstore.values import Case, Verdict

Subject = TypeVar("Subject", bound=Hashable)


class Attempt(NamedTuple):
    """One of several attempts at a case."""

    sessions: tuple[str, ...]
    """The conversations that are judged together; mostly one."""
    verdict: Verdict


class CastVote(NamedTuple):
    """A vote with the answers that it is about."""

    vote: Vote
    sessions: tuple[str, ...]


def load_votes(store: Store, records: Iterable[JudgedResult]) -> dict[str, CastVote]:
    """Return the votes on these results by the ids of the judgements."""
    ids = dict.fromkeys(id for record in records for id in record.result.evaluations)
    evaluations = store.find_evaluations(ids)
    evaluators = {evaluation.evaluator for evaluation in evaluations.values()}
    contents = store.load_contents("evaluator", evaluators)
    people = {id for id, content in contents.items() if "human" in content}
    return {
        id: CastVote(
            Vote(
                *(made.started, id, made.evaluation, made.evaluator, made.verdict, made.score),
                human=made.evaluator in people,
            ),
            made.sessions,
        )
        for id, made in evaluations.items()
    }


def find_attempts(
    store: Store, records: Sequence[JudgedResult]
) -> dict[tuple[str, ...], tuple[Attempt, ...]]:
    """Return the attempts of the results that have several, by the judgements of the result."""
    several = [record for record in records if has_attempts(record)]
    cast = load_votes(store, several)
    attempts = {
        record.result.evaluations: tuple(
            Attempt(sessions, judge_record(record, votes))
            for sessions, votes in read_votes(record, cast).items()
        )
        for record in several
    }
    return {key: listed for key, listed in attempts.items() if len(listed) > 1}


def has_attempts(record: JudgedResult) -> bool:
    """Return whether the result has several attempts at the case."""
    return record.result.required_answers > len(record.result.tests)


def read_votes(
    record: JudgedResult, cast: Mapping[str, CastVote]
) -> dict[tuple[str, ...], list[Vote]]:
    """Return the votes on a result: all together, or if there are attempts, those on each."""
    listed = [cast[id] for id in record.result.evaluations if id in cast]
    if not has_attempts(record):
        return {record.result.sessions: [vote for vote, _ in listed]} if listed else {}
    return group_votes((sessions, vote) for vote, sessions in listed)


def group_votes(votes: Iterable[tuple[Subject, Vote]]) -> dict[Subject, list[Vote]]:
    """Return the votes on each attempt, in the order of the first votes."""
    by_subject: dict[Subject, list[Vote]] = {}
    for subject, vote in votes:
        by_subject.setdefault(subject, []).append(vote)
    return by_subject


def judge_record(record: JudgedResult, votes: Sequence[Vote]) -> Verdict:
    """Return the verdict of the votes on an attempt, by the rule of its run."""
    return judge_votes(record.case, votes, record.run.verdict_rule).verdict


def judge_votes(case: Case, votes: Sequence[Vote], rule: str) -> JudgedSession:
    """Return the verdict and the score of the votes on an attempt; `rule` combines several."""
    return judge_session(votes, case.judged_by, CHECKS, rule)


def attempts_text(verdicts: Iterable[str]) -> str:
    """Return how many attempts fail, as in `2 of 3 attempts fail`; empty if there are not two."""
    listed = list(verdicts)
    failed = sum(1 for verdict in listed if verdict != "pass")
    if len(listed) < 2:
        return ""
    if not failed:
        return f"{len(listed)} attempts pass"
    return f"{failed} of {len(listed)} attempts {'fails' if failed == 1 else 'fail'}"
