"""The contents of versions by kind and id, read now or stored, and read ahead in few queries."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

from evalstore.deserialize import versions_in

if TYPE_CHECKING:
    from evalstore.store import Store
    from evalstore.values import Json

_AT_ONCE = 1_000
"""Things whose contents are read ahead together."""

T = TypeVar("T")


class Contents:
    """Finds contents, first among those that are not stored yet."""

    def __init__(self, store: Store, *fresh: Mapping[str, tuple[str, str]]) -> None:
        """`fresh` are by id: kind and canonical JSON."""
        self._store = store
        self._fresh = fresh
        self._read: dict[str, Json] = {}

    def find(self, kind: str, id: str) -> Json:
        """One content; None when it is nowhere."""
        if id not in self._read:
            self._read_missing(kind, [id])
        return self._read[id]

    def read_ahead(self, wanted: Iterable[tuple[str, str | None]]) -> None:
        """Read what will be asked for, by kind and id, and forget what was read before.

        With tests come their tools and schemas, with evaluations the prompts of their checks.
        """
        self._read.clear()
        self._read_kinds(wanted)
        self._read_kinds([one for each in self._read.values() if each for one in versions_in(each)])

    def _read_kinds(self, wanted: Iterable[tuple[str, str | None]]) -> None:
        by_kind: dict[str, list[str]] = {}
        for kind, id in dict.fromkeys(wanted):
            if id and id not in self._read:
                by_kind.setdefault(kind, []).append(id)
        for kind, ids in by_kind.items():
            self._read_missing(kind, ids)

    def _read_missing(self, kind: str, ids: Sequence[str]) -> None:
        stored: list[str] = []
        for id in ids:
            fresh = next((some[id] for some in self._fresh if id in some), None)
            if fresh is None:
                stored.append(id)
            else:
                self._read[id] = json.loads(fresh[1])
        if stored:
            found = self._store.load_contents(kind, stored)
            self._read |= {id: found.get(id) for id in stored}


def in_portions(things: Iterable[T]) -> Iterator[list[T]]:
    """Things in lists that are short enough to keep all their contents in memory."""
    left = iter(things)
    while some := list(islice(left, _AT_ONCE)):
        yield some
