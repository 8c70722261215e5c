"""The names of system prompts, and of what checks refer to."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from evalstore.errors import EvalstoreError
from evalstore.operations.rendering import references_of
from evalstore.planning.open_project import open_catalogue
from evalstore.planning.results import CellResult
from evalstore.results import Result

if TYPE_CHECKING:
    from evalstore.planning.options import Location
    from evalstore.planning.plan import PlanItem
    from evalstore.planning.project import Project
    from evalstore.values import Json

_FEWEST_DIGITS = 4
"""The least number of digits of a shortened id."""
_LISTED = 5
"""The most names in a hint."""


def name_prompts(location: Location, ids: Collection[str | None]) -> dict[str | None, str]:
    """Return the current names of system prompts, else the first digits of their ids.

    No file is read when there are no ids.
    """
    if not ids:
        return {}
    with suppress(EvalstoreError), open_catalogue(location) as project:
        return {id: prompt_label(project, id) for id in ids}
    return {id: "no prompt" if id is None else id[:8] for id in ids}


def name_references(location: Location, evaluations: Iterable[Json]) -> dict[str | None, str]:
    """Return the current names of the prompts and schemas that checks refer to, by id.

    No file is read when there are none.
    """
    if references := [*references_of(evaluations)]:
        with suppress(EvalstoreError), open_catalogue(location) as project:
            return reference_names(project, references)
    return {}


def reference_names(
    project: Project, references: Iterable[tuple[str, str]]
) -> dict[str | None, str]:
    """Return the current names of these versions, each a kind and an id; by id."""
    places = {id: project.place_of_version(kind, id) for kind, id in references}
    return {id: place[0] for id, place in places.items() if place}


def prompt_labels(
    project: Project, places: Iterable[CellResult | Result | PlanItem]
) -> dict[str, dict[str | None, str]]:
    """Return the name of each system prompt, for test files that have several."""
    prompts: dict[str, dict[str | None, None]] = {}
    for place in places:
        file = place.cell.file if isinstance(place, CellResult) else place.file
        prompt = place.cell.prompt if isinstance(place, CellResult) else place.prompt
        prompts.setdefault(file, {})[prompt] = None
    return {
        file: {prompt: prompt_label(project, prompt) for prompt in ids}
        for file, ids in prompts.items()
        if len(ids) > 1
    }


def name_field(prompts: Mapping[str, Mapping[str | None, str]], result: Result) -> dict[str, str]:
    """Return the name of the system prompt as a field of JSON; empty if its file has only one.

    `prompts` has the names by file and id, as `prompt_labels` returns them.
    """
    name = prompts.get(result.file, {}).get(result.prompt)
    return {} if name is None else {"promptName": name}


def prompt_label(project: Project, prompt: str | None) -> str:
    """Return the current name of a system prompt, else the start of its id."""
    if prompt is None:
        return "no prompt"
    place = project.place_of_version("prompt", prompt)
    if place is None:
        return prompt[:8]
    name, number = place
    return name if len(project.reading.names["prompts"][name]) == 1 else f"{name} {number + 1}"


def find_prompt(names: Mapping[str | None, str], named: str) -> str | None:
    """Return the id of the system prompt with a name, or with the first digits of its id.

    `names` is by id; the id None is that of no prompt. Raises `EvalstoreError`.
    """
    ids = [id for id, name in names.items() if name == named]
    if not ids and len(named) >= _FEWEST_DIGITS:
        ids = [id for id in names if id and id.startswith(named)]
    if len(ids) != 1:
        raise EvalstoreError(
            f"no system prompt is called '{named}'",
            hint=f"name one with --prompt: {list_names(names.values())}",
        )
    return ids[0]


def list_names(names: Iterable[str]) -> str:
    """Return the first of the names in their order, for a hint."""
    listed = sorted(set(names))
    return ", ".join(listed[:_LISTED]) + (", …" if len(listed) > _LISTED else "")
