"""The names in a workspace that a shell offers, and that need more than a list of `ls`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalstore.planning.open_project import open_project, open_store
from evalstore.planning.project import files_of
from evalstore.results.prompt_names import name_prompts_of_cases

if TYPE_CHECKING:
    from evalstore.planning.options import Location


def prompt_names(location: Location) -> list[str]:
    """Return the names of the system prompts of cases that have several.

    Raises `EvalstoreError`.
    """
    with open_project(location) as project:
        cases = [case for file in files_of(project.reading).values() for case in file.cases]
        named = name_prompts_of_cases(project, (case for case in cases if len(case.prompts) > 1))
    return list(dict.fromkeys(name for names in named.values() for name in names.values()))


def names_of_rows(location: Location, path: str) -> list[tuple[str, list[str]]]:
    """Return the rows of a test file, each with the names of its system prompts if it has several.

    Raises `EvalstoreError`.
    """
    with open_project(location) as project:
        file = files_of(project.reading).get(path)
        cases = file.cases if file else ()
        named = name_prompts_of_cases(project, (case for case in cases if len(case.prompts) > 1))
    return [(case.row, [*named.get(case.prompts, {}).values()]) for case in cases]


def files_to_trust(location: Location) -> list[str]:
    """Return the paths of the files that wait for trust, from the current folder.

    Raises `EvalstoreError`.
    """
    with open_project(location) as project:
        project.code.look_at(files_of(project.reading).items())
        project.code.note_models(project.reading.models)
        return list(dict.fromkeys(file.typed for file in project.code.named))


def runs_in_progress(location: Location) -> list[str]:
    """Return the ids of the runs in progress, the newest first; raises `EvalstoreError`."""
    with open_store(location) as store:
        return [run.id for run in store.find_shared_runs() if not run.error]
