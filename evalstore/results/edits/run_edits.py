"""Finds what was edited before each run: test files, prompts, candidates and evaluators."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalstore.planning.open_project import open_workspace
from evalstore.planning.options import is_partial
from evalstore.planning.reasons.version_reader import VersionReader
from evalstore.results.edits.edited_files import find_file_edits
from evalstore.results.edits.participant_edits import find_participant_edits
from evalstore.results.prompt_names import PromptNames

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evalstore.comparison.version_diff import Difference
    from evalstore.core.runs import Run
    from evalstore.planning.options import Location
    from evalstore.store import Store


def find_run_edits(
    location: Location, store: Store, runs: Sequence[Run]
) -> list[tuple[Difference, ...]]:
    """Return the edits that each of these runs was the first to judge; runs are newest first."""
    names = PromptNames(location)
    before = _find_runs_before(store, runs)
    of_files = find_file_edits(store, open_workspace(location), names, runs, before)
    of_participants = find_participant_edits(store, runs, VersionReader(store).find, names)
    return [(*files, *others) for files, others in zip(of_files, of_participants, strict=True)]


def _find_runs_before(store: Store, runs: Sequence[Run]) -> Iterator[Run]:
    """Yield the runs before these until one of all cases, which judged every edit before it."""
    for run in store.find_recent_runs(before=runs[-1]) if runs else ():
        yield run
        if run.origin is None and not is_partial(run):
            return
