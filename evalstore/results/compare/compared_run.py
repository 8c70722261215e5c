"""Chooses the run that results are compared with where none is named."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalstore.planning.options import is_partial
from evalstore.store.runs import RUNS_SEARCHED
from evalstore.store.trees.path_trees import read_tree

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evalstore.core.runs import Run
    from evalstore.store import Store


def find_compared_run(
    store: Store, run: Run | None = None, *, recorded: Mapping[str, str] | None = None
) -> Run | None:
    """Return the newest run before `run`, or of all for the workspace; None without one.

    It does not matter what it covered: a case that it did not judge is compared with the last run
    that judged it. A report shows what changed last, so it passes the leaves of its test files:
    where the last run of all cases has `recorded` these, the run before that one is returned.
    """
    newest = next(store.find_recent_runs(before=run, limit=1), None)
    whole = None if recorded is None else find_recording_run(store, recorded)
    return next(store.find_recent_runs(before=whole, limit=1), newest) if whole else newest


def find_recording_run(store: Store, recorded: Mapping[str, str]) -> Run | None:
    """Return the last run of all cases, or else the last run, if it has these leaves."""
    runs = [*store.find_recent_runs(limit=RUNS_SEARCHED)]
    for run in [*(run for run in runs if not is_partial(run)), *runs][:1]:
        return run if read_tree(run.snapshot, store.load_nodes) == recorded else None
    return None
