"""Finds the results that ids belong to, decoding few of the nodes of many results.

Ids are looked for in the canonical JSON of the nodes, and only nodes that have some are decoded.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple, Protocol

from evalstore.store.contents import decode_content

if TYPE_CHECKING:
    from evalstore.store import Store

_AT_ONCE = 256
_IDS = re.compile('"([0-9a-f]{32})"').findall
_CASES = re.compile('{"cases":"([0-9a-f]{32})"').match
"""Matches the node with the cases, which is the first field of a node of results."""
_PARTS = '"parts":['
"""What only nodes above others have: inside of a string, quotes are escaped."""


class FoundResults(NamedTuple):
    """Where results that are looked for may be."""

    entries: dict[str, str]
    """The entries of files with such results, of a result tree."""
    without: set[str]
    """The nodes below them that have none."""


class Ids(Protocol):
    """The ids that are looked for."""

    def isdisjoint(self, ids: Iterable[str], /) -> bool:
        """Return whether none of these is among them."""


class ResultFinder:
    """Finds results by ids; each node is found once, in whichever runs it is."""

    def __init__(
        self,
        store: Store,
        of_results: Ids,
        of_cases: Ids | None,
        go_on: Callable[[], bool] = lambda: True,
    ) -> None:
        """Look for sessions and judgements, and for versions of tests and evaluations.

        The search ends once `go_on` returns False.
        """
        self._store = store
        self._of_results = of_results
        self._of_cases = of_cases
        self._go_on = go_on
        self._below: dict[str, Sequence[str]] = {}
        """The nodes below a node that is above others."""
        self._has_some: dict[str, bool] = {}
        """Whether other nodes have some of the ids, or may have, and were not found yet."""

    def find(self, entries: Mapping[str, str]) -> FoundResults | None:
        """Return where the results are, among files of a result tree; None once it is to end.

        Nodes that were returned before have none any more.
        """
        level: Iterable[str] = entries.values()
        known = self._below, self._has_some
        while level := [id for id in dict.fromkeys(level) if not any(id in seen for seen in known)]:
            if not self._search(level):
                return None
            level = [part for id in level for part in self._below.get(id, ())]
        without: set[str] = set()
        kept = {path: id for path, id in entries.items() if self._sort_out(id, without)}
        self._has_some.update(dict.fromkeys(self._has_some, False))
        return FoundResults(kept, without)

    def _search(self, nodes: Sequence[str]) -> bool:
        """Look for the ids in nodes; returns False when it is to end."""
        by_cases: dict[str, list[str]] = {}
        for id, text in self._texts(nodes):
            if _PARTS in text:
                parts = decode_content("nodes", id, text, "results")["parts"]
                self._below[id] = [part for part in parts if part]
                continue
            self._has_some[id] = not self._of_results.isdisjoint(_IDS(text))
            if self._of_cases is not None and not self._has_some[id]:
                found = _CASES(text)
                by_cases.setdefault(found[1] if found else "", []).append(id)
        for cases, text in self._texts(by_cases.keys() - {""}):
            if self._of_cases is not None and not self._of_cases.isdisjoint(_IDS(text)):
                self._has_some.update(dict.fromkeys(by_cases[cases], True))
        return self._go_on()

    def _texts(self, nodes: Iterable[str]) -> Iterator[tuple[str, str]]:
        left = iter(nodes)
        while (batch := list(islice(left, _AT_ONCE))) and self._go_on():
            yield from self._store.load_texts(batch)

    def _sort_out(self, node: str, without: set[str]) -> bool:
        """Return whether a node, or one below it, has some; adds those that have none."""
        if node in self._below:
            found = [self._sort_out(part, without) for part in self._below[node]]
            has_some = any(found)
        else:
            has_some = self._has_some[node]
        if not has_some:
            without.add(node)
        return has_some
