"""Snapshots and result trees, content-addressed maps from test file to leaf, and their nodes.

A tree is a leaf node with at most 16 entries, or a node with a child for each next digit of the
path's digest. Its shape depends on its entries alone, so equal maps have equal ids, and a changed
entry changes a few small nodes, independent of the size of the map.

Reads the trees of the cases of long test files, and of their results, part by part.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate
from operator import eq
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from evalstore.core import batches, deserialize, hashing
from evalstore.core.batches import in_batches, in_small_batches, in_weighed_batches
from evalstore.core.errors import ExcessiveError, StoreError, StoreUnreachableError
from evalstore.core.runs import Run
from evalstore.core.values import Case, CaseFile, Json
from evalstore.files.temporary_list import NumberedSequence
from evalstore.store.contents import as_digits, damaged, decode_content, excessive, require
from evalstore.store.records import Database
from evalstore.store.schema.table_definitions import NODES, TableColumns
from evalstore.store.trees.case_chunks import LEVEL_OF_PARTS, MAX_PART, MOST_CASES, Load, has_parts

if TYPE_CHECKING:
    from evalstore.store import Store


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
                if _level_of(content) != LEVEL_OF_PARTS:
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
    if content["level"] > LEVEL_OF_PARTS + 1:
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
    short = [(id, node) for id, node in contents.items() if _level_of(node) == LEVEL_OF_PARTS]
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
    if content["level"] == LEVEL_OF_PARTS + 1:
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
    if not has_parts(root) or root["level"] <= LEVEL_OF_PARTS:
        return []
    ids = [id for id in root["parts"] if id]
    for _ in range(root["level"] - LEVEL_OF_PARTS - 1):
        loaded = load_results(ids)
        ids = [below for id in ids for below in loaded[id]["parts"] if below]
    return ids


class CaseTraits(NamedTuple):
    """What at least one of some cases has."""

    judged_by_models: bool = False
    default_temperature: bool = False
    """The temperature of the candidate, as it sets none."""


# --- the rows of one stored test file


class RowIndex:
    """Finds rows of a test file; of a long one that is stored few cases are read."""

    def __init__(self, file: CaseFile, store: Store | None = None) -> None:
        """Without a store, all cases are read."""
        self._file = file
        self._store = store if isinstance(file.cases, StoredCases) else None
        self._names: set[str] = set()
        """Those that a long file was searched for."""
        self._by_key: dict[str, Case] = {}
        self._by_row: dict[str, Case] = {}
        if self._store is None:
            self._add(file.cases)

    def _add(self, cases: Iterable[Case]) -> None:
        for case in cases:  # of equal rows the first counts
            self._by_key.setdefault(case.key, case)
            self._by_row.setdefault(case.row, case)

    def expect(self, cases: Iterable[Case]) -> None:
        """Read the rows for which `find` will be called, and forget those read before."""
        if self._store:
            self._names = {name for case in cases for name in (case.key, case.row)}
            self._by_key, self._by_row = {}, {}
            self._add(self._store.find_named_cases(self._file, self._names))

    def find(self, case: Case) -> Case | None:
        """Return the case with the same values, else with the same label, else the only case."""
        if self._store and not self._names.issuperset((case.key, case.row)):
            self.expect([case])
        found = self._by_key.get(case.key) or self._by_row.get(case.row)
        if found is None and not case.row and len(self._file.cases) == 1:
            return self._file.cases[0]
        return found


_ENTRIES = 16
_DEEPEST = 32
"""The most levels of a tree: one for each digit of a digest."""


def build_tree(entries: Mapping[str, str]) -> tuple[str, dict[str, tuple[str, str]]]:
    """Return the id of the tree of these entries, and the contents of all its nodes."""
    contents: dict[str, tuple[str, str]] = {}
    digits = [(hashing.hash_bytes(path.encode()), path) for path in entries]
    return _build(sorted(digits), 0, entries, contents), contents


def _build(
    paths: list[tuple[str, str]],
    depth: int,
    entries: Mapping[str, str],
    contents: dict[str, tuple[str, str]],
) -> str:
    if len(paths) <= _ENTRIES:
        node = hashing.describe("tree", entries={path: entries[path] for _, path in paths})
    else:
        groups: dict[str, list[tuple[str, str]]] = {}
        for keyed_path in paths:
            groups.setdefault(keyed_path[0][depth], []).append(keyed_path)
        node = hashing.describe(
            "tree",
            children={
                digit: _build(group, depth + 1, entries, contents)
                for digit, group in groups.items()
            },
        )
    id, content = hashing.identify(node)
    contents[id] = ("tree", content)
    return id


def read_tree(root: str, load: Load, *, unlike: str | None = None) -> dict[str, str]:
    """Return the entries of a tree; with `unlike`, without subtrees that the other tree has."""
    [entries] = read_trees([(root, unlike)], load)
    return entries


def read_trees(trees: Sequence[tuple[str, str | None]], load: Load) -> list[dict[str, str]]:
    """Return the entries of several trees, read together; each is given with its `unlike`."""
    entries: list[dict[str, str]] = [{} for _ in trees]
    levels = [([root], [unlike] if unlike else []) for root, unlike in trees]
    for _ in _levels(trees[0][0] if trees else ""):
        levels = [_unlike(level, other) for level, other in levels]
        unread = [id for level, other in levels for id in (*level, *other)]
        if not unread:
            break
        nodes = load(unread)
        for tree_entries, (level, _) in zip(entries, levels, strict=True):
            for id in level:
                tree_entries.update(nodes[id].get("entries", {}))
        levels = [(_below(level, nodes), _below(other, nodes)) for level, other in levels]
    return entries


def _unlike(level: list[str], other: list[str]) -> tuple[list[str], list[str]]:
    """Return the nodes that only one of two trees has; empty when the first has no such nodes."""
    same = {*level} & {*other}
    own = [id for id in level if id not in same]
    return own, [id for id in other if id not in same] if own else []


def _below(level: list[str], nodes: Mapping[str, Json]) -> list[str]:
    return list(
        dict.fromkeys(id for node in level for id in nodes[node].get("children", {}).values())
    )


def find_entry(roots: Iterable[str], path: str, load: Load) -> dict[str, str]:
    """Return the entry of a path in each of these trees that has it, by root.

    Only the nodes on the way to it are loaded.
    """
    found = find_leaves(((path, root) for root in roots), load)
    return {root: entry for (_, root), entry in found.items()}


def find_entries(root: str, paths: Collection[str], load: Load) -> dict[str, str]:
    """Return the entries of these paths in a tree; only the nodes on the way to them are loaded."""
    found = find_leaves(((path, root) for path in paths), load)
    return {path: entry for (path, _), entry in found.items()}


def find_leaves(places: Iterable[tuple[str, str]], load: Load) -> dict[tuple[str, str], str]:
    """Return the entries of paths in trees, as `find_entry` does, by the path and the root."""
    found: dict[tuple[str, str], str] = {}
    level: dict[str, list[tuple[str, str]]] = {}
    for place in dict.fromkeys(places):
        level.setdefault(place[1], []).append(place)
    digits = {
        path: hashing.hash_bytes(path.encode()) for some in level.values() for path, _ in some
    }
    for depth, _ in enumerate(_levels(next(iter(level), ""))):
        if not level:
            break
        nodes = load(level)
        following: dict[str, list[tuple[str, str]]] = {}
        for id, below in level.items():
            entries, children = (nodes[id].get(name, {}) for name in ("entries", "children"))
            for place in below:
                path = place[0]
                if path in entries:
                    found[place] = entries[path]
                elif child := children.get(digits[path][depth : depth + 1]):
                    following.setdefault(child, []).append(place)
        level = following
    return found


def _levels(root: str) -> Iterator[int]:
    """Yield the levels of a tree; raises `StoreError` after the last, as a node contains itself."""
    yield from range(_DEEPEST + 1)
    raise damaged("nodes", root, "it is a tree in which a node contains itself")


_LEVELS = 2
"""The most levels of parts in a tree that may be read without looking at all of them before."""


class NodeQueries(Database):
    """The queries for trees."""

    def load_case_files(self, ids: Iterable[str]) -> dict[str, CaseFile]:
        """Return leaves of snapshots by id; raises `StoreError` when one is missing."""
        unique_ids = list(dict.fromkeys(ids))
        return require(self.find_case_files(unique_ids), unique_ids, "node")

    def find_case_files(self, ids: Iterable[str]) -> dict[str, CaseFile]:
        """Return leaves of snapshots by id; those the store does not have are left out."""
        contents = self._bounded(dict(self._decode(NODES, ids, "cases")), "cases")
        return restore_case_files(contents, self.load_cases)

    def load_cases(self, ids: Iterable[str]) -> dict[str, Json]:
        """Return nodes of cases by id, as JSON; raises `StoreError` when one is missing."""
        return self._bounded(self._load_nodes(ids, "cases"), "cases")

    def iterate_cases_of(self, content: Json) -> Iterator[list[Json]]:
        """Yield the cases of a node, or of its parts, as they are stored, in batches."""
        parts = iterate_parts("", content, self.load_cases) if has_parts(content) else [content]
        cases = (case for part in parts for case in part["cases"])
        yield from in_batches(cases)

    def load_nodes(self, ids: Iterable[str]) -> dict[str, Json]:
        """Return inner nodes of trees by id; raises `StoreError` when one is missing."""
        return self._load_nodes(ids, "tree")

    def load_leaves(self, ids: Iterable[str]) -> dict[str, Json]:
        """Return nodes of results by id; raises `StoreError` when one is missing."""
        return self._bounded(self._load_nodes(ids, "results"), "results")

    def list_leaves(
        self,
        places: Iterable[tuple[str, str]],
        contents: Mapping[str, Json],
        without: Mapping[str, Collection[str]] = MappingProxyType({}),
    ) -> list[tuple[str, str]]:
        """Return the nodes with results in and below nodes, by what these say of their parts.

        Each has the path of its file; `without` has the nodes that are left out, by path.
        """
        listed, above = [*places], 17
        while contents:
            level, id = max((content.get("level", 0), id) for id, content in contents.items())
            if level >= above:
                raise damaged("nodes", id, "its level does not match its parent")
            above = level
            below, deeper = list[tuple[str, str]](), list[str]()
            for path, node in listed:
                if node not in contents or not has_parts(content := contents[node]):
                    below.append((path, node))
                    continue
                left_out = without.get(path, ())
                parts = [part for part in content["parts"] if part and part not in left_out]
                below += ((path, part) for part in parts)
                deeper += parts if content["level"] > 1 else ()
            listed, contents = below, self.load_leaves(deeper)
        return listed

    def _load_nodes(self, ids: Iterable[str], kind: str) -> dict[str, Json]:
        unique_ids = list(dict.fromkeys(ids))
        return require(dict(self._decode(NODES, unique_ids, kind)), unique_ids, "node")

    def _bounded(self, nodes: dict[str, Json], kind: str) -> dict[str, Json]:
        """Return the same nodes; raises `ExcessiveError` if few nodes make them a large tree."""
        for id, content in nodes.items():
            if content.get("level", 0) > _LEVELS:
                refuse_repeated(id, content, partial(self._load_nodes, kind=kind), _LEVELS)
        return nodes

    def _decode(
        self, table: TableColumns, ids: Iterable[str], kind: str | None = None
    ) -> Iterator[tuple[str, Json]]:
        statement = f"SELECT id, content FROM {table.name} WHERE id IN"
        for bytes_, content in self._select_each(statement, ids):
            id = as_digits(bytes_)
            yield id, decode_content(table.name, id, content, kind)


T = TypeVar("T")


class TreeSizes:
    """Measures runs; each tree of a file is read once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._cases: dict[str, int] = {}
        """How many cases files have, by their nodes."""
        self._results: dict[str, str] = {}
        """The nodes of the files of results, by the nodes of these."""

    def require_bounded(self, run: Run) -> None:
        """Raise `ExcessiveError` for a run whose trees describe too much to be read.

        Raises `StoreError` for a tree that is damaged.
        """
        store = self._store
        nodes = Counter(read_tree(run.snapshot, store.load_nodes).values())
        results = Counter(read_tree(run.results, store.load_nodes).values())
        _read(results, store.load_leaves, self._results, lambda content: content["cases"])
        judged = Counter(self._results[id] for id in results.elements())
        _read([*nodes, *judged], store.load_cases, self._cases, count_cases)
        most = min(MOST_CASES, run.cases.total if run.cases else MOST_CASES)
        for counts in (nodes, judged):
            if sum(count * self._cases[id] for id, count in counts.items()) > most:
                raise excessive("runs", run.id, f"its files have more than {most:,} cases")


def _read(ids: Iterable[str], load: Load, known: dict[str, T], read: Callable[[Json], T]) -> None:
    """Read something of the roots of trees that are not known, and each of their nodes once."""
    for some in in_small_batches(id for id in dict.fromkeys(ids) if id not in known):
        for id, content in load(some).items():
            refuse_repeated(id, content, load)
            known[id] = read(content)


def count_cases(content: Json) -> int:
    """Return how many cases are in a node of cases, by what it says of its parts."""
    return sum(content["counts"]) if has_parts(content) else len(content["cases"])


def refuse_repeated(tree: str, root: Json, load: Load, least: int = 1) -> None:
    """Raise `ExcessiveError` when a node is in a tree twice; those below `least` are not read."""
    level = [root]
    while parts := [part for node in level for part in node.get("parts", ()) if part]:
        if len(set(parts)) < len(parts):
            raise excessive("nodes", tree, "a part is in its tree twice")
        inner = [node for node in level if node.get("level", 0) > least]
        below = (part for node in inner for part in node["parts"] if part)
        level = [node for some in in_small_batches(below) for node in load(some).values()]


def find_excessive(store: Store, runs: Iterable[Run]) -> Iterator[tuple[str, str]]:
    """Yield the ids of those of these runs that describe too much to be read, each with why."""
    sizes = TreeSizes(store)
    for run in runs:
        try:
            sizes.require_bounded(run)
        except ExcessiveError as error:
            problem = str(error).removeprefix("the store is damaged: ")
            yield run.id, f"it describes too much to be read: {problem}"
        except StoreUnreachableError:
            raise
        except StoreError:  # it is damaged in another way, which its readers see at once
            continue
