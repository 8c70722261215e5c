"""Fills in the verdicts that the older side of a comparison lacks, from the runs before it.

A run lacks those of cases that its selection left out, and of pending ones. Of many such
results only columns of numbers are in memory.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import chain, islice
from typing import TYPE_CHECKING

from evalstore.operations.compared_side import OTHER
from evalstore.operations.mixed_cases import CaseVersions, FiledCases
from evalstore.reports.cell_places import is_of_cell
from evalstore.reports.placed_results import PLACES, PlacedResults, digests_of
from evalstore.results import Result
from evalstore.store.results import iterate_entries
from evalstore.store.run_sources import SourcesReader
from evalstore.workspace.digest_set import DigestMap, DigestSet, digest_of_value

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from evalstore.operations.compared_side import Side
    from evalstore.operations.earlier_results import EarlierEntries
    from evalstore.runs import Run, RunSources
    from evalstore.store import Store
    from evalstore.values import Case

_AT_ONCE = 2_000
"""The results that are read together."""
_DIGESTS = 1 << 64
"""How many digests a `DigestSet` can tell apart."""
_NONE = -1
"""The number of a result that is not found."""


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
    test file is selected, and `before` returns the results of test files in earlier runs.
    """
    missing = _find_missing(was, now, covers)
    filler = _Filler(store, was, now)
    paths = {now.results.file_name(number) for number in missing}
    for past, entries in before(paths) if missing else ():
        missing = filler.fill(missing, past, entries) if entries else missing
        paths &= {now.results.file_name(number) for number in missing}
        if not missing:
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
        self._prompts = _Prompts(now)
        self._filled: list[tuple[PlacedResults, array[int]]] = []
        """Results of earlier runs, and the numbers of those that are filled in."""
        self._runs, self._ids = DigestMap(), list[str]()
        """The number of the run of each of these, by its digest; the ids of the runs."""
        self._whole: dict[str, str] = {}
        """Files of which the older side has no results -> the node of their results elsewhere."""
        self._sources: dict[str, RunSources | None] = {}
        self._find_sources = SourcesReader(store).find
        self._older: dict[str, CaseVersions] = {}
        """The cases of the results that are filled into files with results of their own."""

    def fill(self, missing: Sequence[int], past: Run, entries: Mapping[str, str]) -> array[int]:
        """Add those of these results that a run has; returns the numbers of the others."""
        own, nodes = self._store.load_leaves(entries.values()), self._was.nodes
        same = {path for path, leaf in entries.items() if own[leaf]["cases"] == nodes.get(path)}
        """Files whose cases are those that the older side has."""
        results, own_results = self._now.results, self._was.results.file_names.keys()
        places = DigestSet()
        for column in results.places:
            for number in missing:
                places.add(column[number] % _DIGESTS)
        judged = _JudgedResults(
            iterate_entries(self._store, entries),
            places,
            same | (entries.keys() - own_results),
        )
        found = judged.find(results, missing, self._prompts)
        filled = array("l")
        for number in found:
            if number == _NONE:
                continue
            if not self._runs.replace(judged.digests[number], len(self._ids)):
                self._runs.add(judged.digests[number], len(self._ids))
                filled.append(number)
            path = judged.results.file_name(number)
            if path not in own_results:
                self._take_whole(path, past, entries)
            elif (case := judged.cases_of[number]) != _NONE:
                self._older.setdefault(path, CaseVersions()).add(judged.cases, case)
        self._ids.append(past.id)
        if filled:
            self._filled.append((judged.results, filled))
        pairs = zip(missing, found, strict=True)
        return array("l", (number for number, partner in pairs if partner == _NONE))

    def _take_whole(self, path: str, past: Run, entries: Mapping[str, str]) -> None:
        """Note that the older side has the cases that a run has of a file."""
        if path not in self._whole:
            self._whole[path] = entries[path]
            self._sources[path] = self._find_sources(past)

    def finish(self) -> Side:
        """Return the older side with all that was added."""
        was = self._was
        if not self._filled:
            return was
        roots = self._store.load_leaves(self._whole.values())
        nodes = {path: roots[leaf]["cases"] for path, leaf in self._whole.items()}
        files = self._store.load_case_files(nodes.values())
        for path in self._older.keys() & was.nodes.keys():
            mixed = self._older[path].mix_into(was.files[was.nodes[path]])
            if mixed:
                nodes[path] = f"{was.nodes[path]}{OTHER}{path}"
                files[nodes[path]] = mixed
                self._sources[path] = None
        pending = was.results.places_where(missing=True)
        known = pending.intersection(
            column[number]
            for results, numbers in (self._filled if pending else ())
            for column in results.places
            for number in numbers
        )
        own = array(
            "l",
            (
                number
                for number, is_missing in enumerate(was.results.missing)
                if not (is_missing and was.results.has_place(number, known))
            ),
        )
        results = PlacedResults(_read_all([(was.results, own), *self._filled]))
        return replace(
            was,
            results=results,
            nodes=was.nodes | nodes,
            files=was.files | files,
            earlier=EarlierResults(results, len(own), self._runs, self._ids),
            earlier_sources={
                path: of_run
                for path, of_run in self._sources.items()
                if nodes[path] != was.nodes.get(path)
            },
        )


def _read_all(lists: Iterable[tuple[PlacedResults, Sequence[int]]]) -> Iterator[Result]:
    """Yield the results with the numbers of each list."""
    for results, numbers in lists:
        for start in range(0, len(numbers), _AT_ONCE):
            yield from results.read(numbers[start : start + _AT_ONCE])


class _JudgedResults:
    """The results with a verdict that an earlier run has at some places, with their cases."""

    def __init__(
        self,
        batches: Iterable[Sequence[tuple[Result, Case]]],
        places: DigestSet,
        without_cases: Collection[str],
    ) -> None:
        """`places` are their digests; the cases of the files `without_cases` are not kept."""
        self.cases = FiledCases()
        self.cases_of = array("l")
        """The number of the case of each result."""
        self.digests = array("Q")
        """That of each result."""
        self.results = PlacedResults(self._choose(batches, places, without_cases))

    def _choose(
        self,
        batches: Iterable[Sequence[tuple[Result, Case]]],
        places: DigestSet,
        without_cases: Collection[str],
    ) -> Iterator[Result]:
        for result, case in chain.from_iterable(batches):
            if result.is_missing or not any(
                place % _DIGESTS in places for place in digests_of(result)
            ):
                continue
            if result.file in without_cases:
                self.cases_of.append(_NONE)
            else:
                self.cases_of.append(len(self.cases))
                self.cases.append(case)
            self.digests.append(digest_of_value(result))
            yield result

    def find(self, results: PlacedResults, numbers: Sequence[int], prompts: _Prompts) -> array[int]:
        """Return the number of the same cell as each of these results, by the rules of `compare`.

        Of several at a place the last one counts.
        """
        found = array("l", [_NONE]) * len(numbers)
        left: Sequence[int] = range(len(numbers))
        for stage, (_, prompt) in enumerate(PLACES):
            known = {place: number for number, place in enumerate(self.results.places[stage])}
            column = results.places[stage]
            met = array("l", (each for each in left if column[numbers[each]] in known))
            partners = array("l", (known[column[numbers[each]]] for each in met))
            del known
            for start in range(0, len(met), _AT_ONCE):
                some = slice(start, start + _AT_ONCE)
                is_same = [True] * len(met[some])
                if prompt == "prompt_number":
                    own = results.read([numbers[each] for each in met[some]])
                    others = self.results.read(partners[some])
                    is_same = [*map(prompts.is_of_cell, others, own)]
                for each, partner, same in zip(met[some], partners[some], is_same, strict=True):
                    found[each] = partner if same else _NONE
            left = array("l", (each for each in left if found[each] == _NONE))
        return found


class _Prompts:
    """The system prompts of the cases of a side; each file is read once."""

    def __init__(self, side: Side) -> None:
        self._side = side
        self._known: dict[str, DigestMap] = {}
        """The number of the system prompts of each case, by the digest of its key."""
        self._distinct: dict[tuple[str | None, ...], int] = {}
        self._listed: list[tuple[str | None, ...]] = []

    def is_of_cell(self, earlier: Result, result: Result) -> bool:
        """Return whether an earlier result, found by its number of the prompt, is of the cell."""
        return is_of_cell(earlier.prompt, result.prompt, self._of(result))

    def _of(self, result: Result) -> tuple[str | None, ...]:
        """Return all system prompts of the case of a result."""
        if result.file not in self._known:
            known = self._known[result.file] = DigestMap()
            for case in self._side.files[self._side.nodes[result.file]].cases:
                number = self._distinct.setdefault(case.prompts, len(self._distinct))
                known.put(digest_of_value(case.key), number)
            self._listed = [*self._distinct]
        of_case = self._known[result.file].get(digest_of_value(result.key))
        return (result.prompt,) if of_case is None else self._listed[of_case]
