"""Which versions tests without a tag have, for `push --exclude-tag`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evalstore.store.path_trees import read_tree

if TYPE_CHECKING:
    from evalstore.planning.project import Project
    from evalstore.values import Case

_AT_ONCE = 100
"""Versions of test files that are loaded together."""


@dataclass(frozen=True, slots=True)
class TaggedVersions:
    """The ids of what test files refer to, by whether the files have some tags."""

    shared: frozenset[bytes]
    """What the files of the workspace without the tags have now: the versions of their tests,
    system prompts, evaluations and judge prompts. No test of a case with a tag is among them."""
    excluded: frozenset[bytes]
    """What cases with the tags have or had, apart from what is shared."""
    tags: frozenset[str]
    """All tags that a case has or had."""


def find_tagged_versions(project: Project, tags: Iterable[str]) -> TaggedVersions:
    """Return the versions that may be shared when cases with one of these tags may not.

    Earlier versions of files are not among them: a case may have come from any of them, under
    another path or in another file, before it got its tag.
    """
    unwanted, known = frozenset(tags), set[str]()
    shared, tagged, tagged_tests = set[str](), set[str](), set[str]()
    for file in project.reading.files.values():
        for case in file.cases:
            known.update(case.tags)
            (shared if unwanted.isdisjoint(case.tags) else tagged).update(_references(case))
            if not unwanted.isdisjoint(case.tags):
                tagged_tests.update(case.tests)
    for case in _stored_cases(project):
        known.update(case.tags)
        if not unwanted.isdisjoint(case.tags):
            tagged.update(_references(case))
            tagged_tests.update(case.tests)
    shared -= tagged_tests
    return TaggedVersions(_as_bytes(shared), _as_bytes(tagged - shared), frozenset(known))


def _stored_cases(project: Project) -> Iterator[Case]:
    """Yield the cases of all versions of test files in runs."""
    store = project.store
    leaves: dict[str, None] = {}
    newer: str | None = None
    for run in store.find_runs():
        entries = read_tree(run.snapshot, store.load_nodes, unlike=newer)
        leaves |= dict.fromkeys(entries.values())
        newer = run.snapshot
    ids = list(leaves)
    for start in range(0, len(ids), _AT_ONCE):
        for file in store.load_case_files(ids[start : start + _AT_ONCE]).values():
            yield from file.cases


def _references(case: Case) -> Iterator[str]:
    yield from case.tests
    yield from filter(None, case.prompts)
    yield from case.judge_prompts
    if case.evaluation:
        yield case.evaluation


def _as_bytes(ids: Iterable[str]) -> frozenset[bytes]:
    return frozenset(map(bytes.fromhex, ids))
