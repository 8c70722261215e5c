"""Finds the results of test files, and the same cells, in earlier runs, also under former paths."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Set
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias, TypeVar

from evalstore.comparison.comparison import CellIndex, PlacedCell
from evalstore.comparison.version_diff import Difference
from evalstore.core.batches import in_batches
from evalstore.core.runs import Run, RunCandidate, RunEvaluator, RunSources
from evalstore.core.values import RECORDED, Case, CaseFile, Json, Result
from evalstore.planning.cells import Cell
from evalstore.planning.path_history import (
    PathHistory,
    SourceChanges,
    as_replaced,
    compare_sources,
    names_use,
    pair_with_workspace,
)
from evalstore.planning.project import Project, VersionReader
from evalstore.store import Store
from evalstore.store.events import RUNS_SEARCHED
from evalstore.store.results import RowResults, SourcesReader
from evalstore.store.trees.tree_nodes import RowIndex, find_entries, read_tree
from evalstore.workspace.reader import read_sources

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


# --- the last results of cells before a run


Followed: TypeAlias = "tuple[Result | PlacedCell, Iterable[str | None]]"
"""A cell that is looked for, with the system prompts of its case."""
K = TypeVar("K")


class FollowedResult(NamedTuple):
    """A result whose cell can be looked for in earlier runs."""

    result: Result
    prompts: tuple[str | None, ...]
    """The system prompts of its case."""


def find_in_runs(
    rows: RowResults,
    runs: Iterable[EarlierEntries],
    cells: Mapping[K, Followed],
    paths: set[str],
    counts: Callable[[Result], object] = is_judged,
    leaves: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[tuple[Run, list[tuple[K, FollowedResult | None]]]]:
    """Yield for each earlier run what it has of the cells, until none of the `paths` has any left.

    The caller takes out of `cells` what it has found, or puts there what it looks for in the runs
    before. All cells in files of the run are listed, with None where no result counts. `leaves` are
    those from which the first cells are, by file: a run with the same has the same results.
    """
    first: Mapping[K, Any] = dict(cells) if leaves else {}
    for past, entries in runs:
        here = {key: cell for key, cell in cells.items() if cell[0].file in entries}
        equal = {path for path, leaf in entries.items() if leaf == leaves.get(path)}
        # By identity: what another leaf had is a new object, even if equal. One that is taken for
        # moved is only searched for again.
        unmoved = (key for key, cell in here.items() if cell is first.get(key))
        same = {key: first[key] for key in unmoved if here[key][0].file in equal}
        others = here.keys() - same.keys() if same else here
        found = find_cells(rows, entries, (here[key] for key in others), counts) if others else []
        results = (was and FollowedResult(was[0], was[1].prompts) for was in found)
        yield past, [*same.items(), *zip(others, results, strict=True)]
        paths &= {cell.file for cell, _ in cells.values()}
        if not paths:
            return


def find_newest(
    project: Project,
    cells: Iterable[tuple[K, Followed]],
    counts: Callable[[Result], object] = bool,
    files: Collection[str] | None = None,
) -> Iterator[tuple[K, Result]]:
    """Yield for cells of the workspace the newest result of the last runs that counts, if any.

    All cells are in these test files, if some are given.
    """
    nodes = project.reading.nodes
    cases = {node: project.reading.files[path] for path, node in nodes.items()}
    history = PathHistory(project.store, project.settings.paths["tests"], nodes, cases)
    paths, rows = set(nodes) if files is None else {*files}, RowResults(project.store)
    newer = EarlierRuns(project.store, history).before(None, paths)
    known: list[EarlierEntries] = []

    def runs() -> Iterator[EarlierEntries]:
        yield from known
        for earlier in newer:
            known.append(earlier)
            yield earlier

    for batch in in_batches(cells):
        left = dict(batch)
        here = {cell.file for cell, _ in left.values()}
        for _, found in find_in_runs(rows, runs(), left, here, counts):
            for key, was in found:
                if was:
                    del left[key]
                    yield key, was.result


class KnownCase(NamedTuple):
    """A case as it was in a run."""

    case: Case
    run: Run


_FEW_PROMPTS = 8
"""The most system prompts of a case that are searched without a set."""


class EarlierCases:
    """The cases of the newest runs, and the contents of their versions."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self._trees: dict[str, dict[str, str]] = {}
        self._pairs: dict[str, dict[str, str]] = {}
        """The path that each test file had, by snapshot."""
        self._files: dict[str, CaseFile] = {}
        """By node."""
        self._rows: dict[str, RowIndex] = {}
        """By node, of files that were searched."""
        self._expected: dict[str, list[Case]] = {}
        """By test file, of the batch that is searched now."""
        self.versions = VersionReader(project.store, project.reading.contents, project.contents)
        self.find_version = self.versions.find
        self._earlier_sources = SourcesReader(project.store)
        self._sources: RunSources | None = None
        """The digests of the workspace, once they are needed."""
        self._prompts: dict[int, tuple[Case, Collection[str | None]]] = {}
        """By the `id()` of a case with many: the case, which keeps the id in use, and its
        prompts."""

    @cached_property
    def runs(self) -> list[Run]:
        """Return the newest runs, newest first."""
        return list(self.project.store.find_recent_runs())

    @cached_property
    def candidates(self) -> set[str]:
        """Return the ids of the candidates that took part in them."""
        return {each.id for run in self.runs for each in run.candidates}

    def _tree(self, root: str) -> dict[str, str]:
        """Return the entries of a snapshot."""
        if root not in self._trees:
            self._trees[root] = read_tree(root, self.project.store.load_nodes)
            missing = set(self._trees[root].values()) - self._files.keys()
            self._files |= self.project.store.find_case_files(list(missing))
        return self._trees[root]

    def expect(self, cells: Iterable[Cell]) -> None:
        """Prepare to find the cases of these cells, and forget those found before."""
        self._rows.clear()
        self._expected.clear()
        for cell in cells:
            self._expected.setdefault(cell.file, []).append(cell.case)

    def find(self, cell: Cell) -> Iterator[KnownCase]:
        """Yield the versions of a case in earlier runs, newest first."""
        return self._find(cell.file, cell.case)

    def _find(self, file: str, case: Case) -> Iterator[KnownCase]:
        """Yield them; runs with an equal test file and the same models are one."""
        seen: set[tuple[str, tuple[RunCandidate, ...], tuple[RunEvaluator, ...]]] = set()
        for run in self.runs:
            path = self.path_in(run.snapshot, file)
            node = self._tree(run.snapshot)[path] if path else None
            if node is None or (node, run.candidates, run.evaluators) in seen:
                continue
            seen.add((node, run.candidates, run.evaluators))
            rows = self._rows_of(node, file)
            old = rows.find(case) if rows else None
            if old:
                yield KnownCase(old, run)

    def has(self, file: str, case: Case) -> bool:
        """Return whether an earlier run had a case of a file as it is now."""
        return any(
            known.case.evaluation == case.evaluation
            and known.case.recorded == case.recorded
            and set(case.tests) == set(known.case.tests)
            and set(case.prompts) == set(known.case.prompts)
            for known in self._find(file, case)
        )

    def _rows_of(self, node: str, file: str) -> RowIndex | None:
        """Return the rows of a stored test file; None when the store does not have it."""
        if node not in self._rows and node in self._files:
            self._rows[node] = RowIndex(self._files[node], self.project.store)
            self._rows[node].expect(self._expected.get(file, ()))
        return self._rows.get(node)

    def path_in(self, root: str, file: str) -> str | None:
        """Return the path of a test file in a snapshot; None when it is not there."""
        if root not in self._pairs:
            self._pairs[root] = pair_with_workspace(self.project, self._tree(root), self._files)
        return self._pairs[root].get(file)

    def with_true_names(
        self, differences: Iterable[Difference], known: KnownCase, file: str
    ) -> list[Difference]:
        """Return differences from an earlier run; what was not edited is not named as if it was."""
        listed = list(differences)
        if not any(map(names_use, listed)):
            return listed
        changes = self.changes_since(known, file)
        return [as_replaced(difference, changes) for difference in listed]

    def changes_since(self, known: KnownCase, file: str) -> SourceChanges | None:
        """Return whose bytes differ from those of an earlier run; None where it is not known."""
        was = self._earlier_sources.find(known.run)
        if was and self._sources is None:
            self._sources = read_sources(self.project.workspace, self.project.reading)
        path = self.path_in(known.run.snapshot, file)
        return compare_sources(was, self._sources, file, path)

    def prompts_of(self, case: Case) -> Collection[str | None]:
        """Return the system prompts of an earlier case, as a set when they are many."""
        if len(case.prompts) <= _FEW_PROMPTS:
            return case.prompts
        if id(case) not in self._prompts:
            self._prompts[id(case)] = case, frozenset(case.prompts)
        return self._prompts[id(case)][1]

    def asked_otherwise(self, known: KnownCase, cell: Cell) -> tuple[str, ...]:
        """Return which parts of what a cell asks are not those of an earlier run."""
        old, case = known.case, cell.case
        model = known.run.find_candidate(cell.candidate.id)
        temperature, now = case.temperature, case.temperature
        if model and not case.recorded:
            temperature = model.temperature if old.temperature is None else old.temperature
            now = cell.candidate.temperature if case.temperature is None else case.temperature
        parts = {
            "test": set(old.tests) != set(case.tests) or old.seed != case.seed,
            "system prompt": cell.prompt not in self.prompts_of(old),
            "recorded answer": old.recorded != case.recorded,
            f"model {cell.candidate.id}": bool(
                model and not case.recorded and model.model != cell.candidate.model
            ),
            "temperature": temperature != now,
        }
        return tuple(part for part, differs in parts.items() if differs)

    def has_asked(self, known: KnownCase, cell: Cell) -> bool:
        """Return whether an earlier run asked what a cell asks."""
        return takes_part(known, cell) and not self.asked_otherwise(known, cell)

    def evaluators_of(self, known: KnownCase) -> list[tuple[str, Json]]:
        """Return the evaluators of an earlier run for its case: the name and content of each."""
        stored = [
            (each.id, self.find_version("evaluator", each.evaluator) or {})
            for each in known.run.evaluators
        ]
        return [
            (name, {**content, "prompt": prompt})
            for name, content in stored
            for prompt in known.case.judge_prompts or (content.get("prompt"),)
        ]


def takes_part(known: KnownCase, cell: Cell) -> bool:
    """Return whether the candidate of a cell took part in an earlier run."""
    return cell.candidate.id == RECORDED or known.run.find_candidate(cell.candidate.id) is not None
