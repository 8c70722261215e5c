"""The verdicts on the attempts of a result: on each of the answers that were asked for."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from evalstore.checks.aggregation import judge_so_far
from evalstore.core.results import Result, Vote
from evalstore.core.values import Verdict
from evalstore.planning.plan import CHECKS
from evalstore.store import Store

Subject = TypeVar("Subject", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Attempt:
    """One of several attempts at a case."""

    JSON_FIELDS = ("sessions", "verdict")
    sessions: tuple[str, ...]
    """The conversations that are judged together; mostly one."""
    verdict: Verdict
    judgements: tuple[str, ...] = ()
    """The ids of the judgements that make the verdict."""


Attempts = Mapping[tuple[str, ...], tuple[Attempt, ...]]
"""The attempts of results that have several, by the judgements of the result."""


class MixedAttempts(NamedTuple):
    """Attempts at a case of which some pass and some do not."""

    passed: int
    total: int
    first_failed: int
    """The number of the first answer that does not pass, from 0."""


class CellToJudge(NamedTuple):
    """A result with all that decides the verdicts on its attempts."""

    result: Result
    judged_by: Collection[str]
    """Who judges its case: `Case.judged_by`."""
    rule: str
    """The rule by which several votes make a verdict."""


class CastVote(NamedTuple):
    """A vote with the answers that it is about."""

    vote: Vote
    sessions: tuple[str, ...]


def find_votes(store: Store, results: Sequence[Result]) -> dict[str, CastVote]:
    """Return the votes on these results by the ids of the judgements."""
    made = store.find_judgements(dict.fromkeys(id for each in results for id in each.evaluations))
    single = {session for result in results for session in result.sessions}
    together = store.find_evaluations(id for id, it in made.items() if it.subject not in single)
    return {
        id: CastVote(it.vote, together[id].sessions if id in together else (it.subject,))
        for id, it in made.items()
    }


def read_attempts(store: Store, cells: Sequence[CellToJudge]) -> Attempts:
    """Return the attempts of these results, as far as they have several.

    A result is left out while those who decide are to vote on one of them.
    """
    several = [cell for cell in cells if has_attempts(cell.result)]
    cast = find_votes(store, [cell.result for cell in several])
    attempts: dict[tuple[str, ...], tuple[Attempt, ...]] = {}
    for result, judged_by, rule in several:
        votes = [cast[id] for id in result.evaluations if id in cast]
        by_sessions = group_votes((sessions, vote) for vote, sessions in votes)
        made = tuple(
            Attempt(sessions, judged.verdict, tuple(vote.id for vote in listed))
            for sessions, listed in by_sessions.items()
            if (judged := judge_so_far(listed, judged_by, CHECKS, rule))
        )
        if 1 < len(made) == len(by_sessions):
            attempts[result.evaluations] = made
    return attempts


def shown_session(result: Result, attempts: Sequence[Attempt]) -> str | None:
    """Return the answer that stands for a result: the first that does not pass, else the first."""
    failed = (attempt.sessions[0] for attempt in attempts if attempt.verdict != "pass")
    return next(failed, None) or next(iter(result.sessions), None)


def mix_of(result: Result, attempts: Sequence[Attempt]) -> MixedAttempts | None:
    """Return how many attempts pass and where the first fails; None unless both occur."""
    passed = sum(1 for attempt in attempts if attempt.verdict == "pass")
    if not 0 < passed < len(attempts):
        return None
    shown = shown_session(result, attempts)
    first = result.sessions.index(shown) if shown in result.sessions else 0
    return MixedAttempts(passed, len(attempts), first)


def has_attempts(result: Result) -> bool:
    """Return whether there are several attempts at the case."""
    return result.required_answers > len(result.tests)


def group_votes(votes: Iterable[tuple[Subject, Vote]]) -> dict[Subject, list[Vote]]:
    """Return the votes on each attempt, in the order of the first votes."""
    by_subject: dict[Subject, list[Vote]] = {}
    for subject, vote in votes:
        by_subject.setdefault(subject, []).append(vote)
    return by_subject


def attempts_text(verdicts: Iterable[str]) -> str:
    """Return how many attempts fail, as in `2 of 3 attempts fail`; empty if there are not two."""
    listed = list(verdicts)
    return failed_text(sum(1 for verdict in listed if verdict != "pass"), len(listed))


def failed_text(failed: int, count: int) -> str:
    """Return `2 of 3 attempts fail`; empty unless there are several attempts."""
    if count < 2:
        return ""
    if not failed:
        return f"{count} attempts pass"
    return f"{failed} of {count} attempts {'fails' if failed == 1 else 'fail'}"
