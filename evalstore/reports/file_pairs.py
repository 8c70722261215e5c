"""Pairs the test files of two trees of cases by id, path and content.

The id of a test file is the `id` of its frontmatter, else its path without the suffix. A file
that is gone while a new one has the same content was renamed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping

Leaves = Mapping[str, str]
"""From the paths of test files to the leaves of their cases."""
Ids = Callable[[Leaves], Mapping[str, str]]
"""From leaves of files to the ids of the files, by path."""

Same = Callable[[str, Collection[str]], str | None]
"""From a leaf of the newer tree to one of these older leaves that has the same content."""


def pair_files(
    was: Leaves, now: Leaves, ids_was: Ids, ids_now: Ids, same: Same = lambda _leaf, _others: None
) -> dict[str, str]:
    """Return the earlier path of each test file, by its current path; new files are left out.

    Files that are equal at the same path are not read. `same` is called for leaves that only one
    side has: under another scheme of nodes they may have the same content.
    """
    pairs = {path: path for path, leaf in now.items() if was.get(path) == leaf}
    old = {path: leaf for path, leaf in was.items() if path not in pairs}
    new = {path: leaf for path, leaf in now.items() if path not in pairs}
    if not old or not new:
        return pairs
    if old.keys() != new.keys() or len(new) > 1:
        before = _by_id(ids_was(old))
        for id, path in _by_id(ids_now(new)).items():
            if id in before:
                pairs[path] = before[id]
                del old[before[id]], new[path]
    for path in [path for path in new if path in old]:
        pairs[path] = path
        del old[path], new[path]
    by_leaf = {leaf: path for path, leaf in reversed(old.items())}
    for path, leaf in new.items():
        match = leaf if leaf in by_leaf else same(leaf, by_leaf)
        if match is not None:
            pairs[path] = by_leaf.pop(match)
    return pairs


def _by_id(ids: Mapping[str, str]) -> dict[str, str]:
    """Return the paths of files by their ids; an id of several files is left out."""
    counts = Counter(ids.values())
    return {id: path for path, id in ids.items() if counts[id] == 1}
