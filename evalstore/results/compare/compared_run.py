"""Chooses the run that results are compared with where none is named."""

from __future__ import annotations

from itertools import chain
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
    runs = store.find_recent_runs(before=run, limit=RUNS_SEARCHED)
    newest = next(runs, None)
    if newest is None or recorded is None:
        return newest
    whole = next((each for each in chain([newest], runs) if not is_partial(each)), newest)
    if read_tree(whole.snapshot, store.load_nodes) != recorded:
        return newest
    return next(store.find_recent_runs(before=whole, limit=1), newest)
