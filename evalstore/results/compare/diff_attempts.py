"""The attempts of a compared pair of results: how many fail, and which of them show the change."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from evalstore.core.results import Decision, Result
from evalstore.core.values import Json
from evalstore.files.temporary_list import TemporaryMapping
from evalstore.results.attempts import (
    Attempt,
    Attempts,
    CellToJudge,
    failed_text,
    has_attempts,
    read_attempts,
)

if TYPE_CHECKING:
    from evalstore.comparison.comparison import Pair
    from evalstore.results.compare.compared_side import Side
    from evalstore.store import Store
    from evalstore.store.trees.case_finder import CaseFinder


class SideAttempts(TemporaryMapping[tuple[str, ...], tuple[Attempt, ...]]):
    """The attempts of the results of a side, as far as they have several, by their judgements."""

    def __init__(self, store: Store, side: Side, finder: CaseFinder) -> None:
        super().__init__(_pack_attempts, _unpack_attempts)
        self._store, self._side, self._finder = store, side, finder

    def read(self, results: Iterable[Result | None]) -> None:
        """Add those of these judged results."""
        by_node: dict[str, list[Result]] = {}
        for result in results:
            if result is not None and result.verdict and has_attempts(result):
                by_node.setdefault(self._side.nodes[result.file], []).append(result)
        for node, listed in by_node.items():
            names = {name for result in listed for name in (result.key, result.row)}
            found = [*self._finder.find(self._side.files[node], names)]
            cases = {case.row: case for case in found} | {case.key: case for case in found}
            pairs = ((result, cases.get(result.key) or cases.get(result.row)) for result in listed)
            cells = [
                CellToJudge(result, case.judged_by, self._side.rule)
                for result, case in pairs
                if case
            ]
            self.update(read_attempts(self._store, cells))


def _pack_attempts(attempts: Sequence[Attempt]) -> Json:
    return [(attempt.sessions, attempt.verdict, attempt.judgements) for attempt in attempts]


def _unpack_attempts(packed: Sequence[Any]) -> tuple[Attempt, ...]:
    return tuple(
        Attempt(tuple(sessions), verdict, tuple(judgements))
        for sessions, verdict, judgements in packed
    )


PairAttempts = tuple["Sequence[Attempt]", "Sequence[Attempt]"]
"""The attempts of both sides of a pair; empty for a side with a single one."""


def choose_attempts(pair: Pair, attempts: PairAttempts) -> tuple[Attempt | None, Attempt | None]:
    """Return the attempt of each side that explains the change; None for a side without answer.

    It has the verdict of its side, or the better and the worse one where the number of failed
    attempts differs, and if possible the other side does not have it.
    """
    was, now = (
        listed or _single(result)
        for listed, result in zip(attempts, (pair.was, pair.now), strict=True)
    )
    if pair.was and pair.now and (pair.was.verdict == "pass") == (pair.now.verdict == "pass"):
        failed = _share(was), _share(now)
        is_worse, is_better = failed[0] < failed[1], failed[0] > failed[1]
        passes = is_worse, is_better
        if failed[0] == failed[1]:
            passes = pair.was.verdict == "pass", pair.now.verdict == "pass"
    else:
        passes = _passes(pair.was), _passes(pair.now)
    shown = _choose(now, was, passes[1])
    if shown and len(was) == len(now):
        same = was[now.index(shown)]  # the same attempt, whose answer may be the same
        if (same.verdict == "pass") == passes[0]:
            return same, shown
    return _choose(was, now, passes[0]), shown


def attempts_of(pair: Pair, sides: tuple[Attempts, Attempts]) -> PairAttempts:
    """Return the attempts of both sides; empty for a side that does not have several."""
    was, now = (
        known.get(side.evaluations, ()) if side else ()
        for known, side in zip(sides, (pair.was, pair.now), strict=True)
    )
    return was, now


def shown_decisions(pair: Pair, attempts: PairAttempts) -> tuple[Decision, Decision]:
    """Return the verdicts of both sides with the judgements that make them.

    Of several attempts, it is that on the attempt that explains the change.
    """
    chosen = choose_attempts(pair, attempts)
    was, now = (
        (attempt.verdict, attempt.judgements)
        if listed and attempt
        else (side.decision if side else (None, ()))
        for side, listed, attempt in zip((pair.was, pair.now), attempts, chosen, strict=True)
    )
    return was, now


def sessions_to_show(
    pair: Pair, attempts: PairAttempts, chosen: tuple[Attempt | None, Attempt | None]
) -> tuple[str | None, str | None]:
    """Return the answers to compare: of the chosen attempts, else the first two that differ."""
    if any(attempts):
        was, now = (attempt.sessions[0] if attempt else None for attempt in chosen)
        return was, now
    old, new = (side.sessions if side else () for side in (pair.was, pair.now))
    for both in zip(old, new, strict=False):
        if both[0] != both[1]:
            return both
    return old[0] if old else None, new[0] if new else None


def count_attempts(attempts: Sequence[Attempt]) -> dict[str, int]:
    """Return how many attempts fail, and how many there are."""
    return {"failed": _failed(attempts), "count": len(attempts)}


def change_text(pair: Pair, attempts: PairAttempts) -> str:
    """Return `1 of 5 attempts failed -> 3 of 5`; empty when neither side has several.

    Beside several attempts the single one of the other side counts: `1 of 5 attempts failed -> 1
    of 1`.
    """
    if not any(attempts):
        return ""
    sides = [
        listed or (_single(result) if result and result.verdict else ())
        for listed, result in zip(attempts, (pair.was, pair.now), strict=True)
    ]
    (old, before), (new, now) = ((_failed(listed), len(listed)) for listed in sides)
    if not before or not now or (old, before) == (new, now):
        return failed_text(new, now) or (f"{old} of {before} attempts failed" if before else "")
    return f"{old} of {before} attempts failed -> {new} of {now}"


def _single(result: Result | None) -> tuple[Attempt, ...]:
    """Return a result with a single attempt as that attempt."""
    if result is None or not result.sessions:
        return ()
    return (Attempt(result.sessions, result.verdict or "undecided", result.evaluations),)


def _passes(result: Result | None) -> bool:
    return result is not None and result.verdict == "pass"


def _failed(attempts: Sequence[Attempt]) -> int:
    return sum(1 for attempt in attempts if attempt.verdict != "pass")


def _share(attempts: Sequence[Attempt]) -> float:
    return _failed(attempts) / len(attempts) if attempts else 0.0


def _choose(own: Sequence[Attempt], others: Sequence[Attempt], passes: bool) -> Attempt | None:
    """Return the first attempt that passes, or does not, and the other side lacks if possible."""
    common = {attempt.sessions for attempt in others}
    alone = [attempt for attempt in own if attempt.sessions not in common]
    for among in (alone, own):
        for attempt in among:
            if (attempt.verdict == "pass") == passes:
                return attempt
    return next(iter(alone or own), None)
