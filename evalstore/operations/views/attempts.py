"""The verdicts on the attempts of a result: on each of the answers that were asked for."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from evalstore.judging.aggregation import judge_session
from evalstore.planning.plan import CHECKS
from evalstore.results import Vote

if TYPE_CHECKING:
    from evalstore.operations.views.result_changes import JudgedResult
    from evalstore.results import Evaluation
    from evalstore.store import Store
    from evalstore.values import Verdict


class Attempt(NamedTuple):
    """One of several attempts at a case."""

    sessions: tuple[str, ...]
    """The conversations that are judged together; mostly one."""
    verdict: Verdict


def find_attempts(
    store: Store, records: Sequence[JudgedResult]
) -> dict[tuple[str, ...], tuple[Attempt, ...]]:
    """Return the attempts of the results that have several, by the judgements of the result."""
    several = [record for record in records if has_attempts(record)]
    ids = [id for record in several for id in record.result.evaluations]
    evaluations = store.find_evaluations(ids)
    evaluators = {evaluation.evaluator for evaluation in evaluations.values()}
    contents = store.load_contents("evaluator", evaluators)
    people = {id for id, content in contents.items() if "human" in content}
    attempts = {
        record.result.evaluations: judge_attempts(record, evaluations, people) for record in several
    }
    return {key: listed for key, listed in attempts.items() if listed}


def judge_attempts(
    record: JudgedResult, evaluations: Mapping[str, Evaluation], people: Collection[str]
) -> tuple[Attempt, ...]:
    """Return the attempts of a result and the verdict on each; empty if there are not several.

    `people` are the ids of the evaluators that are people.
    """
    if not has_attempts(record):
        return ()
    attempts = tuple(_judge(record, evaluations, people))
    return attempts if len(attempts) > 1 else ()


def has_attempts(record: JudgedResult) -> bool:
    """Return whether the result has several attempts at the case."""
    return record.result.required_answers > len(record.result.tests)


def read_votes(
    record: JudgedResult, evaluations: Mapping[str, Evaluation], people: Collection[str]
) -> dict[tuple[str, ...], list[Vote]]:
    """Return the votes on a result: all together, or if there are attempts, those on each.

    `people` are the ids of the evaluators that are people.
    """
    votes: dict[tuple[str, ...], list[Vote]] = {}
    for id in record.result.evaluations:
        if id in evaluations:
            made = evaluations[id]
            vote = Vote(
                *(made.started, id, made.evaluation, made.evaluator, made.verdict, made.score),
                human=made.evaluator in people,
            )
            subject = made.sessions if has_attempts(record) else record.result.sessions
            votes.setdefault(subject, []).append(vote)
    return votes


def judge_votes(record: JudgedResult, votes: Sequence[Vote]) -> Verdict:
    """Return the verdict of the votes on an attempt, by the rule of its run."""
    return judge_session(votes, record.case.judged_by, CHECKS, record.run.verdict_rule).verdict


def _judge(
    record: JudgedResult, evaluations: Mapping[str, Evaluation], people: Collection[str]
) -> Iterator[Attempt]:
    for sessions, votes in read_votes(record, evaluations, people).items():
        yield Attempt(sessions, judge_votes(record, votes))


def attempts_text(verdicts: Iterable[str]) -> str:
    """Return how many attempts fail, as in `2 of 3 attempts fail`; empty if there are not two."""
    listed = list(verdicts)
    failed = sum(1 for verdict in listed if verdict != "pass")
    if len(listed) < 2:
        return ""
    if not failed:
        return f"{len(listed)} attempts pass"
    return f"{failed} of {len(listed)} attempts {'fails' if failed == 1 else 'fail'}"
