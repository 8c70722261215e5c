"""Finds the results of test files in earlier runs, also under former paths."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from evalstore.planning.renames import same_leaf, stored_ids
from evalstore.reports.file_pairs import pair_files
from evalstore.store.path_trees import find_entry, read_tree

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Set

    from evalstore.runs import Run
    from evalstore.store import Store
    from evalstore.values import CaseFile

_FEW = 20
"""The most paths that are looked up one by one; for more, the whole tree is read."""


class EarlierEntries(NamedTuple):
    """The results that a run has of some test files."""

    run: Run
    entries: dict[str, str]
    """The current path of a file -> the leaf of its results in the run."""


class EarlierRuns:
    """Finds the results of test files in the runs before a run, newest first."""

    def __init__(
        self,
        store: Store,
        folder: str,
        nodes: Mapping[str, str],
        files: Mapping[str, CaseFile],
        snapshot: str | None = None,
    ) -> None:
        """`nodes` are the current leaves of all test files by path, and `folder` is their folder.

        `files` are the cases of leaves that the store may not have. `snapshot` is the root of the
        tree of the nodes, if it is stored: then only what differs from it is read.
        """
        self._store, self._folder, self._nodes = store, folder, nodes
        self._files = dict(files)
        self._snapshot = snapshot
        self._names: dict[str, dict[str, str]] = {}

    def before(self, run: Run, paths: Set[str]) -> Iterator[EarlierEntries]:
        """Yield the results of these files in each earlier run; `paths` may shrink meanwhile.

        A leaf that a newer run had for the same path is left out.
        """
        yield from self.among(self._store.find_recent_runs(before=run), paths)

    def among(self, runs: Iterable[Run], paths: Set[str]) -> Iterator[EarlierEntries]:
        """Yield the results of these files in each of these runs, as `before` does."""
        seen: set[tuple[str, str]] = set()
        roots: set[tuple[str, str]] = set()
        for earlier in runs:
            root = earlier.results, earlier.snapshot
            entries = {} if root in roots else self._find(earlier, paths)
            roots.add(root)
            fresh = {path: leaf for path, leaf in entries.items() if (path, leaf) not in seen}
            seen |= fresh.items()
            yield EarlierEntries(earlier, fresh)

    def _find(self, run: Run, paths: Set[str]) -> dict[str, str]:
        entries = self._look_up(run.results, paths)
        lost = paths - entries.keys()
        if not lost or lost <= self._look_up(run.snapshot, lost).keys():
            return entries
        names = self._names_in(run.snapshot)
        renamed = {path: names[path] for path in lost if names.get(path, path) != path}
        there = self._look_up(run.results, set(renamed.values()))
        return entries | {path: there[old] for path, old in renamed.items() if old in there}

    def _look_up(self, root: str, paths: Set[str]) -> dict[str, str]:
        """Return the entries of these paths in a tree."""
        load = self._store.load_nodes
        if len(paths) > _FEW:
            entries = read_tree(root, load)
            return {path: entries[path] for path in paths if path in entries}
        places = {path: find_entry([root], path, load) for path in paths}
        return {path: place[root] for path, place in places.items() if place}

    def _names_in(self, snapshot: str) -> dict[str, str]:
        """Return the path that each test file had in a snapshot, by its current path."""
        if snapshot not in self._names:
            load, now = self._store.load_nodes, self._nodes
            if self._snapshot is not None:
                now = read_tree(self._snapshot, load, unlike=snapshot)
            was = read_tree(snapshot, load, unlike=self._snapshot)
            ids = partial(stored_ids, self._store, self._folder, self._files)
            same = partial(same_leaf, self._files, self._files)
            self._names[snapshot] = pair_files(was, now, ids, ids, same)
        return self._names[snapshot]
