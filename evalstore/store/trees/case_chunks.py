"""The cases of a test file, and their results, as trees of small nodes.

A file with few cases is one node. The cases of a longer one are cut into parts after rows whose
key has certain digits in its digest (content-defined chunking), and the parts into nodes in the
same way. So the tree depends on the cases alone, and an edited row changes a few small nodes,
independent of the number of rows. The tree of the results has the same shape as that of the cases.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeVar

from evalstore.core import batches, hashing
from evalstore.core.values import Case, CaseFile, Json

SCHEME = 2
"""The scheme of a node with parts; a node with cases or results has the first scheme."""
OF_PARTS = ("level", "parts", "counts", "code")
"""The fields that only a node with parts has; `code` is that of all its cases."""
MAX_UNDIVIDED = 64
"""The most cases of a file that is one node."""
MAX_PART = 128
"""The most cases, or nodes, in one part."""
MOST_CASES = 10_000_000
"""The most cases of a run, and of a file."""
_MIN_PART = 8
_BOUNDARY_DIGITS = frozenset(f"{number:02x}" for number in range(8))
"""The pairs of digits after which a part ends: one in 32 of all pairs."""
LEVEL_OF_PARTS = 1
"""The level of a node whose parts have cases or cells."""
T = TypeVar("T")

Keep = Callable[[hashing.Description], str]
"""A function that stores a description and returns its id."""


def collect(contents: dict[str, tuple[str, str]]) -> Keep:
    """Return a function that adds descriptions to `contents`: by id, kind and canonical JSON."""

    def keep(description: hashing.Description) -> str:
        id, content = hashing.identify(description)
        contents[id] = (description["kind"], content)
        return id

    return keep


Load = Callable[[Iterable[str]], Mapping[str, Json]]
"""From ids to contents."""


class _Part(NamedTuple):
    id: str
    size: int
    """How many cases are in it."""
    key: str
    """The key of the last case."""


def build_case_tree(file: CaseFile, keep: Keep) -> str:
    """Store all nodes of a file with `keep`; returns the id of the root."""
    builder = CaseTreeBuilder(keep)
    for case in file.cases:
        builder.add(case)
    return builder.finish(file)


def is_tree(file: CaseFile) -> bool:
    """Return whether the cases of a file are in several nodes."""
    return len(file.cases) > MAX_UNDIVIDED


def find_same(node: str, file: CaseFile, others: Mapping[str, CaseFile]) -> str | None:
    """Return the node among others with the same cases; in an old store its id may differ."""
    if node in others or not is_tree(file):
        return node if node in others else None
    return next((id for id, other in others.items() if other == file), None)


def find_excess(content: Json) -> str | None:
    """Return in words why a stored node with parts describes more than is there; None if not."""
    parts = [part for part in content["parts"] if part]
    if len(set(parts)) < len(parts):
        return "it has a part twice"
    is_too_large = sum(content.get("counts", ())) > MOST_CASES
    return f"it has more than {MOST_CASES:,} cases" if is_too_large else None


def has_parts(content: Json) -> bool:
    """Return whether a stored node of cases or results has parts."""
    return bool(content["scheme"] == SCHEME)


class CaseTreeBuilder:
    """Builds the tree of a file, case by case."""

    def __init__(self, keep: Keep) -> None:
        self._keep = keep
        self._first: list[Case] = []
        """Cases that may be all of the file, which then is one node."""
        self._cases: list[Case] = []
        self._parts: list[_Part] = []
        self._code: set[str] = set()

    def add(self, case: Case) -> None:
        """Add the next case."""
        self._first.append(case)
        if self._parts or self._cases or len(self._first) > MAX_UNDIVIDED:
            self._divide()

    @property
    def is_between(self) -> bool:
        """Return whether the next case begins a part."""
        return not self._first and not self._cases

    def add_part(self, id: str, size: int, key: str) -> None:
        """Add the next cases by their stored node; none has code, and `key` is that of the last."""
        self._parts.append(_Part(id, size, key))

    def _divide(self) -> None:
        for case in self._first:
            self._cases.append(case)
            if _is_end(len(self._cases), case.key, 0):
                self._close()
        self._first = []

    def _close(self) -> None:
        self._code.update(text for case in self._cases for text in case.code)
        described = hashing.describe_case_file(CaseFile(tuple(self._cases)))
        self._parts.append(_Part(self._keep(described), len(self._cases), self._cases[-1].key))
        self._cases = []

    def finish(self, file: CaseFile) -> str:
        """Store the root, with the settings of the file; returns its id."""
        if not self._cases and not self._parts:
            return self._keep(hashing.describe_case_file(replace(file, cases=tuple(self._first))))
        self._divide()
        if self._cases:
            self._close()
        parts, level = self._parts, 1
        while len(parts) > MAX_PART:
            parts, level = list(self._combine(parts, level)), level + 1
        settings = hashing.describe_case_file(replace(file, cases=()))
        code = {"code": sorted(self._code)} if self._code else {}
        return self._keep({**settings, **_describe_parts(parts, level), **code})

    def _combine(self, parts: Iterable[_Part], level: int) -> Iterator[_Part]:
        for group in _cut(parts, level):
            id = self._keep({**hashing.describe("cases"), **_describe_parts(group, level)})
            yield _Part(id, sum(part.size for part in group), group[-1].key)


def _describe_parts(parts: Sequence[_Part], level: int) -> hashing.Description:
    return {
        "scheme": SCHEME,
        "level": level,
        "parts": [part.id for part in parts],
        "counts": [part.size for part in parts],
    }


def _cut(parts: Iterable[_Part], level: int) -> Iterator[list[_Part]]:
    group: list[_Part] = []
    for part in parts:
        group.append(part)
        if _is_end(len(group), part.key, level):
            yield group
            group = []
    if group:
        yield group


def _is_end(count: int, key: str, level: int) -> bool:
    """Return whether a part with so many items ends with this key."""
    if count < _MIN_PART:
        return False
    digits = hashing.hash_bytes(key.encode())[2 * level : 2 * level + 2]
    return count == MAX_PART or digits in _BOUNDARY_DIGITS


# --- results


def build_results(
    cells: Mapping[str, Sequence[Json]],
    files: Mapping[str, CaseFile],
    nodes: Mapping[str, str],
    load: Load,
    keep: Keep,
) -> dict[str, str]:
    """Store the nodes of the results of files with `keep`; returns the ids of their roots.

    `cells` are those of each file, in the order of its cases; `nodes` are the nodes of the files,
    and `load` loads nodes of cases.
    """
    results: dict[str, str] = {}
    for file, file_cells in cells.items():
        builder = ResultBuilder(nodes[file], load if is_tree(files[file]) else None, keep)
        builder.add(file_cells)
        results[file] = builder.finish()
    return results


@dataclass(slots=True)
class _Open:
    """A node of cases whose results are being built."""

    node: str
    first: int
    """The number in its file of its first case."""
    content: Json = None
    """The content of the node of cases, when it has parts."""
    parts: list[str | None] = field(default_factory=list)
    """The ids of the results of its parts so far; None for parts without results."""
    reached: int = 0
    """The number in its file of the first case after `parts`."""
    cells: list[Json] = field(default_factory=list)
    below: Mapping[str, Json] = field(default_factory=dict)
    """The contents of some of its parts, by id."""

    def describe(self) -> hashing.Description:
        if self.content is None:
            return hashing.describe("results", cases=self.node, cells=self.cells)
        lacking = len(self.content["parts"]) - len(self.parts)
        described = hashing.describe("results", cases=self.node, level=self.content["level"])
        return {**described, "parts": [*self.parts, *[None] * lacking], "scheme": SCHEME}


def _open(node: str, first: int, content: Json | None) -> _Open:
    is_inner = content is not None and has_parts(content)
    return _Open(node, first, content if is_inner else None, reached=first)


class ResultBuilder:
    """Builds the results of a file, cell by cell; only those of one part are in memory."""

    def __init__(
        self,
        node: str,
        load: Load | None,
        keep: Keep,
        tell: Callable[[str, str], object] = lambda _cases, _results: None,
    ) -> None:
        """`node` is the node of the cases of the file; `load` loads such nodes, if it is a tree.

        `tell` is called with each finished node whose parts have cells: the ids of its cases, and
        of its results.
        """
        self._load, self._keep, self._tell = load, keep, tell
        self._end: float = math.inf
        """The number of the first case after the open part."""
        content = load([node])[node] if load else None
        self._open = [_open(node, 0, content)]

    def add(self, cells: Iterable[Json]) -> None:
        """Add the next cells, in the order of their cases."""
        part = self._open[-1]
        for cell in cells:
            number = cell["case"]
            if number >= self._end or part.content is not None:
                while number >= self._end:
                    self._close()
                while self._open[-1].content is not None:
                    self._descend(number)
                part = self._open[-1]
            part.cells.append({**cell, "case": number - part.first} if part.first else cell)

    def add_part(self, first: int, id: str) -> None:
        """Add the known results of a node whose parts have cells, in the order of its cases.

        `first` is the number of its first case.
        """
        while first >= self._end:
            self._close()
        while self._open[-1].content["level"] > LEVEL_OF_PARTS + 1:
            self._descend(first)
        above = self._open[-1]
        counts = above.content["counts"]
        while above.reached < first:
            above.reached += counts[len(above.parts)]
            above.parts.append(None)
        above.reached += counts[len(above.parts)]
        above.parts.append(id)

    def finish(self) -> str:
        """Store what is left; returns the id of the root."""
        while len(self._open) > 1:
            self._close()
        return self._keep(self._open[0].describe())

    def _descend(self, number: int) -> None:
        """Open the part of the last open node that has the case with this number."""
        above = self._open[-1]
        counts = above.content["counts"]
        while number >= above.reached + counts[len(above.parts)]:
            above.reached += counts[len(above.parts)]
            above.parts.append(None)
        place, first = len(above.parts), above.reached
        id = above.content["parts"][place]
        above.reached += counts[place]
        self._end = above.reached
        if above.content["level"] > 1 and self._load and id not in above.below:
            above.below = self._load(above.content["parts"][place : place + batches.SMALL_SIZE])
        self._open.append(_open(id, first, above.below.get(id)))

    def _close(self) -> None:
        """Store the open part, whose results are complete."""
        part = self._open.pop()
        id = self._keep(part.describe())
        if part.content is not None and part.content["level"] == LEVEL_OF_PARTS:
            self._tell(part.node, id)
        self._open[-1].parts.append(id)
        self._end = self._open[-1].first + sum(self._open[-1].content["counts"])
