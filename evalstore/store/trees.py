"""Snapshots and result trees: content-addressed maps from test file to leaf.

A tree is a leaf node with at most 16 entries, or a node with a child for each next
digit of the path's digest. Its shape depends on its entries alone, so equal maps have
equal ids, and a changed entry costs a few small nodes whatever the size of the map.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from evalstore import hashing
from evalstore.store.contents import damaged
from evalstore.values import Json

_ENTRIES = 16
_DEEPEST = 32
"""Levels of a tree: one for each digit of a digest."""

Load = Callable[[Iterable[str]], Mapping[str, Json]]


def build_tree(entries: Mapping[str, str]) -> tuple[str, dict[str, tuple[str, str]]]:
    """The id of the tree of these entries, and the contents of all its nodes."""
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
        for one in paths:
            groups.setdefault(one[0][depth], []).append(one)
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
    """The entries of a tree; with `unlike`, without the subtrees that another tree has too."""
    entries: dict[str, str] = {}
    level, other = [root], [unlike] if unlike else []
    for _ in _levels(root):
        if not level:
            break
        same = set(level) & set(other)
        level = [id for id in level if id not in same]
        other = [id for id in other if id not in same] if level else []
        found = load([*level, *other])
        following: list[str] = []
        following_other: list[str] = []
        for id in level:
            entries.update(found[id].get("entries", {}))
            following += found[id].get("children", {}).values()
        for id in other:
            following_other += found[id].get("children", {}).values()
        level, other = list(dict.fromkeys(following)), list(dict.fromkeys(following_other))
    return entries


def find_entry(roots: Iterable[str], path: str, load: Load) -> dict[str, str]:
    """The entry of one path in each of several trees that has it, by root.

    Only the nodes on the way to it are loaded.
    """
    digits = iter(hashing.hash_bytes(path.encode()))
    found: dict[str, str] = {}
    level = {root: root for root in roots}
    for _ in _levels(next(iter(level), "")):
        if not level:
            break
        nodes = load(level.values())
        digit = next(digits, "")
        following: dict[str, str] = {}
        for root, id in level.items():
            node = nodes[id]
            if path in node.get("entries", {}):
                found[root] = node["entries"][path]
            elif digit in node.get("children", {}):
                following[root] = node["children"][digit]
        level = following
    return found


def _levels(root: str) -> Iterator[int]:
    """The levels of a tree; raises `StoreError` after the last: a node contains itself."""
    yield from range(_DEEPEST + 1)
    raise damaged("nodes", root, "it is a tree in which a node contains itself")
