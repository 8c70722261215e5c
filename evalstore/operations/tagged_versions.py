"""Which versions belong to cases with a tag, for `push --exclude-tag`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evalstore.planning.path_history import PathHistory
from evalstore.store.path_trees import read_tree

if TYPE_CHECKING:
    from evalstore.planning.project import Project
    from evalstore.values import Case


@dataclass(frozen=True, slots=True)
class TaggedVersions:
    """The ids of what test files refer to, by whether the files have some tags."""

    shared: frozenset[bytes]
    """Versions of tests, system prompts, evaluations and judge prompts of other files."""
    excluded: frozenset[bytes]
    """Those of files with the tags alone, and the leaves of these files in snapshots."""
    tags: frozenset[str]
    """All tags that a case has or had."""


def find_tagged_versions(project: Project, tags: Iterable[str]) -> TaggedVersions:
    """Return the versions of the test files that have one of these tags.

    A tag holds for all earlier versions of its file, too, under its former paths: it may have
    been forgotten. After it was removed, it still holds for the versions until then.
    """
    unwanted, known = frozenset(tags), set[str]()
    shared, excluded = set[str](), set[str]()
    for path, leaves in _find_leaves(project).items():
        is_tagged = False
        for leaf, cases in _versions(project, path, leaves):
            of_version = {tag for case in cases for tag in case.tags}
            known |= of_version
            is_tagged = is_tagged or not unwanted.isdisjoint(of_version)
            for case in cases:
                (excluded if is_tagged else shared).update(_references(case))
            if is_tagged and leaf:
                excluded.add(leaf)
    return TaggedVersions(_as_bytes(shared), _as_bytes(excluded - shared), frozenset(known))


def _find_leaves(project: Project) -> Mapping[str, Collection[str]]:
    """Return the leaves that each test file had in runs, newest first, by its newest path."""
    reading, store = project.reading, project.store
    history = PathHistory(store, project.settings.paths["tests"], reading.nodes, reading.files)
    leaves: dict[str, dict[str, None]] = defaultdict(dict)
    for path in reading.files:
        leaves[path] = {}
    newer: str | None = None
    for run in store.find_runs():
        history.step(run.snapshot)
        for path, leaf in read_tree(run.snapshot, store.load_nodes, unlike=newer).items():
            leaves[history.newest_path(path) or path][leaf] = None
        newer = run.snapshot
    return leaves


def _versions(
    project: Project, path: str, leaves: Iterable[str]
) -> Iterator[tuple[str | None, Collection[Case]]]:
    """Yield the versions of a test file, newest first; that of the workspace without its leaf."""
    if path in project.reading.files:
        yield None, project.reading.files[path].cases
    for leaf in leaves:
        yield leaf, project.store.load_case_files([leaf])[leaf].cases


def _references(case: Case) -> Iterator[str]:
    yield from case.tests
    yield from filter(None, case.prompts)
    yield from case.judge_prompts
    if case.evaluation:
        yield case.evaluation


def _as_bytes(ids: Iterable[str]) -> frozenset[bytes]:
    return frozenset(map(bytes.fromhex, ids))
