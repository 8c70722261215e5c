"""Which test file of one tree of cases is which of another: by id, by path, by content.

What a test file is known by is the `id` of its frontmatter, wherever it lies, else its path
without the suffix. A file that is gone while another has the same content was renamed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

Leaves = Mapping[str, str]
"""From the paths of test files to the leaves with their cases."""
Ids = Callable[[Leaves], Mapping[str, str]]
"""From some of the files to the ids by which they are known, by path."""


def pair_files(was: Leaves, now: Leaves, ids_was: Ids, ids_now: Ids) -> dict[str, str]:
    """The path that each test file had, by the path that it has now; new ones are left out.

    Files that are the same in the same place on both sides are not looked into.
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
        if leaf in by_leaf:
            pairs[path] = by_leaf.pop(leaf)
    return pairs


def _by_id(ids: Mapping[str, str]) -> dict[str, str]:
    """The paths of files by their ids; an id that several have is no id."""
    counts = Counter(ids.values())
    return {id: path for path, id in ids.items() if counts[id] == 1}
