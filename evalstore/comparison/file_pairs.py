"""Pairs the test files of two trees of cases by id, path and content.

The id of a test file is the `id` of its frontmatter, else its path without the suffix. A file
that is gone while a new one has the same content was renamed; so was one whose cases are mostly the
same, if no other file is as similar.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping

from evalstore.core.values import CaseFile

Leaves = Mapping[str, str]
"""From the paths of test files to the leaves of their cases."""
Ids = Callable[[Leaves], Mapping[str, str]]
"""From leaves of files to the ids of the files, by path."""

Same = Callable[[str, Collection[str]], str | None]
"""From a leaf of the newer tree to one of these older leaves that has the same content."""

Alike = Callable[[Leaves, Leaves], Mapping[str, str]]
"""From older and newer leaves without partners to the older paths of similar files, by path."""


def pair_files(
    was: Leaves,
    now: Leaves,
    ids_was: Ids,
    ids_now: Ids,
    same: Same = lambda _leaf, _others: None,
    alike: Alike = lambda _was, _now: {},
) -> dict[str, str]:
    """Return the earlier path of each test file, by its current path; new files are left out.

    Files that are equal at the same path are not read. `same` is called for leaves that only one
    side has: under another scheme of nodes they may have the same content. `alike` is called for
    the files that are left.
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
    used = set(pairs.values())
    old = {path: leaf for path, leaf in old.items() if path not in used}
    new = {path: leaf for path, leaf in new.items() if path not in pairs}
    return {**pairs, **alike(old, new)} if old and new else pairs


def _by_id(ids: Mapping[str, str]) -> dict[str, str]:
    """Return the paths of files by their ids; an id of several files is left out."""
    counts = Counter(ids.values())
    return {id: path for path, id in ids.items() if counts[id] == 1}


_MOST_SHARED = 20
"""Rows or tests that more files share do not tell which file is which."""


def pair_alike(
    files_was: Mapping[str, CaseFile], files_now: Mapping[str, CaseFile], was: Leaves, now: Leaves
) -> dict[str, str]:
    """Return the earlier paths of files with mostly the same tests, else mostly the same rows.

    At least half of the cases on both sides must be equal, and no other file may be as similar.
    Files with two different ids in their frontmatter are never paired. `files_was` and
    `files_now` are the cases of these files, by leaf.
    """
    pairs: dict[str, str] = {}
    for features in (_tests, _rows):
        old = {path: files_was[leaf] for path, leaf in was.items() if path not in pairs.values()}
        new = {path: files_now[leaf] for path, leaf in now.items() if path not in pairs}
        pairs |= _pair_by(features, old, new)
    return pairs


def _tests(file: CaseFile) -> Counter[Hashable]:
    return Counter(tuple(sorted(set(case.tests))) for case in file.cases)


def _rows(file: CaseFile) -> Counter[Hashable]:
    """Return the rows of a file; the row of a file with a single case says nothing about it."""
    return Counter(case.key for case in file.cases) if len(file.cases) > 1 else Counter()


def _pair_by(
    features: Callable[[CaseFile], Counter[Hashable]],
    was: Mapping[str, CaseFile],
    now: Mapping[str, CaseFile],
) -> dict[str, str]:
    """Pair files that are each other's only best match by these features."""
    old = {path: features(file) for path, file in was.items()}
    new = {path: features(file) for path, file in now.items()}
    holders: dict[Hashable, list[str]] = {}
    for path, counts in old.items():
        for feature in counts:
            holders.setdefault(feature, []).append(path)
    equal: Counter[tuple[str, str]] = Counter()
    for path, counts in new.items():
        for feature, count in counts.items():
            others = holders.get(feature, [])
            for other in others if len(others) <= _MOST_SHARED else ():
                equal[other, path] += min(count, old[other][feature])
    likely: dict[tuple[str, str], float] = {}
    for (before, path), count in equal.items():
        ids = {was[before].id, now[path].id} - {None}
        size = max(old[before].total(), new[path].total())
        if 2 * count >= size and len(ids) < 2:
            likely[before, path] = count / size
    from_old = _best((before, path, share) for (before, path), share in likely.items())
    from_new = _best((path, before, share) for (before, path), share in likely.items())
    return {path: before for path, before in from_new.items() if from_old.get(before) == path}


def _best(matches: Iterable[tuple[str, str, float]]) -> dict[str, str]:
    """Return the only best match of each path; a path with several best matches is left out."""
    shares: dict[str, dict[str, float]] = {}
    for path, other, share in matches:
        shares.setdefault(path, {})[other] = share
    best: dict[str, str] = {}
    for path, by_other in shares.items():
        first = max(by_other, key=by_other.__getitem__)
        if list(by_other.values()).count(by_other[first]) == 1:
            best[path] = first
    return best
