"""The votes and the attempts of results that are read with their runs and cases."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalstore.results.attempts import (
    CellToJudge,
    find_votes,
    group_votes,
    has_attempts,
    judge_votes,
    read_attempts,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from evalstore.core.results import Vote
    from evalstore.core.values import Verdict
    from evalstore.results.attempts import Attempts, CastVote
    from evalstore.results.flips.result_changes import JudgedResult
    from evalstore.store import Store


def load_votes(store: Store, records: Iterable[JudgedResult]) -> dict[str, CastVote]:
    """Return the votes on these results by the ids of the judgements."""
    return find_votes(store, [record.result for record in records])


def find_attempts(store: Store, records: Sequence[JudgedResult]) -> Attempts:
    """Return the attempts of these results, as far as they have several."""
    return read_attempts(
        store,
        [CellToJudge(each.result, each.case.judged_by, each.run.verdict_rule) for each in records],
    )


def read_votes(
    record: JudgedResult, cast: Mapping[str, CastVote]
) -> dict[tuple[str, ...], list[Vote]]:
    """Return the votes on a result: all together, or if there are attempts, those on each."""
    listed = [cast[id] for id in record.result.evaluations if id in cast]
    if not has_attempts(record.result):
        return {record.result.sessions: [vote for vote, _ in listed]} if listed else {}
    return group_votes((sessions, vote) for vote, sessions in listed)


def judge_record(record: JudgedResult, votes: Sequence[Vote]) -> Verdict | None:
    """Return the verdict of the votes on an attempt, by the rule of its run; None without one."""
    judged = judge_votes(record.case, votes, record.run.verdict_rule)
    return judged.verdict if judged else None
