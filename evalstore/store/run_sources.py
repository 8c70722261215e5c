"""Stores the digests of the test files of runs, once for all runs with the same ones."""

from __future__ import annotations

from evalstore.core import hashing
from evalstore.core.runs import Run, RunSources, describe_sources, restore_sources
from evalstore.store import Store

_KEPT = 8
"""The most digests that are kept in memory; one may have 1,000."""


def ensure_sources(store: Store, sources: RunSources) -> str:
    """Store digests; returns their id."""
    id, content = hashing.identify(describe_sources(sources))
    store.ensure_versions({id: ("sources", content)})
    return id


class SourcesReader:
    """Reads the digests of runs; those read last are kept."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._kept: dict[str, RunSources | None] = {}

    def find(self, run: Run) -> RunSources | None:
        """Return the digests of a run; None where it has none or the store lacks them."""
        id = run.sources
        if id is None:
            return None
        if id not in self._kept:
            content = self._store.load_contents("sources", [id]).get(id)
            while len(self._kept) >= _KEPT:
                del self._kept[next(iter(self._kept))]
            self._kept[id] = restore_sources(content) if content else None
        return self._kept[id]
