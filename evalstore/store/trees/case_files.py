"""Reads the trees of the cases of long test files, and of their results, part by part."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, takewhile
from operator import eq
from typing import Any, NamedTuple, TypeVar

from evalstore.core import batches, deserialize
from evalstore.core.batches import in_small_batches
from evalstore.core.values import Case, CaseFile, Json
from evalstore.files.temporary_list import NumberedSequence
from evalstore.store.contents import damaged
from evalstore.store.trees.case_chunks import MAX_PART, Load, has_parts

_LEVEL_OF_PARTS = 1
"""How many levels of nodes are below the nodes that `StoredCases.parts` yields."""
T = TypeVar("T")


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
        for group in _groups(self.parts(), lambda _: 1):
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
        for group in _groups(smallest_parts, lambda _: 1):
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
                cases = _read_cases(part.node, content, self._load)
                yield from enumerate(cases, part.first)

    def labels(self) -> Iterator[str]:
        """Yield the labels of all rows, without restoring the cases."""
        hashes = array("q")
        for group in _groups(self.parts(), lambda _: 1):
            loaded = self._load([part.node for part in group])
            above = [(part.node, loaded[part.node]) for part in group]
            for _, inner in _load_below(above, _LEVEL_OF_PARTS, self._load):
                labels = [case.get("row", "") for case in inner["cases"]]
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
        return len(self) == len(other) and all(map(eq, *_between_equal_ends(self, other)))

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
            self._first, self._block = first, _read_cases(node, content, self._load)
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


def _between_equal_ends(one: StoredCases, other: StoredCases) -> tuple[Iterator[Case], ...]:
    """Return the cases of two files that are as long, without equal nodes at both ends."""
    ours, others = (list(cases.smallest_parts()) for cases in (one, other))
    start = sum(1 for _ in takewhile(lambda pair: eq(*pair), zip(ours, others, strict=False)))
    ours, others = ours[start:], others[start:]
    from_end = zip(reversed(ours), reversed(others), strict=False)
    end = sum(1 for _ in takewhile(lambda pair: eq(*pair), from_end))
    return tuple(
        cases.read(parts[: len(parts) - end]) for cases, parts in ((one, ours), (other, others))
    )


def restore_case_files(contents: Mapping[str, Json], load: Load) -> dict[str, CaseFile]:
    """Return the case files of nodes, by id; the cases of a very long file are read when used."""
    files: dict[str, CaseFile] = {}
    short = [
        (id, content)
        for id, content in contents.items()
        if has_parts(content) and content["level"] == 1
    ]
    for group in _groups(short, lambda item: len(item[1]["parts"])):
        parts = load(part for _, content in group for part in content["parts"])
        for id, content in group:
            files[id] = _with_settings(content, _read_cases(id, content, lambda _: parts))  # noqa: B023
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
    nodes = [(node, content)]
    if content["level"] > _LEVEL_OF_PARTS:
        nodes = load_case_parts(node, content, load)
    if content["level"] <= _LEVEL_OF_PARTS + 1:
        yield from (part for _, part in _load_below(nodes, _LEVEL_OF_PARTS, load))
    else:
        for id, inner in nodes:
            yield from iterate_parts(id, inner, load)


def _load_below(
    nodes: Iterable[tuple[str, Json]], level: int, load: Load
) -> Iterator[tuple[str, Json]]:
    """Yield the parts of nodes of a level, in their order; those of several are read together."""
    for group in _groups(nodes, lambda item: len(item[1].get("parts", ())), MAX_PART):
        for id, content in group:
            if _level_of(content) != level:
                raise damaged("nodes", id, "it is of another level than the node above it says")
        loaded = load(id for _, content in group for id in content["parts"])
        for id, content in group:
            yield from load_case_parts(id, content, lambda _: loaded)  # noqa: B023


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


def _read_cases(node: str, content: Json, load: Load) -> tuple[Case, ...]:
    """Return the cases of a node whose parts contain them."""
    return tuple(
        case
        for _, part in load_case_parts(node, content, load)
        for case in deserialize.restore_case_file(part).cases
    )


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


class ResultPart(NamedTuple):
    """A node with results."""

    number: int
    """The number of the file."""
    first: int
    """The number of the first case of the node in its file."""
    content: Json


def iterate_result_parts(
    contents: Iterable[Json],
    load_cases: Load,
    load_results: Load,
    without: Sequence[Collection[str]] = (),
) -> Iterator[list[ResultPart]]:
    """Yield the nodes that contain results, among these nodes and below them, in batches.

    They are in the order of files and cases. `without` has the ids of the nodes below each that
    are left out. Raises `StoreError` for a node that is missing or does not match the node above
    it.
    """
    parts = [ResultPart(number, 0, content) for number, content in enumerate(contents)]
    yield from _expand(parts, load_cases, load_results, without or [()] * len(parts))


def _expand(
    parts: Sequence[ResultPart],
    load_cases: Load,
    load_results: Load,
    without: Sequence[Collection[str]],
) -> Iterator[list[ResultPart]]:
    for group in _groups(
        parts, lambda part: len(part.content["parts"]) if has_parts(part.content) else 1
    ):
        trees = [part.content for part in group if has_parts(part.content)]
        if not trees:
            yield group
            continue
        cases = load_cases(content["cases"] for content in trees)
        inner = load_results(
            id
            for part in group
            if has_parts(part.content)
            for id in part.content["parts"]
            if id and id not in without[part.number]
        )
        below: list[ResultPart] = []
        for part in group:
            if has_parts(part.content):
                of_part = _parts_of(part, cases[part.content["cases"]], inner)
                below += (each for id, each in of_part if id not in without[part.number])
            else:
                below.append(part)
        yield from _expand(below, load_cases, load_results, without)


def _parts_of(
    result: ResultPart, cases: Json, inner: Mapping[str, Json]
) -> Iterator[tuple[str, ResultPart]]:
    content, first = result.content, result.first
    level = content["level"]
    if _level_of(cases) != level or not (
        len(content["parts"]) == len(cases["parts"]) == len(cases["counts"])
    ):
        raise damaged("nodes", content["cases"], "it has not the parts that results of it have")
    parts = zip(content["parts"], cases["parts"], cases["counts"], strict=True)
    for id, place, count in parts:
        if id in inner:
            part = inner[id]
            if part["cases"] != place or _level_of(part) != level - 1:
                raise damaged("nodes", id, "it is about other cases than the node above it")
            yield id, ResultPart(result.number, first, part)
        first += count


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


def _groups(items: Iterable[T], weigh: Any, most: int | None = None) -> Iterator[list[T]]:
    """Yield the items in lists of at most the weight that is read together, or of one item."""
    group: list[T] = []
    weight = 0
    for item in items:
        added = weigh(item)
        if group and weight + added > (most or batches.SMALL_SIZE):
            yield group
            group, weight = [], 0
        group.append(item)
        weight += added
    if group:
        yield group
