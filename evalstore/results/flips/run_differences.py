"""Counts the verdicts of runs that differ from the last earlier ones, and names flips.

They are those that `run` and `log` report and that `VerdictChanges` has.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import NamedTuple

from evalstore.core.display import StyledLine, case_name
from evalstore.core.results import Result
from evalstore.core.runs import Run
from evalstore.core.values import Case
from evalstore.planning.open_project import open_store, open_workspace
from evalstore.planning.options import Location
from evalstore.results.flips.flips_text import changes_line
from evalstore.results.flips.verdict_changes import VerdictChanges, find_verdict_changes
from evalstore.results.prompt_names import name_prompts
from evalstore.store import Store
from evalstore.store.results import iterate_cases

_LISTED = 8
"""The most results that are named of those that broke, and of those that were fixed."""
_FILES = 200
"""The most files with new failures that are named."""


class RunDifferences(NamedTuple):
    """How many results of a run have another verdict than the last earlier one on their case."""

    is_first: bool = False
    """Whether it is the first run."""
    broke: int = 0
    fixed: int = 0
    others: int = 0
    """How many differ otherwise: they fail in another way, are pending now, or are new failures."""
    line: StyledLine | None = None
    """`since the run before: 1 broke, 2 fixed`, as `run` says it; None if nothing differs."""
    names: tuple[tuple[str, str], ...] = ()
    """The first of those that broke, or were fixed: which of the two, and the case."""
    new_failures: tuple[tuple[str, int], ...] = ()
    """Files with how many of their results broke, or fail and are new; those with most first."""

    @property
    def is_hidden(self) -> bool:
        """Return whether a difference of pass rates does not show all of them."""
        return bool((self.broke and self.fixed) or self.others)


def read_run_differences(location: Location, runs: Iterable[str]) -> dict[str, RunDifferences]:
    """Return the differences of runs by id."""
    workspace = open_workspace(location)
    folder = workspace.settings.paths["tests"]
    found = {}
    with open_store(location) as store:
        for id in runs:
            run = store.load_run(id)
            changes = find_verdict_changes(store, folder, run)
            found[id] = (
                _describe(location, store, run, changes) if changes else RunDifferences(True)
            )
    return found


def _describe(
    location: Location, store: Store, run: Run, changes: VerdictChanges
) -> RunDifferences:
    failing = Counter(result.file for result in chain(changes.broke, changes.new))
    return RunDifferences(
        broke=len(changes.broke),
        fixed=len(changes.fixed),
        others=changes.other_verdicts + len(changes.pending) + len(changes.new),
        line=changes_line(changes, "the run before") if changes.is_any or changes.new else None,
        names=tuple(_name(location, store, run, changes)),
        new_failures=tuple(failing.most_common(_FILES)),
    )


def _name(
    location: Location, store: Store, run: Run, changes: VerdictChanges
) -> Iterator[tuple[str, str]]:
    """Yield the names of results, with the system prompt in files whose cases have several."""
    flips = {"broke": changes.broke[:_LISTED], "fixed": changes.fixed[:_LISTED]}
    results = [result for listed in flips.values() for result in listed]
    files = dict.fromkeys(result.file for result in results)
    several = {file for file in files if has_several_prompts(store, run, file)}
    prompts = name_prompts(location, {it.prompt for it in results if it.file in several})
    for change, listed in flips.items():
        for result in listed:
            prompt = prompts[result.prompt] if result.file in several else None
            yield change, f"{case_name(result.file, result.row, prompt)} {result.model}"


def has_several_prompts(store: Store, run: Run, file: str) -> bool:
    """Return whether the cases of a file had several system prompts in a run."""
    first: list[tuple[Result, Case]] = next(iterate_cases(store, run, file), [])
    return any(len(case.prompts) > 1 for _, case in first)
