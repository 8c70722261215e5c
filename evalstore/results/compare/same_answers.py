"""Finds pairs whose answers are the same word for word, whatever was asked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain

from evalstore.comparison.comparison import Pair
from evalstore.core.results import ComparedSession
from evalstore.store import Store

Sessions = tuple[str, ...]
"""The sessions of one side of a pair."""


def find_same_answers(
    store: Store, pairs: Iterable[Pair], known: Mapping[str, ComparedSession] | None = None
) -> frozenset[tuple[Sessions, Sessions]]:
    """Return the sessions of pairs with other sessions and, word for word, the same answers.

    In both directions. Sessions that are `known` are not read again.
    """
    sides = (sessions_of(pair) for pair in pairs)
    known, others = known or {}, [it for it in sides if it[0] != it[1] and len({*map(len, it)}) < 2]
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
