"""The command `show @work`: the current cases of the workspace, or of one test file."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from evalstore.core import hashing
from evalstore.core.batches import in_batches
from evalstore.core.display import WORKSPACE
from evalstore.core.values import CaseFile, order_counts
from evalstore.planning.open_project import open_project
from evalstore.planning.options import SelectionOptions
from evalstore.planning.planner import require_sound, resolve_scope
from evalstore.planning.results import as_result
from evalstore.planning.status.workspace_results import compute_workspace, iterate_workspace
from evalstore.results.log.files_of_runs import find_test_file
from evalstore.results.prompt_names import name_prompts, reference_names
from evalstore.results.rendering import references_of
from evalstore.results.show.show import ShownItem
from evalstore.results.show.shown_results import ShownCases, ShownResults, cases_related

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evalstore.core.results import Result
    from evalstore.core.values import Json
    from evalstore.planning.options import Location
    from evalstore.planning.project import Project


def show_workspace(location: Location) -> ShownItem:
    """Return all cases with their verdicts from stored answers and judgements.

    The id is that of the snapshot that a run would store.
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
        {"results": results},
        name_prompts(location, results.prompts),
    )


def show_workspace_file(
    location: Location,
    path: str,
    chosen: ShownResults | None = None,
    *,
    in_file: bool = False,
) -> ShownItem:
    """Return the current cases of a test file, with their results, or those that are chosen.

    With `in_file`, the cases of a long file are in temporary files. Raises
    `RevisionError` if there is no such file.
    """
    with open_project(location) as project:
        require_sound(project, SelectionOptions())
        name = find_test_file(location, project.workspace, project.reading.files, path, WORKSPACE)
        file = project.reading.files[name]
        node = project.reading.nodes[name]
        every = ShownResults(_iterate_results(project, name, file))
        results = every if chosen is None else chosen
        if in_file and not isinstance(file.cases, tuple):
            parts = (CaseFile(tuple(batch)) for batch in in_batches(file.cases))
            described = (hashing.describe_case_file(part)["cases"] for part in parts)
            cases = ShownCases(described, project.versions.load)
            related: dict[str, Json] = {"file": name, "tests": {}, "evaluations": {}}
            content = hashing.describe_case_file(replace(file, cases=()))
            item = ShownItem("cases", node, content, related, cases=cases)
            references = cases.references
        else:
            content = project.store.load_whole(hashing.describe_case_file(file))
            related = {"file": name, **cases_related(project.versions.load, file.cases)}
            item = ShownItem("cases", node, content, related)
            references = [*references_of(related["evaluations"].values())]
        item.related.update(results=results)
        item.prompts = name_prompts(location, every.prompts)
        item.references = reference_names(project, references)
        return item


def _iterate_results(project: Project, name: str, file: CaseFile) -> Iterator[list[Result]]:
    """Yield the current results of a test file; none if there is no candidate to answer it."""
    if not project.settings.candidates and not all(case.recorded for case in file.cases):
        return
    selection = SelectionOptions(paths=(f"{project.workspace.root / name}",))
    for _, results in compute_workspace(project, resolve_scope(project, selection)):
        yield [as_result(result) for result in results]
