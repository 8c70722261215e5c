"""Finds the results of test files, and the same cells, in earlier runs, also under former paths."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from typing import NamedTuple, TypeAlias

from evalstore.comparison.comparison import CellIndex, PlacedCell
from evalstore.core.results import Result
from evalstore.core.runs import Run
from evalstore.core.values import Case
from evalstore.planning.reasons.path_history import PathHistory
from evalstore.store import Store
from evalstore.store.rows.row_results import RowResults
from evalstore.store.runs import RUNS_SEARCHED
from evalstore.store.trees.path_trees import find_entries

RunFilter: TypeAlias = "Callable[[Run], bool]"
"""Whether a run counts."""


def every_run(_run: Run) -> bool:
    """Return True."""
    return True


class EarlierEntries(NamedTuple):
    """The results that a run has of some test files."""

    run: Run
    entries: dict[str, str]
    """The current path of a file -> the leaf of its results in the run."""


class RecentRuns:
    """The newest runs of a store, each of which is read once for all that look at those before."""

    def __init__(self, store: Store, newest: Run, most: int) -> None:
        """At most so many runs before `newest` are read."""
        self._store, self._runs = store, [newest]
        self._rest = store.find_recent_runs(before=newest, limit=most)
        self._places = {newest.id: 0}
        self.searched = 0
        """How many runs were looked at, each as often as it was."""

    def before(self, run: Run, limit: int) -> Iterator[Run]:
        """Yield the runs before one of those that were read, newest first."""
        if run.id not in self._places:  # a damaged store has it at another place
            yield from self._store.find_recent_runs(before=run, limit=limit)
            return
        place = self._places[run.id] + 1
        for number in range(place, place + limit):
            if number == len(self._runs):
                older = next(self._rest, None)
                if older is None:
                    return
                self._places[older.id] = number
                self._runs.append(older)
            self.searched += 1
            yield self._runs[number]


class EarlierRuns:
    """Finds the results of test files in the runs before a run, newest first.

    A file is followed through its renames from run to run.
    """

    def __init__(
        self,
        store: Store,
        history: PathHistory,
        counts: RunFilter = every_run,
        recent: RecentRuns | None = None,
        kind: Callable[[Run], object] = every_run,
    ) -> None:
        """`history` has followed the files to the run before which `before` searches.

        Runs for which `counts` is false are left out. `recent` has those that are read already.
        What runs of one `kind` had is yielded again for those of another.
        """
        self._kind = kind
        self._store, self._history, self._counts, self._recent = store, history, counts, recent
        self._seen: dict[str, set[tuple[str, object]]] = {}
        """The leaves that newer runs had, with the kind of the run, by path."""
        self._searched: set[tuple[str, str, int, object]] = set()

    def before(
        self, run: Run | None, paths: Set[str], *, limit: int = RUNS_SEARCHED
    ) -> Iterator[EarlierEntries]:
        """Yield the results of these files in each earlier run; `paths` may shrink meanwhile.

        None stands for the workspace, before which all runs are.

        A leaf that a newer run had for the same path is left out.
        """
        recent = self._recent
        runs = recent.before(run, limit) if recent and run else None
        for earlier in runs or self._store.find_recent_runs(before=run, limit=limit):
            self._history.step(earlier.snapshot)
            if not self._counts(earlier):
                continue
            kind = self._kind(earlier)
            place = earlier.results, earlier.snapshot, self._history.renames, kind
            entries = {} if place in self._searched else self._find(earlier.results, paths)
            self._searched.add(place)
            fresh = dict[str, str]()
            for path, leaf in entries.items():
                seen = self._seen.setdefault(path, set())
                if (leaf, kind) not in seen:
                    seen.add((leaf, kind))
                    fresh[path] = leaf
            yield EarlierEntries(earlier, fresh)

    def forget(self, path: str) -> None:
        """Yield leaves of a file again that newer runs had: other rows of it are looked for now."""
        self._seen.pop(path, None)
        self._searched.clear()

    def _find(self, root: str, paths: Set[str]) -> dict[str, str]:
        """Return the entries of these files in a tree of results, by their current paths."""
        former = {path: self._history.name(path) for path in paths}
        names = {path: name for path, name in former.items() if name is not None}
        entries = find_entries(root, names.values(), self._store.load_nodes)
        return {path: entries[name] for path, name in names.items() if name in entries}


# --- the same cells in an earlier run, by the names of their rows


def find_cells(
    rows: RowResults,
    entries: Mapping[str, str],
    cells: Iterable[tuple[Result | PlacedCell, Iterable[str | None]]],
    counts: Callable[[Result], object] = bool,
) -> list[tuple[Result, Case] | None]:
    """Return the same cell as each of these in an earlier run, with its case there, if it has one.

    Each cell is given with the system prompts of its case.
    """
    listed = list(cells)
    index = index_cells(rows, entries, (cell for cell, _ in listed), counts)
    return [index.find(cell, prompts) for cell, prompts in listed]


def index_cells(
    rows: RowResults,
    entries: Mapping[str, str],
    cells: Iterable[Result | PlacedCell],
    counts: Callable[[Result], object] = bool,
) -> CellIndex:
    """Return the results of an earlier run among which the same cells as these are.

    `entries` are those of its results by the current paths of the files. Results for which `counts`
    is false are left out.
    """
    names: dict[str, set[str]] = {}
    for cell in cells:
        if cell.file in entries:
            names.setdefault(cell.file, set()).update((cell.key, cell.row))
    found = rows.find({path: entries[path] for path in names}, names)
    return CellIndex(
        (result, case)
        for path, of_file in found.items()
        for result, case in of_file.cells
        if counts(result) and not names[path].isdisjoint((result.key, result.row))
    )


def is_judged(result: Result) -> bool:
    """Return whether a result has a verdict."""
    return result.verdict is not None
