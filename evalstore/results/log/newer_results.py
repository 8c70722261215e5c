"""Finds the newest run after a given one, and the newest result of a case in later runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING, NamedTuple

from evalstore.core.results import Result
from evalstore.core.runs import Run
from evalstore.core.values import Case
from evalstore.planning.cells.earlier_results import find_cells
from evalstore.planning.open_project import open_store
from evalstore.planning.options import Location, is_partial
from evalstore.store.rows.row_results import RowResults
from evalstore.store.trees.path_trees import find_entry

if TYPE_CHECKING:
    from evalstore.store import Store

_RUNS = 20
"""Later runs in which a result is looked for."""


class NewerRun(NamedTuple):
    """A run after the one that is shown."""

    run: str
    is_partial: bool
    """Whether it left out some cases or candidates."""
    result: Result | None = None
    """What it has for the case that is shown, if that differs from what is shown."""


def find_newer_run(location: Location, run: str) -> NewerRun | None:
    """Return the newest run, unless it is this one."""
    with open_store(location) as store:
        newest = next(_later_runs(store, run), None)
    return NewerRun(newest.id, is_partial(newest)) if newest else None


def find_newer_result(location: Location, run: str, result: Result) -> NewerRun | None:
    """Return the newest later run that has the case; None if its result there is the same."""
    with open_store(location) as store:
        prompts: Sequence[str | None] = ()
        for later in _later_runs(store, run):
            if not prompts:
                own = _find_same_cell(store, store.load_run(run), result, (result.prompt,))
                prompts = own[1].prompts if own else (result.prompt,)
            other = _find_same_cell(store, later, result, prompts)
            if other is not None:
                same = _what_counts(other[0]) == _what_counts(result)
                return None if same else NewerRun(later.id, is_partial(later), other[0])
    return None


def _later_runs(store: Store, run: str) -> Iterator[Run]:
    """Yield the runs after a run, the newest first."""
    return takewhile(lambda other: other.id != run, store.find_recent_runs(limit=_RUNS))


def _find_same_cell(
    store: Store, run: Run, result: Result, prompts: Sequence[str | None]
) -> tuple[Result, Case] | None:
    """Return the same cell in a run; `prompts` are the system prompts of its case."""
    leaf = find_entry({run.results}, result.file, store.load_nodes).get(run.results)
    leaves = {result.file: leaf} if leaf else {}
    return find_cells(RowResults(store), leaves, [(result, prompts)])[0]


def _what_counts(result: Result) -> tuple[object, ...]:
    return result.verdict, result.sessions, result.evaluations
