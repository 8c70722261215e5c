"""Selects the cases that `diff` compares, by the paths of its command line."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from evalstore.comparison.placed_results import PlacedResults
from evalstore.core.errors import NothingSelectedError
from evalstore.core.side_names import WORKSPACE
from evalstore.planning.path_targets import find_targets, name_file, name_prompt_file
from evalstore.planning.selection import Selection
from evalstore.results.compare.diff_sides import case_files
from evalstore.results.prompt_names import label_prompts

if TYPE_CHECKING:
    from evalstore.planning.project import Project
    from evalstore.planning.selection import Target
    from evalstore.results.compare.compared_side import Side


def select_cases(project: Project, paths: tuple[str, ...], *sides: Side) -> Selection:
    """Return the cases of the sides that the paths select; raises `EvalstoreError`.

    The last side is the newer one. A row may be one of either side, by its label there.
    """
    if not paths:
        return Selection()
    targets: dict[Target, None] = {}
    problem: NothingSelectedError | None = None
    for order in (sides, sides[::-1])[: len(sides)]:
        try:
            if order[-1].name == WORKSPACE:
                targets.update(dict.fromkeys(project.targets(paths)))
            else:
                targets.update(dict.fromkeys(_find_stored(project, paths, *order)))
        except NothingSelectedError as error:
            problem = problem or error
    if problem and not targets:
        raise problem
    return Selection(tuple(targets))


def _find_stored(project: Project, paths: tuple[str, ...], *sides: Side) -> tuple[Target, ...]:
    """Return what the paths select, with the rows that the last side has."""
    files, location, workspace = case_files(*sides), project.location, project.workspace
    versions: dict[str, set[str]] = {}
    if any(name_prompt_file(workspace, name_file(location, workspace, path)) for path in paths):
        cases = (case for file in files.values() for case in file.cases)
        ids = {id for case in cases for id in (*case.prompts, *case.judge_prompts) if id}
        for id, name in label_prompts(project, dict.fromkeys(ids)).items():
            versions.setdefault(name, set()).add(id or "")
    return find_targets(location, workspace, files.keys(), files, paths, versions)


def only_rows(selected: Selection, *sides: Side) -> tuple[Side, ...]:
    """Return the sides with only the results of the selected rows, and of what they were before.

    All results stay if no path names a row.
    """
    if not selected.is_by_row:
        return sides
    keys = {
        (result.file, result.key)
        for side in sides
        for result in side.results
        if result.key and selected.covers_row(result.file, result.row)
    }
    return tuple(
        replace(
            side,
            results=PlacedResults(
                result
                for result in side.results
                if selected.covers_row(result.file, result.row) or (result.file, result.key) in keys
            ),
        )
        for side in sides
    )
