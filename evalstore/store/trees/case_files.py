"""Reads the trees of the cases of long test files, and of their results, part by part."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from operator import eq
from typing import TYPE_CHECKING, NamedTuple

from evalstore.core import batches, deserialize
from evalstore.core.batches import in_small_batches, in_weighed_batches
from evalstore.core.deserialize import MODELS
from evalstore.core.values import Case, CaseFile, Json
from evalstore.files.temporary_list import NumberedSequence
from evalstore.store.contents import damaged
from evalstore.store.trees.case_chunks import MAX_PART, Load, has_parts

if TYPE_CHECKING:
    from evalstore.store import Store

_LEVEL_OF_PARTS = 1
"""How many levels of nodes are below the nodes that `StoredCases.parts` yields."""


class CasePart(NamedTuple):
    """A part of a file with many cases: about a thousand of them."""

    first: int
    """The number in the file of its first case."""
    size: int
    node: str


class StoredCases(NumberedSequence[Case]):
    """The cases of a file with many of them; a few thousand are in memory at a time."""

    def __init__(self, node: str, content: Json, load: Load) -> None:
        """`load` loads nodes of cases by id, and raises `StoreError` when one is missing."""
        self._node = node
        self._content = content
        self._load = load
        self._first = 0
        self._block: Sequence[Case] = ()
        """The cases that were read last, from number `_first` on."""
        self._labels = array("q")
        """The hashes of the labels of all rows, once these were read."""

    def __len__(self) -> int:
        return sum(self._content["counts"])

    def __iter__(self) -> Iterator[Case]:
        for part in iterate_parts(self._node, self._content, self._load):
            yield from deserialize.restore_case_file(part).cases

    def parts(self) -> Iterator[CasePart]:
        """Yield the parts into which the cases are divided, without reading the cases."""
        yield from _parts_below(self._node, self._content, 0, self._load)

    def smallest_parts(self) -> Iterator[CasePart]:
        """Yield the nodes that contain the cases, without reading these."""
        for group in in_small_batches(self.parts()):
            loaded = self._load([part.node for part in group])
            for part in group:
                content = loaded[part.node]
                if _level_of(content) != _LEVEL_OF_PARTS:
                    raise damaged("nodes", part.node, "its parts have no cases")
                _require_counts(part.node, content)
                yield from _number(content, part.first)

    def divide(self) -> Iterator[tuple[str, list[str]]]:
        """Yield the parts, each with the nodes below it that contain its cases."""
        smallest = self.smallest_parts()
        for part in self.parts():
            below: list[str] = []
            left = part.size
            while left > 0:
                inner = next(smallest)
                below.append(inner.node)
                left -= inner.size
            yield part.node, below

    def read(self, smallest_parts: Iterable[CasePart]) -> Iterator[Case]:
        """Yield the cases of those of the smallest parts that are given."""
        for group in in_small_batches(smallest_parts):
            loaded = self._load([part.node for part in group])
            for part in group:
                content = loaded[part.node]
                if has_parts(content) or len(content["cases"]) != part.size:
                    raise damaged("nodes", part.node, "it has another number of cases")
                yield from deserialize.restore_case_file(content).cases

    def iterate_outside(self, parts: Collection[int]) -> Iterator[tuple[int, Case]]:
        """Yield the cases with their numbers, except those of the parts that begin at `parts`."""
        for part in self.parts():
            if part.first not in parts:
                (content,) = self._load([part.node]).values()
                below = iterate_parts(part.node, content, self._load)
                yield from enumerate(_read_cases(below), part.first)

    def labels(self) -> Iterator[str]:
        """Yield the labels of all rows, without restoring the cases."""
        hashes = array("q")
        for part in iterate_parts(self._node, self._content, self._load):
            labels = [case.get("row", "") for case in part["cases"]]
            hashes.extend(map(hash, labels))
            yield from labels
        self._labels = hashes

    def labelled(self, labels: Collection[str]) -> Iterator[tuple[int, Case]]:
        """Yield the cases of rows with these labels, with their numbers."""
        if not self._labels:
            deque(self.labels(), 0)
        wanted = {*map(hash, labels)}
        for number in [number for number, each in enumerate(self._labels) if each in wanted]:
            if (case := self.read_one(number)).row in labels:
                yield number, case

    def __eq__(self, other: object) -> bool:
        if isinstance(other, StoredCases) and other._node == self._node:
            return True
        if not isinstance(other, StoredCases | tuple):
            return NotImplemented
        if isinstance(other, tuple):
            return len(self) == len(other) and all(map(eq, self, other))
        # Where a tree is divided depends on its cases alone.
        return [*self.smallest_parts()] == [*other.smallest_parts()]

    __hash__ = None  # type: ignore[assignment]

    def read_one(self, number: int) -> Case:
        """Return the case with a number."""
        if not 0 <= number - self._first < len(self._block):
            node, content, first = self._node, self._content, 0
            while content["level"] > 1:
                ends = list(accumulate(content["counts"]))
                place = bisect_right(ends, number - first)
                first += ends[place] - content["counts"][place]
                inner = load_case_parts(node, content, self._load, [place])
                node, content = inner[0]
            self._first, self._block = first, _read_cases(iterate_parts(node, content, self._load))
        return self._block[number - self._first]


def _parts_below(node: str, content: Json, first: int, load: Load) -> Iterator[CasePart]:
    """Yield the nodes below a node whose parts contain cases; the first case has that number."""
    if content["level"] > _LEVEL_OF_PARTS + 1:
        for id, inner in load_case_parts(node, content, load):
            yield from _parts_below(id, inner, first, load)
            first += sum(inner["counts"])
        return
    yield from _number(content, first)


def _number(content: Json, first: int) -> Iterator[CasePart]:
    """Yield the parts of a node; the first case has that number."""
    for id, count in zip(content["parts"], content["counts"], strict=True):
        yield CasePart(first, count, id)
        first += count


def restore_case_files(contents: Mapping[str, Json], load: Load) -> dict[str, CaseFile]:
    """Return the case files of nodes, by id; the cases of a very long file are read when used."""
    files: dict[str, CaseFile] = {}
    short = [(id, node) for id, node in contents.items() if _level_of(node) == _LEVEL_OF_PARTS]
    for id, content, parts in _with_parts(short, load, batches.SMALL_SIZE):
        files[id] = _with_settings(content, _read_cases(parts))
    for id, content in contents.items():
        if not has_parts(content):
            files[id] = deserialize.restore_case_file(content)
        elif id not in files:
            files[id] = _with_settings(content, StoredCases(id, content, load))
    return files


def _with_settings(root: Json, cases: Sequence[Case]) -> CaseFile:
    bare = deserialize.restore_case_file({**root, "cases": ()})
    return replace(bare, cases=cases, code=tuple(root.get("code", ())))


def iterate_parts(node: str, content: Json, load: Load) -> Iterator[Json]:
    """Yield the nodes below a node with parts that contain cases, in their order."""
    parts = load_case_parts(node, content, load)
    if content["level"] == _LEVEL_OF_PARTS + 1:
        for _, _, below in _with_parts(parts, load, MAX_PART):
            yield from below
        return
    for id, part in parts:
        if has_parts(part):
            yield from iterate_parts(id, part, load)
        else:
            yield part


def _with_parts(
    nodes: Iterable[tuple[str, Json]], load: Load, most: int
) -> Iterator[tuple[str, Json, list[Json]]]:
    """Yield nodes of cases with their parts; those of several nodes are read together."""
    for group in in_weighed_batches(nodes, lambda each: len(each[1]["parts"]), most):
        loaded = load(part for _, content in group for part in content["parts"])
        for id, content in group:
            parts = load_case_parts(id, content, lambda _: loaded)  # noqa: B023
            yield id, content, [part for _, part in parts]


def iterate_unseen(ids: Iterable[str], load: Load, seen: set[str]) -> Iterator[Json]:
    """Yield the nodes that contain cases, among these nodes and below them, each once.

    Those in `seen` are left out, and all others are added to it.
    """
    pending = list(ids)
    while pending:
        fresh = [id for id in dict.fromkeys(pending) if id not in seen]
        seen.update(fresh)
        pending = []
        for some in in_small_batches(fresh):
            for content in load(some).values():
                if has_parts(content):
                    pending += content["parts"]
                else:
                    yield content


def _read_cases(parts: Iterable[Json]) -> tuple[Case, ...]:
    return tuple(case for part in parts for case in deserialize.restore_case_file(part).cases)


def load_case_parts(
    node: str, content: Json, load: Load, places: Iterable[int] | None = None
) -> list[tuple[str, Json]]:
    """Return the parts of a node of cases with their ids, or those at some places.

    Raises `StoreError` for a part that is missing or does not match the node.
    """
    counts = content["counts"]
    _require_counts(node, content)
    numbers = range(len(counts)) if places is None else places
    loaded = load([content["parts"][place] for place in numbers])
    parts: list[tuple[str, Json]] = []
    for place in numbers:
        id = content["parts"][place]
        part = loaded[id]
        count = sum(part["counts"]) if has_parts(part) else len(part["cases"])
        if count != counts[place] or _level_of(part) != content["level"] - 1:
            raise damaged("nodes", id, f"it is not the part that the node {node} has")
        parts.append((id, part))
    return parts


def _require_counts(node: str, content: Json) -> None:
    """Raise `StoreError` unless a node says how many cases are in each of its parts."""
    counts = content["counts"]
    is_large = content["level"] == 1 and max(counts) > MAX_PART
    if is_large or len(counts) != len(content["parts"]):
        raise damaged("nodes", node, "it does not say how many cases are in each part")


def _level_of(content: Json) -> int:
    """Return how many levels of nodes are below a node."""
    return int(content["level"]) if has_parts(content) else 0


# --- results


def long_parts_of(root: Json, load_results: Load) -> list[str]:
    """Return the ids of the results of the parts that `StoredCases.parts` yields of a long file.

    `root` is the content of the node of its results; those of a shorter file have no such parts.
    """
    if not has_parts(root) or root["level"] <= _LEVEL_OF_PARTS:
        return []
    ids = [id for id in root["parts"] if id]
    for _ in range(root["level"] - _LEVEL_OF_PARTS - 1):
        loaded = load_results(ids)
        ids = [below for id in ids for below in loaded[id]["parts"] if below]
    return ids


class CaseTraits(NamedTuple):
    """What at least one of some cases has."""

    judged_by_models: bool
    default_temperature: bool
    """The temperature of the candidate, as it sets none."""


class CaseFinder:
    """Finds cases by their names: their keys and their labels."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def find(self, file: CaseFile, names: Collection[str]) -> Iterator[Case]:
        """Yield the cases of a file that have one of these names, in their order."""
        cases: Iterable[Case] = file.cases
        if isinstance(file.cases, StoredCases):
            named = self.store.find_named_leaves(names)
            cases = file.cases.read(
                each for each in file.cases.smallest_parts() if each.node in named
            )
        for case in cases:
            if case.key in names or case.row in names:
                yield case

    def find_traits(self, file: CaseFile) -> CaseTraits:
        """Return what some of the cases of a file have."""
        if not isinstance(file.cases, StoredCases):
            traits = [("models" in case.judged_by, case.temperature is None) for case in file.cases]
        else:
            nodes = (part.node for part in file.cases.smallest_parts())
            traits = [
                ("models" in kind.get("judgedBy", MODELS), kind.get("temperature") is None)
                for kind in self.store.find_kinds(nodes)
            ]
        return (
            CaseTraits(*map(any, zip(*traits, strict=True))) if traits else CaseTraits(False, False)
        )


# --- the rows of one stored test file


class RowIndex:
    """Finds rows of a test file; of a long one that is stored few cases are read."""

    def __init__(self, file: CaseFile, finder: CaseFinder | None = None) -> None:
        """Without `finder`, which knows what is stored, all cases are read."""
        self._file = file
        self._finder = finder if isinstance(file.cases, StoredCases) else None
        self._names: set[str] = set()
        """Those that a long file was searched for."""
        self._by_key: dict[str, Case] = {}
        self._by_row: dict[str, Case] = {}
        if self._finder is None:
            self._add(file.cases)

    def _add(self, cases: Iterable[Case]) -> None:
        for case in cases:  # of equal rows the first counts
            self._by_key.setdefault(case.key, case)
            self._by_row.setdefault(case.row, case)

    def expect(self, cases: Iterable[Case]) -> None:
        """Read the rows for which `find` will be called, and forget those read before."""
        if self._finder:
            self._names = {name for case in cases for name in (case.key, case.row)}
            self._by_key, self._by_row = {}, {}
            self._add(self._finder.find(self._file, self._names))

    def find(self, case: Case) -> Case | None:
        """Return the case with the same values, else with the same label, else the only case."""
        if self._finder and not self._names.issuperset((case.key, case.row)):
            self.expect([case])
        found = self._by_key.get(case.key) or self._by_row.get(case.row)
        if found is None and not case.row and len(self._file.cases) == 1:
            return self._file.cases[0]
        return found
