"""Finds pairs whose answers are the same word for word, although their questions differ."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from evalstore.comparison.comparison import Pair
    from evalstore.core.results import ComparedSession
    from evalstore.store import Store

Sessions = tuple[str, ...]
"""The sessions of one side of a pair."""


def find_same_answers(
    store: Store, pairs: Iterable[Pair], known: Mapping[str, ComparedSession] | None = None
) -> frozenset[tuple[Sessions, Sessions]]:
    """Return the sessions of pairs with the same verdict and, word for word, the same answers.

    Pairs that have the same sessions are left out. In both directions. Sessions that are `known`
    are not read again.
    """
    known, others = known or {}, list(_with_other_sessions(pairs))
    ids = dict.fromkeys(id for was, now in others for id in (*was, *now))
    texts = store.find_shown_turns(id for id in ids if id not in known)
    texts |= {id: [*known[id].turns] for id in ids if id in known}
    same = [
        (was, now)
        for was, now in others
        if all(
            old in texts and texts[old] == texts.get(new) for old, new in zip(was, now, strict=True)
        )
    ]
    return frozenset(chain(same, ((now, was) for was, now in same)))


def sessions_of(pair: Pair) -> tuple[Sessions, Sessions]:
    """Return the sessions of both sides of a pair; none for a side without a result."""
    was, now = (side.sessions if side else () for side in (pair.was, pair.now))
    return was, now


def same_answer_text(count: int) -> str:
    """Return how many pairs have the same answer to another question."""
    return f"{count:,} with the same answer"


def _with_other_sessions(pairs: Iterable[Pair]) -> Iterator[tuple[Sessions, Sessions]]:
    """Yield the sessions of pairs with the same verdict and as many, but other, answers."""
    for pair in pairs:
        was, now = sessions_of(pair)
        if was != now and len(was) == len(now) and pair.has_same_verdict:
            yield was, now
