"""One of the two sides of a comparison, filled with the verdicts that it lacks.

A run lacks those of cases that its selection left out, and of pending ones. They are those of the
runs before it. Of many such results only columns of numbers are in memory.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import chain, compress

from evalstore.comparison.comparison import EqualPart, PairedCases
from evalstore.comparison.pair_groups import GrowingResults, PlacedResults, digests_of
from evalstore.core.batches import in_batches
from evalstore.core.hashing import DigestSet, digest_of_value
from evalstore.core.runs import Run, RunSources
from evalstore.core.values import Case, CaseFile, Result
from evalstore.files.temporary_list import PackedSequence, TemporaryMapping, keep_values
from evalstore.planning.earlier_results import EarlierEntries, find_cells
from evalstore.planning.options import is_partial
from evalstore.planning.path_history import SourceChanges, compare_sources
from evalstore.planning.selection import Selection
from evalstore.results.edits.edits import leave_out_same, restore_case
from evalstore.results.names import PromptPlace
from evalstore.store import Store
from evalstore.store.results import RowResults, SourcesReader

OTHER = "\0"
"""Suffix for a file that is gone while another file has its path; no real path contains it.

After a node, the file whose older cases stand in it follows.
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
    earlier: Mapping[Result, str] = field(default_factory=dict)
    """Results of earlier runs that are filled in -> the id of the run."""
    earlier_runs: Mapping[str, Run] = field(default_factory=dict)
    """Those runs, by id."""
    sources: RunSources | None = None
    """The digests of its test files and of what they use."""
    former: Mapping[str, str] = field(default_factory=dict)
    """Its paths of test files whose path is another one now."""
    earlier_sources: Mapping[str, RunSources | None] = field(default_factory=dict)
    """Test files with versions of earlier runs -> the digests of the run with it."""

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


def fill_older_side(
    store: Store,
    was: Side,
    now: Side,
    covers: Callable[[str], bool],
    before: Callable[[set[str]], Iterator[EarlierEntries]],
) -> Side:
    """Return the older side, a run, with the verdicts that it lacks, from the runs before it.

    Only judged results are filled in: of cases that the newer side has, and of removed cases that
    the selection of the older run left out. `covers` tells whether a test file is selected, and
    `before` returns the results of test files in earlier runs. Unlike `find_in_runs`, run by run
    for all cells: which version of a case counts depends on the order of the runs.
    """
    missing = _find_missing(was, now, covers)
    filler = _Filler(store, was, now, covers)
    paths = {now.results.file_name(number) for number in missing} | filler.removed.keys()
    for past, entries in before(paths) if paths else ():
        missing = filler.fill(missing, past, entries) if entries else missing
        if not is_partial(past):
            filler.removed.clear()
        paths &= {now.results.file_name(number) for number in missing} | filler.removed.keys()
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

    def __init__(self, store: Store, was: Side, now: Side, covers: Callable[[str], bool]) -> None:
        self._store, self._was, self._now = store, was, now
        self._rows = RowResults(store)
        self.removed = {
            path: names
            for path, node in (was.nodes.items() if was.selection else ())
            if now.nodes.get(path) != node and covers(path) and (names := self._find_removed(path))
        }
        """The names of cases that the newer side lacks, with their system prompts, by test file.

        Nothing is left after a run that left out no case.
        """
        self._known = set(chain.from_iterable(was.results.places)) if self.removed else set[int]()
        """The places that have a result."""
        self._filled = GrowingResults()
        self._runs, self._past = TemporaryMapping[Result, str](), dict[str, Run]()
        """The id of the run of each of these; those runs, by id."""
        self._whole: dict[str, str] = {}
        """Files of which the older side has no results -> the node of their results elsewhere."""
        self._sources: dict[str, RunSources | None] = {}
        self._find_sources = SourcesReader(store).find
        self._older: dict[str, PackedSequence[Case]] = {}
        """The cases of the results that are filled into files with results of their own.

        Of several with one key the first counts.
        """
        self._versions = DigestSet()
        """The files and keys of these."""

    def _find_removed(self, path: str) -> dict[str, tuple[str | None, ...]]:
        was, node = self._was.files[self._was.nodes[path]], self._now.nodes.get(path)
        cases: Iterable[Case] = was.cases
        if node is not None:
            paired = PairedCases(*leave_out_same(was, self._now.files[node], self._store))
            deque(paired, 0)
            cases = paired.gone()
        return {name: case.prompts for case in cases for name in (case.key, case.row)}

    def _add_removed(self, past: Run, entries: Mapping[str, str], same: set[str]) -> None:
        """Add the results that a run has of removed cases."""
        here = {path: entries[path] for path in self.removed if path in entries}
        models = self._was.models
        for path, found in self._rows.find(here, self.removed).items():
            for result, case in found.cells:
                prompts = self.removed[path].get(case.key) or self.removed[path].get(case.row, ())
                is_asked = result.prompt_number < len(prompts) and (
                    not models or result.model in models
                )
                places = digests_of(result)
                if is_asked and not result.is_missing and self._known.isdisjoint(places):
                    self._known.update(places)
                    self._add(result, case, past, entries, same)

    def fill(self, missing: Sequence[int], past: Run, entries: Mapping[str, str]) -> array[int]:
        """Add those of these results that a run has; returns the numbers of the others."""
        own, nodes = self._store.load_leaves(entries.values()), self._was.nodes
        same = {path for path, leaf in entries.items() if own[leaf]["cases"] == nodes.get(path)}
        """Files whose cases are those that the older side has."""
        left = array("l")
        for numbers in in_batches(missing):
            results = self._now.results.read(numbers)
            cells = self._with_prompts(results)
            found = find_cells(self._rows, entries, cells, lambda result: not result.is_missing)
            for number, earlier in zip(numbers, found, strict=True):
                if earlier:
                    self._add(*earlier, past, entries, same)
                else:
                    left.append(number)
        self._add_removed(past, entries, same)
        return left

    def _with_prompts(
        self, results: Sequence[Result]
    ) -> Iterator[tuple[Result, Iterable[str | None]]]:
        """Yield results of the newer side with all system prompts of their cases.

        These are read when the first of them are, as few results need them.
        """

        @cache
        def by_case() -> dict[tuple[str, str], tuple[str | None, ...]]:
            keys: dict[str, set[str]] = {}
            for result in results:
                keys.setdefault(result.file, set()).add(result.key)
            files = {path: self._now.files[self._now.nodes[path]] for path in keys}
            return {
                (path, case.key): case.prompts
                for path, names in keys.items()
                for case in self._store.find_named_cases(files[path], names)
            }

        def prompts_of(result: Result) -> Iterator[str | None]:
            yield from by_case().get((result.file, result.key)) or (result.prompt,)

        return ((result, prompts_of(result)) for result in results)

    def _add(
        self, result: Result, case: Case, past: Run, entries: Mapping[str, str], same: set[str]
    ) -> None:
        """Add a result of an earlier run, with its case unless its file is among the `same`."""
        path = result.file
        if result not in self._runs:
            self._filled.append(result)
        self._past[past.id] = past
        self._runs.update({result: past.id})
        if path not in self._was.with_results:
            if path not in self._whole:  # it has the cases that the run has of the file
                self._whole[path] = entries[path]
                self._sources[path] = self._find_sources(past)
        elif path not in same:
            if self._versions.add(digest_of_value((path, case.key))):
                older = self._older.setdefault(path, PackedSequence((), tuple, restore_case))
                older.extend([case])
            self._sources[path] = self._find_sources(past)  # those of the oldest run in the end

    def finish(self) -> Side:
        """Return the older side with all that was added."""
        was = self._was
        if not self._filled:
            return was
        roots = self._store.load_leaves(self._whole.values())
        nodes = {path: roots[leaf]["cases"] for path, leaf in self._whole.items()}
        files = self._store.load_case_files(nodes.values())
        for path in self._older.keys() & was.nodes.keys():
            if mixed := mix_cases(was.files[was.nodes[path]], self._older[path]):
                nodes[path] = f"{was.nodes[path]}{OTHER}{path}"
                files[nodes[path]] = mixed
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
            earlier=self._runs,
            earlier_runs=self._past,
            earlier_sources=self._sources,
        )


def mix_cases(file: CaseFile, versions: Sequence[Case]) -> CaseFile | None:
    """Return a file with these versions of its cases; None if it has no others itself.

    They are found by their keys, of which each has another one, else by the labels of their rows.
    """
    older = CaseFile(versions)
    if all(then in (None, case) for then, case in PairedCases(older, file)):
        return None
    mixed = (then or case for then, case in PairedCases(older, file))
    return replace(file, cases=keep_values(mixed, tuple, restore_case))
