"""Compares the answers of pairs: whether their texts are equal, and which were given first."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from evalstore.comparison.comparison import Pair
    from evalstore.core.results import ComparedSession, Result, Session

Compared = TypeVar("Compared")
ANOTHER = "another answer"
"""The reason of a change that nothing but chance explains."""
OLDER = "older answers count"
"""The reason of a change whose answers were stored before those of the other side."""


def has_other_sessions(pair: Pair) -> bool:
    """Return whether both sides of a pair have answers, and not the same ones."""
    was, now = (side.sessions if side else () for side in (pair.was, pair.now))
    return bool(was and now) and was != now


def asks_the_same(pair: Pair) -> bool:
    """Return whether both sides of a pair are about the same tests and system prompt."""
    was, now = ((side.tests, side.prompt) if side else None for side in (pair.was, pair.now))
    return was == now


def has_other_answers(pair: Pair) -> bool:
    """Return whether both sides of a pair ask the same and have different sessions."""
    return has_other_sessions(pair) and asks_the_same(pair)


def sessions_to_compare(pairs: Iterable[Pair]) -> set[str]:
    """Return the ids of the sessions of all pairs with the same question and other answers."""
    sides = ((pair.was, pair.now) for pair in pairs if has_other_answers(pair))
    return {id for side in sides for result in side if result for id in result.sessions}


def has_equal_texts(pair: Pair, sessions: Mapping[str, ComparedSession]) -> bool:
    """Return whether both sides asked the same and were answered alike, word for word."""
    sides = _sides(pair, sessions)
    if sides is None:
        return False
    was, now = sides
    return [(each.question, each.turns) for each in was] == [
        (each.question, each.turns) for each in now
    ]


def counts_older(pair: Pair, sessions: Mapping[str, Session | ComparedSession]) -> bool:
    """Return whether the second side asks the same, but its other answers are older."""
    sides = _sides(pair, sessions)
    if sides is None:
        return False
    was, now = sides
    questions = {session.question for session in was}
    gained = [session.started for session in now if session not in was]
    lost = [session.started for session in was if session not in now]
    return (
        questions == {session.question for session in now}
        and bool(gained and lost)
        and max(gained) < min(lost)
    )


def _sides(
    pair: Pair, sessions: Mapping[str, Compared]
) -> tuple[Sequence[Compared], Sequence[Compared]] | None:
    """Return the sessions of both sides; None unless they differ and all are known."""
    if not has_other_answers(pair):
        return None
    assert pair.was
    assert pair.now
    was, now = (_known(side, sessions) for side in (pair.was, pair.now))
    return None if was is None or now is None else (was, now)


def _known(side: Result, sessions: Mapping[str, Compared]) -> list[Compared] | None:
    known = [sessions[id] for id in side.sessions if id in sessions]
    return known if len(known) == len(side.sessions) else None
