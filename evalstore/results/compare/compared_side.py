"""One of the two sides of a comparison, filled with the verdicts that it lacks.

A run lacks those of cases that its selection left out, and of pending ones. They are those of the
runs before it. Of many such results only columns of numbers are in memory.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from itertools import chain, compress, islice

from evalstore.comparison.comparison import EqualPart
from evalstore.comparison.pair_groups import PlacedResults, digests_of
from evalstore.core.batches import in_batches
from evalstore.core.hashing import DigestMap, digest_of_value
from evalstore.core.results import Result
from evalstore.core.runs import Run, RunSources
from evalstore.core.values import CaseFile
from evalstore.planning.earlier_results import EarlierEntries, find_cells
from evalstore.planning.path_history import SourceChanges, compare_sources
from evalstore.planning.selection import Selection
from evalstore.results.growing_results import GrowingResults
from evalstore.results.names import PromptPlace
from evalstore.store import Store
from evalstore.store.results import RowResults, SourcesReader
from evalstore.store.trees.tree_nodes import CaseFinder

OTHER = "\0"
"""Suffix for a file that is gone while another file has its path; no real path contains it.
"""


@dataclass
class EqualResults:
    """Results that both sides have, in the same places, which are counted and not read."""

    leaves: Mapping[str, Collection[str]] = field(default_factory=dict)
    """Test file -> the nodes that have them."""
    parts: list[EqualPart] = field(default_factory=list)
    """Their sums."""
    prompts: list[PromptPlace] = field(default_factory=list)
    """The system prompts of files whose cases have several."""


@dataclass
class Side:
    """One of the two sides."""

    name: str
    """The id of a run, or `workspace`."""
    nodes: dict[str, str]
    """The snapshot: test file -> leaf."""
    files: dict[str, CaseFile]
    models: set[str] | None
    """The candidates; None when the run was restricted to some of them."""
    entries: Mapping[str, str] = field(default_factory=dict)
    """The results of a run: test file -> leaf."""
    results: PlacedResults = field(default_factory=PlacedResults)
    """The results, but for the equal ones."""
    equal: EqualResults = field(default_factory=EqualResults)
    selection: str = ""
    """The selection of a run of some of the cases; else empty."""
    chosen: Selection | None = None
    """The paths, tags and names by which a run has chosen cases; None if by none of these."""
    by_verdict: bool = False
    """Whether a run has chosen its cases by their verdicts."""
    rule: str = ""
    """The rule by which several votes make a verdict."""
    left_out: frozenset[str] = frozenset()
    """Candidates of the settings that lack what all of the cases need."""
    named: frozenset[str] = frozenset()
    """Candidates of a run that only `-m` named."""
    earlier: Mapping[Result, str] = field(default_factory=dict)
    """Results of earlier runs that are filled in -> the id of the run."""
    earlier_runs: Mapping[str, Run] = field(default_factory=dict)
    """Those runs, by id."""
    sources: RunSources | None = None
    """The digests of its test files and of what they use."""
    former: Mapping[str, str] = field(default_factory=dict)
    """Its paths of test files whose path is another one now."""
    earlier_sources: Mapping[str, RunSources | None] = field(default_factory=dict)
    """Test files whose cases are those of an earlier run -> the digests of this run."""

    @property
    def with_results(self) -> Set[str]:
        """Return the test files of which it has results."""
        return self.results.file_names.keys() | self.equal.leaves.keys()

    def compare_sources(self, now: Side, path: str) -> SourceChanges | None:
        """Return whose bytes differ in a newer version of a test file; None: it is not known."""
        if path not in self.earlier_sources:
            return compare_sources(self.sources, now.sources, path, self.former.get(path))
        sources = self.earlier_sources[path]
        is_known = sources is not None and path in sources.tests
        return compare_sources(sources if is_known else None, now.sources, path)


class EarlierResults(Mapping[Result, str]):
    """The ids of the runs that have results of earlier runs, by the results."""

    def __init__(self, results: PlacedResults, first: int, runs: DigestMap, ids: list[str]) -> None:
        """They are the `results` from number `first` on.

        `runs` has the number of a run among the `ids` by the digests of its results.
        """
        self._results, self._first, self._runs, self._ids = results, first, runs, ids

    def __len__(self) -> int:
        return len(self._results) - self._first

    def __iter__(self) -> Iterator[Result]:
        return islice(self._results, self._first, None)

    def __getitem__(self, result: Result) -> str:
        number = self._runs.get(digest_of_value(result))
        if number is None:
            raise KeyError(result)
        return self._ids[number]

    def __reduce__(self) -> tuple[type[dict[Result, str]], tuple[dict[Result, str]]]:
        return dict, ({**self},)


def fill_older_side(
    store: Store,
    was: Side,
    now: Side,
    covers: Callable[[str], bool],
    before: Callable[[set[str]], Iterator[EarlierEntries]],
) -> Side:
    """Return the older side, a run, with the verdicts that it lacks, from the runs before it.

    Only judged results of cases that the newer side has are filled in. `covers` tells whether a
    test file is selected, and `before` returns the results of test files in earlier runs. Unlike
    `find_in_runs`, run by run for all cells: of a file that the older side lacks, the newest run
    with a result says which cases it had.
    """
    missing = _find_missing(was, now, covers)
    filler = _Filler(store, was, now)
    paths = {now.results.file_name(number) for number in missing}
    for past, entries in before(paths) if paths else ():
        missing = filler.fill(missing, past, entries) if entries else missing
        paths &= {now.results.file_name(number) for number in missing}
        if not paths:
            break
    return filler.finish()


def _find_missing(was: Side, now: Side, covers: Callable[[str], bool]) -> array[int]:
    """Return the numbers of the results of the newer side that the older one lacks."""
    pending, judged = (was.results.places_where(missing=missing) for missing in (True, False))
    results, is_covered = now.results, cache(covers)
    return array(
        "l",
        (
            number
            for number in range(len(results))
            if is_covered(results.file_name(number))
            and not results.has_place(number, judged)
            and (was.selection or results.has_place(number, pending))
        ),
    )


class _Filler:
    """Collects results of earlier runs, and the cases that they are about."""

    def __init__(self, store: Store, was: Side, now: Side) -> None:
        self._store, self._was, self._now = store, was, now
        self._rows, self._finder = RowResults(store), CaseFinder(store)
        self._filled = GrowingResults()
        self._runs, self._past = DigestMap(), dict[str, Run]()
        """The number of the run of each of these, by its digest; those runs, by id."""
        self._whole: dict[str, str] = {}
        """Files of which the older side has no results -> the node of their results elsewhere."""
        self._sources: dict[str, RunSources | None] = {}
        """The digests of the runs that have them."""

    def fill(self, missing: Sequence[int], past: Run, entries: Mapping[str, str]) -> array[int]:
        """Add those of these results that a run has; returns the numbers of the others."""
        left = array("l")
        for numbers in in_batches(missing):
            results = self._now.results.read(numbers)
            prompts = SidePrompts(self._now, self._finder, results)
            cells = [(each, PromptsOfCase(prompts, each)) for each in results]
            found = find_cells(self._rows, entries, cells, lambda result: not result.is_missing)
            for number, earlier in zip(numbers, found, strict=True):
                if earlier:
                    self._add(earlier[0], past, entries)
                else:
                    left.append(number)
        return left

    def _add(self, result: Result, past: Run, entries: Mapping[str, str]) -> None:
        """Add a result of an earlier run."""
        digest, path = digest_of_value(result), result.file
        if self._runs.get(digest) is None:
            self._filled.append(result)
        self._past[past.id] = past
        self._runs.put(digest, len(self._past) - 1)
        if path not in self._was.with_results and path not in self._whole:
            self._whole[path] = entries[path]  # it has the cases that the run has of the file
            self._sources[path] = SourcesReader(self._store).find(past)

    def finish(self) -> Side:
        """Return the older side with all that was added."""
        was = self._was
        if not self._filled:
            return was
        roots = self._store.load_leaves(self._whole.values())
        nodes = {path: roots[leaf]["cases"] for path, leaf in self._whole.items()}
        files = self._store.load_case_files(nodes.values())
        pending = was.results.places_where(missing=True)
        known = pending.intersection(
            place for result in (self._filled if pending else ()) for place in digests_of(result)
        )
        kept = [
            not (is_missing and was.results.has_place(number, known))
            for number, is_missing in enumerate(was.results.missing)
        ]
        results = PlacedResults(chain(compress(was.results, kept), self._filled))
        return replace(
            was,
            results=results,
            nodes=was.nodes | nodes,
            files=was.files | files,
            earlier=EarlierResults(results, sum(kept), self._runs, [*self._past]),
            earlier_runs=self._past,
            earlier_sources=self._sources,
        )


@dataclass
class SidePrompts:
    """The system prompts of the cases of some results of a side, which few of them need."""

    side: Side
    finder: CaseFinder
    results: list[Result]

    @cached_property
    def by_case(self) -> dict[tuple[str, str], tuple[str | None, ...]]:
        """Return all system prompts of each case, by its test file and its key."""
        keys: dict[str, set[str]] = {}
        for result in self.results:
            keys.setdefault(result.file, set()).add(result.key)
        return {
            (file, case.key): case.prompts
            for file, names in keys.items()
            for case in self.finder.find(self.side.files[self.side.nodes[file]], names)
        }


@dataclass(slots=True)
class PromptsOfCase:
    """Those of the case of one of the results."""

    prompts: SidePrompts
    result: Result

    def __iter__(self) -> Iterator[str | None]:
        place = self.result.file, self.result.key
        return iter(self.prompts.by_case.get(place) or (self.result.prompt,))
