"""Compares the verdicts that runs have of a test file, reading the parts of long files that differ.

The results of a file are leaves of result trees. Those of a long file have parts, which are nodes
of their own, and leaves share those that are equal.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from evalstore.store.results import iterate_entries
from evalstore.store.trees.case_files import long_parts_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from evalstore.store import Store

PENDING = "pending"
Words = dict[tuple[str, int, str], str]
"""The verdict of each result of a file, by row, number of the system prompt, and candidate."""


class VerdictHistory:
    """Knows the last verdict on each case of a file, leaf by leaf, from the oldest one on."""

    def __init__(self, store: Store, known: Mapping[str, Words], long: Iterable[str]) -> None:
        """`known` are the verdicts of leaves that were read; those of `long` leaves are not."""
        self._store, self._known = store, known
        self._parts: dict[str, Sequence[str]] = {leaf: [leaf] for leaf in known}
        for leaf in long:
            (root,) = store.load_leaves([leaf]).values()
            self._parts[leaf] = long_parts_of(root, store.load_leaves) or [leaf]
        self._counts: dict[str, Counter[tuple[str, str]]] = {}
        """The counts of each part that was read."""
        self._earlier: dict[str, None] = {}
        """The leaves that were added, the last one at the end."""
        self._last: Words = {}
        """The last verdict on each case in the leaves that were added, but for long ones."""

    def counts(self, leaf: str) -> Counter[tuple[str, str]]:
        """Return how many results a leaf has by candidate and verdict."""
        total: Counter[tuple[str, str]] = Counter()
        for part in self._parts[leaf]:
            if part not in self._counts:
                self._counts[part] = self._count(part)
            total.update(self._counts[part])
        return total

    def _count(self, part: str) -> Counter[tuple[str, str]]:
        if part in self._known:
            return Counter((model, word) for (_, _, model), word in self._known[part].items())
        found: Counter[tuple[str, str]] = Counter()
        for (model, verdict), count in self._store.count_results(part).items():
            found[model, verdict or PENDING] += count
        return found

    def add(self, leaf: str) -> None:
        """Go on to the next leaf."""
        self._earlier.pop(leaf, None)
        self._earlier[leaf] = None
        self._last |= self._known.get(leaf, {})

    def count_answered(self, leaf: str) -> int:
        """Return how many verdicts in a leaf are other ones, if all of these were pending before.

        Returns 0 if others changed, too, or a case is new, and for a long leaf.
        """
        changed = [
            self._last.get(place)
            for place, word in self._known.get(leaf, {}).items()
            if self._last.get(place) != word
        ]
        return len(changed) if all(word == PENDING for word in changed) else 0

    def parts_apart(self, was: str, now: str) -> tuple[list[str], list[str]]:
        """Return the parts that only the first of two leaves has, and those of the other alone.

        A leaf that is not long is its only part.
        """
        before, after = self._parts[was], self._parts[now]
        return sorted({*before} - {*after}), sorted({*after} - {*before})

    def differs(self, leaf: str) -> bool:
        """Return whether a verdict in a leaf is another one than the last before, or the first."""
        own = set(self._parts[leaf])
        waiting, read = set(own), set[str]()
        before: dict[int, str] = {}
        """The last verdicts in parts that the leaf has not, by the digests of their places."""
        for earlier in reversed(self._earlier):
            # Newer leaves may have had other verdicts on cases of the parts that both have.
            shared = waiting.intersection(self._parts[earlier])
            if before and self._is_any_other(shared, before):
                return True
            waiting -= shared
            fresh = set(self._parts[earlier]) - own - read if waiting else ()
            for part in fresh:
                for place, word in self._words(part):
                    before.setdefault(place, word)
            read.update(fresh)
            for part in sorted(waiting) if fresh else ():
                words = dict(self._words(part))
                if words.keys() <= before.keys():
                    if any(before[place] != word for place, word in words.items()):
                        return True
                    waiting.discard(part)
            if not waiting:
                return False
        return bool(waiting)  # some verdicts in these are the first

    def _is_any_other(self, parts: Collection[str], before: Mapping[int, str]) -> bool:
        """Return whether a verdict in these parts is another one than before."""
        return any(
            before.get(place, word) != word for part in parts for place, word in self._words(part)
        )

    def _words(self, part: str) -> list[tuple[int, str]]:
        """Return the verdicts in a part, by the digests of their places."""
        if part in self._known:
            return [(hash(place), word) for place, word in self._known[part].items()]
        return [
            (hash((result.row, result.prompt_number, result.model)), result.verdict or PENDING)
            for batch in iterate_entries(self._store, {part: part})
            for result, _ in batch
        ]
