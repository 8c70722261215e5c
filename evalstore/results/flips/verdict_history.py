"""The last verdicts of cases, run by run."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from evalstore.planning.open_project import open_store, open_workspace
from evalstore.planning.reasons.path_history import PathHistory
from evalstore.results.growing_results import cell_of
from evalstore.store.results import iterate_entries
from evalstore.store.revisions import resolve_run
from evalstore.store.trees.path_trees import find_entry

if TYPE_CHECKING:
    from evalstore.core.runs import Run
    from evalstore.planning.options import Location
    from evalstore.results.growing_results import CellKey
    from evalstore.store import Store

VERDICTS_LISTED = 8
"""The last verdicts of a case that are listed."""
_RUNS = 40
"""Runs that are searched for them."""
_CELLS = 60_000
"""Results that are read; after so many no older run is read."""
_Leaf = Mapping["CellKey", str]
"""The verdicts in a leaf of a result tree; in place of the file each cell has the leaf."""

RecentVerdicts = Mapping["CellKey", tuple[str, ...]]
"""The last verdicts of each cell, the oldest first."""


def read_recent_verdicts(
    location: Location, files: Collection[str], run: str | None = None
) -> RecentVerdicts:
    """Return the last verdicts of all cells of these files, up to a run.

    Each run that judged a cell counts, also one that used stored answers again. A file that was
    renamed is followed back from the newest of these runs.
    """
    folder = open_workspace(location).settings.paths["tests"]
    with open_store(location) as store:
        last = resolve_run(store, run) if run is not None else None
        runs = [*([last] if last else []), *store.find_recent_runs(before=last, limit=_RUNS)]
        places = _find_places(store, folder, runs, files)
        history: dict[CellKey, list[str]] = {}
        left = _CELLS
        for file in sorted(files):
            roots: dict[str, set[str]] = {}
            for name, root in places[file]:
                roots.setdefault(name, set()).add(root)
            entries = {
                (name, root): leaf
                for name, trees in roots.items()
                for root, leaf in find_entry(trees, name, store.load_nodes).items()
            }
            leaves = [entries[place] for place in places[file] if place in entries]
            left -= _add(history, file, leaves, store, left)
    return {cell: tuple(words[::-1]) for cell, words in history.items()}


def _find_places(
    store: Store, folder: str, runs: Sequence[Run], files: Collection[str]
) -> dict[str, list[tuple[str, str]]]:
    """Return the path of each file in each run that may have it, with the run's tree of results."""
    places: dict[str, list[tuple[str, str]]] = {file: [] for file in files}
    if not runs:
        return places
    history = PathHistory(store, folder, runs[0].snapshot, {})
    for run in runs:
        history.step(run.snapshot)
        for file in places:
            if name := history.name(file):
                places[file].append((name, run.results))
    return places


def _add(
    history: dict[CellKey, list[str]], file: str, leaves: list[str], store: Store, most: int
) -> int:
    """Add the verdicts of a file, and return how many results were read.

    `leaves` are the newest first. Each leaf is read once; after `most` results, none is read.
    """
    known: dict[str, _Leaf] = {}
    for leaf in leaves:
        if leaf not in known and sum(map(len, known.values())) >= most:
            break
        if leaf not in known:
            known[leaf] = _read(store, leaf)
        is_full = True
        for (_, row, prompt, model), word in known[leaf].items():
            words = history.setdefault((file, row, prompt, model), [])
            if len(words) < VERDICTS_LISTED:
                words.append(word)
            is_full = is_full and len(words) == VERDICTS_LISTED
        if is_full:
            break
    return sum(map(len, known.values()))


def _read(store: Store, leaf: str) -> _Leaf:
    return {
        cell_of(result): result.verdict
        for batch in iterate_entries(store, {leaf: leaf})
        for result, _ in batch
        if result.verdict
    }
