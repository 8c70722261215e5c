"""Selects the cases that `diff` compares, by the paths of its command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalstore.operations.diff_sides import case_files
from evalstore.operations.prompt_names import label_prompts
from evalstore.operations.side_names import WORKSPACE
from evalstore.planning.path_targets import find_targets, name_file, name_prompt_file
from evalstore.planning.selection import Selection

if TYPE_CHECKING:
    from evalstore.operations.compared_side import Side
    from evalstore.planning.project import Project


def select_cases(project: Project, paths: tuple[str, ...], *sides: Side) -> Selection:
    """Return the cases of the sides that the paths select; raises `EvalstoreError`."""
    if not paths:
        return Selection()
    if any(side.name == WORKSPACE for side in sides):
        return Selection(project.targets(paths))
    files, location, workspace = case_files(*sides), project.location, project.workspace
    versions: dict[str, set[str]] = {}
    if any(name_prompt_file(workspace, name_file(location, workspace, path)) for path in paths):
        cases = (case for file in files.values() for case in file.cases)
        ids = {id for case in cases for id in (*case.prompts, *case.judge_prompts) if id}
        for id, name in label_prompts(project, dict.fromkeys(ids)).items():
            versions.setdefault(name, set()).add(id or "")
    return Selection(find_targets(location, workspace, files.keys(), files, paths, versions))
