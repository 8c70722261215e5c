"""Finds the regressions of a run: cases that do not pass although they have passed before."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby, islice
from typing import TYPE_CHECKING, Any, NamedTuple

from evalstore.files.filed_sequence import keep_values
from evalstore.files.temporary_list import SortedValues, TemporaryList
from evalstore.operations.diff_sides import compare_sides, follow_renames, run_side
from evalstore.operations.earlier_results import EarlierRuns, every_run
from evalstore.planning.path_history import PathHistory
from evalstore.planning.selection import Selection
from evalstore.reports.comparison import CellIndex, sort_pairs
from evalstore.reports.placed_results import unpack_result
from evalstore.store.results import iterate_cases
from evalstore.store.row_results import RowResults

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from evalstore.operations.baseline import Baseline
    from evalstore.planning.project import Project
    from evalstore.results import Result
    from evalstore.runs import Run
    from evalstore.store import Store
    from evalstore.values import Case, Json

_AT_ONCE = 200
"""The failures that are looked for together in an earlier run."""


class Regression(NamedTuple):
    """A result that does not pass, and the earlier run in which its case passed."""

    result: Result
    passed_in: str
    """The id of the run."""

    def document(self) -> Json:
        """Return the place of the result and the run as plain values."""
        result = self.result
        return {
            "file": result.file,
            "row": result.row,
            "prompt": result.prompt,
            "model": result.model,
            "passedIn": self.passed_in,
        }


class _Place(NamedTuple):
    """By what a result is found in an older run; these are the first fields of a result."""

    file: str
    row: str
    key: str
    prompt_number: int
    prompt: str | None
    model: str


class _Failure(NamedTuple):
    """A result that does not pass, and its case in the last run that was searched."""

    result: Result
    then: _Place
    """Its place in the newest run searched so far that judged the case."""
    prompts: tuple[str | None, ...]
    """The system prompts that the case had in that run."""


def _failure(result: Result, then: Result, case: Case) -> _Failure:
    return _Failure(result, _Place._make(then[: len(_Place._fields)]), case.prompts)


class _Chunk(NamedTuple):
    """Some failures of a file, which are filed together."""

    number: int
    failures: list[_Failure]


def find_regressions(
    store: Store, folder: str, run: Run, baseline: Baseline | None = None
) -> Sequence[Regression]:
    """Return the results of a run that do not pass and whose cases have passed before.

    Without a baseline a pass in any earlier run counts, so a case remains a regression until it
    passes again: files and rows are followed from run to run, however old, as a gate must not
    forget. With a baseline they are the results that broke in the comparison of the two runs.
    `folder` is that of the test files. Very many regressions are in a temporary file.
    """
    if baseline:
        return keep_regressions(_find_broken(store, folder, run, baseline))
    runs = EarlierRuns(store, PathHistory(store, folder, run.snapshot, {}))
    found = _search(store, runs, run, _Waiting(_find_failures(store, run)))
    ordered = SortedValues()
    ordered.add(
        [result.file, result.row, number, tuple(result), id]
        for number, (result, id) in enumerate(found)
    )
    return keep_regressions(_unpack(value[-2:]) for value in ordered)


def keep_regressions(regressions: Iterable[Regression]) -> Sequence[Regression]:
    """Return regressions as a list, or if there are very many in a temporary file."""
    return keep_values(regressions, _pack, _unpack)


def without_files(
    regressions: Sequence[Regression], is_left_out: Callable[[str], bool]
) -> Sequence[Regression]:
    """Return regressions without those of some test files."""
    files = {regression.result.file for regression in regressions}
    left_out = {file for file in files if is_left_out(file)}
    if not left_out:
        return regressions
    return keep_regressions(each for each in regressions if each.result.file not in left_out)


def _pack(regression: Regression) -> tuple[Any, ...]:
    return tuple(regression.result), regression.passed_in


def _unpack(values: Sequence[Any]) -> Regression:
    result, passed_in = values
    return Regression(unpack_result(result), passed_in)


def has_case_without_verdict(
    project: Project, cells: Iterable[tuple[Result, Case]], baseline: Baseline | None = None
) -> bool:
    """Return whether an older run, which the store lacks, may tell what became of these cases.

    Without a baseline that is so unless each has passed in a run of the store; with one, unless
    each has a verdict in it or in a run before it. The cells are those of the workspace.
    """
    store, reading = project.store, project.reading
    history = PathHistory(store, project.settings.paths["tests"], reading.nodes, reading.files)
    newest = baseline.run if baseline else next(store.find_recent_runs(limit=1), None)
    if newest is None:
        return True
    waiting = _Waiting(_failure(result, result, case) for result, case in cells)
    after = replace(newest, started=newest.started + 1, id="0" * 32)
    runs = EarlierRuns(store, history, baseline.counts if baseline else every_run)
    for _ in _search(store, runs, after, waiting, any_verdict=baseline is not None):
        pass
    return bool(waiting.files)


class _Waiting:
    """The failures that are still looked for, in a temporary file, by test file."""

    def __init__(self, failures: Iterable[_Failure]) -> None:
        """`failures` are read once; those of a file are best next to each other."""
        self._filed = TemporaryList()
        self._chunks: dict[str, list[int]] = {}
        """The numbers of the chunks of each file."""
        for file, some in groupby(failures, key=lambda each: each.result.file):
            while chunk := list(islice(some, _AT_ONCE)):
                self._chunks.setdefault(file, []).extend(self._add(chunk))

    def _add(self, failures: list[_Failure]) -> range:
        """File failures; returns the numbers of their chunks."""
        first = self._filed.batches
        self._filed.extend([*map(_pack_failure, failures)])
        return range(first, self._filed.batches)

    @property
    def files(self) -> set[str]:
        """Return the files with failures."""
        return {*self._chunks}

    def batches(self, files: Iterable[str]) -> Iterator[dict[str, list[_Chunk]]]:
        """Yield the failures of these files in batches, by file."""
        batch: dict[str, list[_Chunk]] = {}
        room = _AT_ONCE
        for file in files:
            for number in self._chunks[file]:
                chunk = _Chunk(number, [*map(_unpack_failure, self._filed.read([number]))])
                if len(chunk.failures) > room:
                    yield batch
                    batch, room = {}, _AT_ONCE
                batch.setdefault(file, []).append(chunk)
                room -= len(chunk.failures)
        if batch:
            yield batch

    def keep(self, chunk: _Chunk, failures: list[_Failure]) -> Sequence[int]:
        """Keep these failures in the place of a chunk; returns the numbers of their chunks.

        What is as it was is not filed again.
        """
        if failures == chunk.failures:
            return [chunk.number]
        return self._add(failures)

    def update(self, chunks: Mapping[str, list[int]]) -> None:
        """Set the numbers of the chunks of some files; those without any are done."""
        for file, numbers in chunks.items():
            if numbers:
                self._chunks[file] = numbers
            else:
                del self._chunks[file]


def _pack_failure(failure: _Failure) -> tuple[Any, ...]:
    """Return a failure as plain values; a place that is that of the result is left out."""
    result, then, prompts = failure
    is_moved = then != result[: len(then)]
    return tuple(result), tuple(then) if is_moved else None, prompts


def _unpack_failure(values: Sequence[Any]) -> _Failure:
    result, then, prompts = values
    place = _Place._make(then or result[: len(_Place._fields)])
    return _Failure(unpack_result(result), place, tuple(prompts))


def _search(
    store: Store, runs: EarlierRuns, run: Run, waiting: _Waiting, *, any_verdict: bool = False
) -> Iterator[tuple[Result, str]]:
    """Yield the results whose cases have passed before a run, with the id of the newest such run.

    They are taken out of `waiting`. With `any_verdict` every earlier verdict counts.
    """
    rows = RowResults(store)
    paths = waiting.files
    for past, entries in runs.before(run, paths, limit=store.count_runs()) if paths else ():
        left: dict[str, list[int]] = {path: [] for path in entries}
        for batch in waiting.batches(sorted(entries)):
            names = {
                path: {
                    name
                    for chunk in chunks
                    for each in chunk.failures
                    for name in (each.then.key, each.then.row)
                }
                for path, chunks in batch.items()
            }
            found = rows.find({path: entries[path] for path in batch}, names)
            for path, chunks in batch.items():
                judged = CellIndex(
                    (cell, case)
                    for cell, case in found[path].cells
                    if cell.verdict and not names[path].isdisjoint((cell.key, cell.row))
                )
                for chunk in chunks:
                    kept: list[_Failure] = []
                    for failure in chunk.failures:
                        was = judged.find(failure.then, failure.prompts)
                        if was is None:
                            kept.append(failure)
                        elif any_verdict or was[0].verdict == "pass":
                            yield failure.result, past.id
                        else:
                            kept.append(_failure(failure.result, *was))
                            if kept[-1].then != failure.then:
                                runs.forget()
                    left[path] += waiting.keep(chunk, kept)
        waiting.update(left)
        paths &= waiting.files
        if not paths:
            return


def _find_broken(store: Store, folder: str, run: Run, baseline: Baseline) -> Iterator[Regression]:
    """Yield the results that broke since the baseline, as `diff` pairs the two runs."""
    now = run_side(store, run)
    was = follow_renames(store, folder, run_side(store, baseline.run), now)
    filled, pairing = compare_sides(store, folder, was, now, Selection(), counts=baseline.counts)
    for pair in sort_pairs(pairing).broke:
        if pair.was and pair.now:
            yield Regression(pair.now, filled.earlier.get(pair.was, baseline.run.id))


def _find_failures(store: Store, run: Run) -> Iterator[_Failure]:
    """Yield the judged results of a run that do not pass, by file."""
    for batch in iterate_cases(store, run):
        for result, case in batch:
            if result.verdict not in (None, "pass"):
                yield _failure(result, result, case)
