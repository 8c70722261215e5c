"""The command `show @work`: the current cases of the workspace, or of one test file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalstore import hashing
from evalstore.operations.prompt_names import name_prompts, reference_names
from evalstore.operations.rendering import references_of
from evalstore.operations.show import (
    ShownItem,
    cases_related,
    find_test_file,
    several_prompts,
)
from evalstore.operations.shown_results import ShownResults, result_to_json
from evalstore.operations.side_names import WORKSPACE
from evalstore.operations.workspace_results import iterate_workspace
from evalstore.planning.open_project import open_project
from evalstore.planning.options import SelectionOptions
from evalstore.planning.planner import make_plan, require_sound
from evalstore.planning.results import as_result, compute_results
from evalstore.values import order_counts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalstore.planning.options import Location
    from evalstore.planning.project import Project
    from evalstore.results import Result
    from evalstore.values import CaseFile


def show_workspace(location: Location, *, in_file: bool = False) -> ShownItem:
    """Return all cases with their verdicts from stored answers and judgements.

    The id is that of the snapshot that a run would store. With `in_file`, the results are in a
    temporary file.
    """
    with open_project(location) as project:
        require_sound(project, SelectionOptions())
        batches = ([result for result, _ in batch] for batch in iterate_workspace(project))
        results = ShownResults(batches)
        id, _ = project.snapshot()
    return ShownItem(
        WORKSPACE,
        id,
        {"verdicts": order_counts(results.counts)},
        {"results": results if in_file else [*results]},
        name_prompts(location, results.prompts),
    )


def show_workspace_file(
    location: Location, path: str, chosen: Sequence[Result] | None = None
) -> ShownItem:
    """Return the current cases of a test file, with their results, or those that are chosen.

    Raises `RevisionError` if there is no such file.
    """
    with open_project(location) as project:
        require_sound(project, SelectionOptions())
        name = find_test_file(location, project.workspace, project.reading.files, path, WORKSPACE)
        file = project.reading.files[name]
        content = project.store.load_whole(hashing.describe_case_file(file))
        every = [result_to_json(result) for result in _find_results(project, name, file)]
        results = every if chosen is None else [result_to_json(result) for result in chosen]
        related = {
            "file": name,
            **cases_related(project.versions.load, file.cases),
            "results": results,
        }
        item = ShownItem("cases", project.reading.nodes[name], content, related)
        item.prompts = name_prompts(location, several_prompts(every))
        item.references = reference_names(project, references_of(related["evaluations"].values()))
        return item


def _find_results(project: Project, name: str, file: CaseFile) -> list[Result]:
    """Return the current results of a test file; none if there is no candidate to answer it."""
    if not project.settings.candidates and not all(case.recorded for case in file.cases):
        return []
    plan = make_plan(project, SelectionOptions(paths=(f"{project.workspace.root / name}",)))
    return [as_result(result) for result in compute_results(plan, project.settings.verdict)]
