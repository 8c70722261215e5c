"""Snapshots and result trees, content-addressed maps from test file to leaf, and their nodes.

A tree is a leaf node with at most 16 entries, or a node with a child for each next digit of the
path's digest. Its shape depends on its entries alone, so equal maps have equal ids, and a changed
entry changes a few small nodes, independent of the size of the map.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeVar

from evalstore.core import hashing
from evalstore.core.batches import in_batches, in_small_batches
from evalstore.core.errors import ExcessiveError, StoreError, StoreUnreachableError
from evalstore.core.values import CaseFile, Json
from evalstore.store.contents import as_digits, damaged, decode_content, excessive, require
from evalstore.store.database import Database
from evalstore.store.schema.table_definitions import NODES, TableColumns
from evalstore.store.trees.case_chunks import MOST_CASES, Load, has_parts
from evalstore.store.trees.case_files import iterate_parts, restore_case_files

if TYPE_CHECKING:
    from evalstore.core.runs import Run
    from evalstore.store import Store

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
    found = _find([(root, path) for root in roots], load)
    return {root: entry for (root, _), entry in found.items()}


def find_leaves(places: Iterable[tuple[str, str]], load: Load) -> dict[tuple[str, str], str]:
    """Return the entries of paths in trees, as `find_entry` does, by the path and the root."""
    roots: dict[str, set[str]] = {}
    for path, root in places:
        roots.setdefault(path, set()).add(root)
    return {
        (path, root): leaf
        for path, trees in roots.items()
        for root, leaf in find_entry(trees, path, load).items()
    }


def find_entries(root: str, paths: Collection[str], load: Load) -> dict[str, str]:
    """Return the entries of these paths in a tree; only the nodes on the way to them are loaded."""
    found = _find([(root, path) for path in paths], load)
    return {path: entry for (_, path), entry in found.items()}


def _find(sought: Sequence[tuple[str, str]], load: Load) -> dict[tuple[str, str], str]:
    """Return the entries of paths in trees; each is given, and found, by the root and the path."""
    found: dict[tuple[str, str], str] = {}
    level: dict[str, list[tuple[str, str]]] = {}
    for place in sought:
        level.setdefault(place[0], []).append(place)
    digits = {path: hashing.hash_bytes(path.encode()) for _, path in sought}
    for depth, _ in enumerate(_levels(sought[0][0] if sought else "")):
        if not level:
            break
        nodes = load(level)
        following: dict[str, list[tuple[str, str]]] = {}
        for id, places in level.items():
            entries, children = (nodes[id].get(name, {}) for name in ("entries", "children"))
            for place in places:
                path = place[1]
                if path in entries:
                    found[place] = entries[path]
                elif below := children.get(digits[path][depth : depth + 1]):
                    following.setdefault(below, []).append(place)
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
        """Yield the cases of a node that has parts, as they are stored, in batches."""
        parts = iterate_parts("", content, self.load_cases)
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
