"""Which rows a push copies that leaves out cases with some tags."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from evalstore.errors import EvalstoreError
from evalstore.files.fields import nearest, suggest
from evalstore.operations.tagged_versions import find_tagged_versions
from evalstore.planning.open_project import open_project
from evalstore.planning.options import SelectionOptions
from evalstore.planning.planner import require_sound
from evalstore.planning.unknown_names import require_tag
from evalstore.sharing.exclusion import SharedRows, find_shared_rows

if TYPE_CHECKING:
    from evalstore.planning.options import Location
    from evalstore.sharing.differences import IdSource


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
