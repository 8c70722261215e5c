"""Which rows a push copies that leaves out cases with some tags."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evalstore.core.errors import EvalstoreError
from evalstore.files.fields import nearest, suggest
from evalstore.planning.open_project import open_project
from evalstore.planning.options import SelectionOptions
from evalstore.planning.planner import require_sound
from evalstore.planning.reasons.unknown_names import require_tag
from evalstore.remotes.places.exclusion import SharedRows, find_shared_rows
from evalstore.store.references import iterate_case_references
from evalstore.store.trees.case_files import iterate_unseen
from evalstore.store.trees.path_trees import read_tree

if TYPE_CHECKING:
    from evalstore.core.values import Json
    from evalstore.planning.options import Location
    from evalstore.planning.project import Project
    from evalstore.remotes.differences import IdSource


def find_untagged_rows(
    location: Location,
    tags: Sequence[str],
    usual_tags: Sequence[str] = (),
    within: IdSource | None = None,
    *,
    with_failures: bool = False,
) -> SharedRows:
    """Return the rows that have nothing to do with cases with these tags.

    With `within`, only rows that it has, and what they refer to. Raises `EvalstoreError`, also for
    test files with errors, whose tags are not known, and for one of `tags` that no case has; of
    `usual_tags`, cases may have none yet.
    """
    if with_failures:
        raise EvalstoreError(
            "'--with-failures' cannot be combined with excluded tags",
            hint="a failed call does not say which test it was about",
        )
    with open_project(location) as project:
        require_sound(project, SelectionOptions())
        versions = find_tagged_versions(project, {*tags, *usual_tags})
        require_tag(tags, versions.tags)
        for tag in sorted(set(usual_tags) - versions.tags):
            text = f"no case has the tag '{tag}', which the remote excludes"
            if nearest(tag, versions.tags):  # what should stay here would be pushed
                raise EvalstoreError(text, hint=suggest(tag, versions.tags, "tags"))
            location.warn(text)
        return find_shared_rows(project.store, versions.shared, versions.excluded, within)


# --- which versions tests without a tag have, for `push --exclude-tag`


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
    seen: set[str] = set()
    """Nodes whose cases were read: versions of a file have most of them in common."""
    for case in _cases_of(project, project.reading.nodes.values(), seen):
        is_tagged = not unwanted.isdisjoint(case.get("tags", ()))
        known.update(case.get("tags", ()))
        (tagged if is_tagged else shared).update(iterate_case_references(case))
        if is_tagged:
            tagged_tests.update(case["tests"])
    for case in _cases_of(project, _stored_leaves(project), seen):
        known.update(case.get("tags", ()))
        if not unwanted.isdisjoint(case.get("tags", ())):
            tagged.update(iterate_case_references(case))
            tagged_tests.update(case["tests"])
    shared -= tagged_tests
    return TaggedVersions(_as_bytes(shared), _as_bytes(tagged - shared), frozenset(known))


def _stored_leaves(project: Project) -> list[str]:
    """Return the nodes of all versions of test files in runs."""
    store = project.store
    leaves: dict[str, None] = {}
    newer: str | None = None
    for run in store.find_runs():
        entries = read_tree(run.snapshot, store.load_nodes, unlike=newer)
        leaves |= dict.fromkeys(entries.values())
        newer = run.snapshot
    return list(leaves)


def _cases_of(project: Project, leaves: Iterable[str], seen: set[str]) -> Iterator[Json]:
    """Yield the cases of nodes, as JSON."""
    unstored = project.reading.contents

    def load(ids: Iterable[str]) -> Mapping[str, Json]:
        here = {id: json.loads(unstored[id][1]) for id in ids if id in unstored}
        return {**here, **project.store.load_cases(id for id in ids if id not in here)}

    for content in iterate_unseen(leaves, load, seen):
        yield from content["cases"]


def _as_bytes(ids: Iterable[str]) -> frozenset[bytes]:
    return frozenset(map(bytes.fromhex, ids))
