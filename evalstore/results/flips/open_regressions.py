"""Finds the regressions of a run that broke in an earlier one, and names them for its reports."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from evalstore.core.display import plural, short
from evalstore.results.flips.regressions import (
    find_regressions,
    keep_regressions,
    without_files,
)
from evalstore.results.growing_results import cell_of
from evalstore.store.results import iterate_results
from evalstore.store.trees.path_trees import read_tree
from evalstore.workspace.digest_set import DigestSet, digest_of_value

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from evalstore.comparison.comparison import Pair
    from evalstore.core.runs import Run
    from evalstore.planning.project import Project
    from evalstore.results.flips.regressions import Regression
    from evalstore.store import Store

_NAMED = 3
"""The most runs that are named."""


def find_open_regressions(
    project: Project, run: Run, broke: Iterable[Pair]
) -> Sequence[Regression]:
    """Return the regressions of a run, as its gate counts them, apart from those that broke now.

    Files that reach their own threshold have none.
    """
    known = DigestSet()
    for pair in broke:
        known.add(digest_of_value(cell_of(pair.either)))
    regressions = keep_regressions(
        regression
        for regression in find_regressions(project, run)
        if digest_of_value(cell_of(regression.result)) not in known
    )
    files = {regression.result.file for regression in regressions}
    accepted = _find_accepted(project.store, run, files)
    return without_files(regressions, accepted.__contains__)


def _find_accepted(store: Store, run: Run, files: set[str]) -> set[str]:
    """Return the files that reach their own thresholds in a run."""
    if not files:
        return set()
    nodes = read_tree(run.snapshot, store.load_nodes)
    cases = store.load_case_files(list({nodes[file] for file in files}))
    accepted: set[str] = set()
    for file in files:
        threshold = cases[nodes[file]].threshold
        if threshold is None:
            continue
        batches = iterate_results(store, run, file)
        words = Counter(result.verdict for batch in batches for result in batch if result.verdict)
        if words["pass"] / words.total() >= threshold:
            accepted.add(file)
    return accepted


def regressions_text(regressions: Sequence[Regression], *, is_rest: bool) -> str:
    """Return `2 regressions: passed in run 4dc1d29b`; with `is_rest`, `2 other regressions: …`."""
    runs = list(dict.fromkeys(short(regression.passed_in) for regression in regressions))
    more = len(runs) - _NAMED
    named = [*runs[:_NAMED], *([plural(more, "other")] if more > 0 else [])]
    listed = " and ".join([", ".join(named[:-1]), named[-1]] if len(named) > 1 else named)
    count = plural(len(regressions), "other regression" if is_rest else "regression")
    return f"{count}: passed in run{'s' * (len(runs) > 1)} {listed}"
