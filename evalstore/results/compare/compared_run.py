"""Chooses the run that results are compared with where none is named."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evalstore.core.runs import Run
    from evalstore.store import Store


def find_compared_run(store: Store, run: Run | None = None) -> Run | None:
    """Return the newest run before `run`, or of all for the workspace; None without one.

    It does not matter what it covered: a case that it did not judge is compared with the last run
    that judged it.
    """
    return next(store.find_recent_runs(before=run, limit=1), None)
