"""Stores the digests of the test files of runs, once for all runs with the same ones."""

from __future__ import annotations

from functools import lru_cache, partial

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
        self._load = lru_cache(_KEPT)(partial(_load, store))

    def find(self, run: Run) -> RunSources | None:
        """Return the digests of a run; None where it has none or the store lacks them."""
        return self._load(run.sources) if run.sources else None


def _load(store: Store, id: str) -> RunSources | None:
    content = store.load_contents("sources", [id]).get(id)
    return restore_sources(content) if content else None
