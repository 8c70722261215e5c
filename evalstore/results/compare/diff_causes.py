"""Finds why results are only on one side of a comparison: of a candidate, a file or a row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from evalstore.core.batches import in_batches
from evalstore.core.display import plural
from evalstore.core.results import Result
from evalstore.core.values import RECORDED, CaseFile
from evalstore.results.compare.compared_side import Side
from evalstore.results.compare.diff_sides import real_path
from evalstore.store.trees.case_finder import CaseFinder
from evalstore.workspace.digest_set import DigestSet, digest_of_value

_NAMED = 2
"""The most candidates, or files, that are named."""


@dataclass(frozen=True, slots=True)
class Causes:
    """What only one side of a comparison has: the results of it are new, or gone."""

    candidates: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    named: tuple[str, ...] = ()
    """Candidates that the settings do not have: `-m` named them for a run."""
    rows: int = 0
    """How many rows of other files there are."""

    def texts(self, change: str) -> list[str]:
        """Return why results are `new` or `gone`, such as `candidate mini removed`."""
        found = (
            *_listed("candidate", self.candidates),
            *_listed("file", self.files),
            *([(self.rows, "row")] if self.rows else []),
        )
        named = [f"{_text(*each)} named only by -m" for each in _listed("candidate", self.named)]
        if change == "new":
            return [*(_text(count, f"new {noun}") for count, noun in found), *named]
        return [*(f"{_text(count, noun)} removed" for count, noun in found), *named]


def _listed(noun: str, names: Sequence[str]) -> list[tuple[int, str]]:
    """Return the names behind the noun, or how many they are; 0 stands for no number."""
    if len(names) > _NAMED:
        return [(len(names), noun)]
    return [(0, f"{noun} {name}") for name in names]


def _text(count: int, noun: str) -> str:
    return plural(count, noun) if count else noun


def find_causes(results: Iterable[Result], side: Side, other: Side, finder: CaseFinder) -> Causes:
    """Return what the other side lacks of these results of a side, by file."""
    named: dict[str, None] = {}
    candidates: dict[str, None] = {}
    files: dict[str, None] = {}
    rows = DigestSet()
    count = 0
    models = None if other.models is None else {*other.models, *other.left_out, RECORDED}
    for file, of_file in groupby(results, key=lambda result: result.file):
        node = other.nodes.get(file)
        if node is None:
            files[real_path(file)] = None
        for batch in in_batches(of_file):
            for result in batch:
                if models is not None and result.model not in models:
                    (named if result.model in side.named else candidates)[result.model] = None
            for result in _without_case(batch, other.files[node], finder) if node else ():
                count += rows.add(digest_of_value((file, result.row)))
    return Causes(tuple(candidates), tuple(files), tuple(named), count)


def _without_case(
    results: Sequence[Result], file: CaseFile, finder: CaseFinder
) -> Iterator[Result]:
    """Yield those of these results whose case a file does not have."""
    cases = finder.find(file, {name for result in results for name in (result.key, result.row)})
    known = {name for case in cases for name in (case.key, case.row)}
    for result in results:
        if known.isdisjoint((result.key, result.row)):
            yield result
