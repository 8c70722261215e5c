"""Snapshots and result trees: content-addressed maps from test file to leaf.

A tree is a leaf node with at most 16 entries, or a node with a child for each next digit of the
path's digest. Its shape depends on its entries alone, so equal maps have equal ids, and a changed
entry changes a few small nodes, independent of the size of the map.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from evalstore.core import hashing
from evalstore.core.values import Json
from evalstore.store.contents import damaged

_ENTRIES = 16
_DEEPEST = 32
"""The most levels of a tree: one for each digit of a digest."""

Load = Callable[[Iterable[str]], Mapping[str, Json]]


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
