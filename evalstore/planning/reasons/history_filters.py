"""Selects cases by their results in earlier runs, takes subsets, and computes age limits.

Filters are applied in a fixed order: paths, tags and `-k`; then changed, failed or retried
cases; then the sample, the shard and the limit.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Iterator
from itertools import islice

from evalstore.core.clock import now
from evalstore.core.errors import EvalstoreError, NothingSelectedError
from evalstore.core.values import Case, CaseFile
from evalstore.planning.cells.cell_batches import StreamedCells
from evalstore.planning.cells.cells import SkippedPair
from evalstore.planning.options import SelectionOptions
from evalstore.planning.plan import AT_REQUEST, EVER, AgeLimit
from evalstore.planning.project import Project
from evalstore.planning.reasons.path_history import pair_with_workspace
from evalstore.planning.selection import Placed, Subset, read_shard
from evalstore.store.trees.path_trees import read_tree
from evalstore.workspace.digest_set import ValueSet
from evalstore.workspace.settings.settings import AGE_HINT, Settings, read_age

ALL = "leave the option out to select all; 'evalstore ls cases' lists the cases"


def subset_of(selection: SelectionOptions) -> Subset:
    """Return the subset that the command line selects; raises `EvalstoreError`."""
    if selection.seed is not None and selection.sample is None:
        raise EvalstoreError("'--seed' has no effect without '--sample'", hint="add '--sample N'")
    shard = None if selection.shard is None else read_shard(selection.shard)
    return Subset(selection.sample, selection.seed or 0, shard, selection.limit)


def is_plain(selection: SelectionOptions) -> bool:
    """Return whether a selection depends neither on earlier runs nor on a sample or shard."""
    others = selection.sample is not None or selection.shard is not None or selection.changed
    return not (others or selection.last_failed or selection.retry_errors)


def take_subset(cells: StreamedCells, subset: Subset) -> StreamedCells:
    """Return the cells and skipped pairs of the cases in a subset; cases without any do not count.

    Raises `NothingSelectedError` for an empty shard.
    """
    counts, pairs = array("I"), array("I")

    def read() -> Iterator[Placed]:
        del counts[:], pairs[:]
        for file, case, count, lacking in cells.cases():
            counts.append(count)
            pairs.append(lacking)
            yield file, case

    chosen = subset.choose(read)
    if chosen and not any(chosen) and subset.shard:
        number, count = subset.shard
        raise NothingSelectedError(
            f"nothing is selected: no case falls into shard {number}/{count}",
            hint="use fewer shards than there are cases",
        )
    kept, skipped = bytearray(), list[SkippedPair]()
    left = iter(cells.skipped)
    for is_chosen, count, lacking in zip(chosen, counts, pairs, strict=True):
        kept += (b"\1" if is_chosen else b"\0") * count
        of_case = [*islice(left, lacking)]
        skipped += of_case if is_chosen else ()
    chosen_cells = cells.keep(kept)
    chosen_cells.skipped = skipped
    return chosen_cells


# --- age limits

_SECOND = 1_000_000
"""Microseconds."""


def bounds_of(
    selection: SelectionOptions, settings: Settings, *, judge_only: bool, begun: float = math.inf
) -> tuple[AgeLimit, AgeLimit]:
    """Return the age limits of answers and of judgements; raises `EvalstoreError`.

    Options of the command line limit answers, with `judge_only` judgements; the settings limit
    answers. `begun` is when the run began: its own results count even when it refreshes.
    """
    from_options = EVER
    if selection.max_age is not None:
        from_options = _bound(selection.max_age, "verdict" if judge_only else "answer")
    if selection.refresh:
        from_options = AgeLimit(begun, AT_REQUEST)
    from_settings = EVER if settings.max_age is None else _bound(settings.max_age, "answer")
    if judge_only:
        return from_settings, from_options
    return (from_settings if from_options == EVER else from_options), EVER


def _bound(age: str, subject: str) -> AgeLimit:
    seconds = read_age(age)
    if seconds is None:
        raise EvalstoreError(f"'--max-age {age}' is not valid", hint=AGE_HINT)
    return AgeLimit(now() - seconds * _SECOND, f"{subject} is older than {age.strip()}")


# --- changed


class ChangedCases:
    """Finds the cases that are not in the snapshot of the newest run."""

    def __init__(self, project: Project) -> None:
        self._known: dict[str, ValueSet] = {}
        """By file, what its cases were in the run."""
        self._same: set[str] = set()
        """The files that are as they were."""
        self._moved: ValueSet | None = None
        """The cases of files that are gone, which any file may have got; None without a run."""
        self._was_asked = self._is_any = False
        if runs := project.store.find_runs(limit=1):
            self._read(project, runs[0].snapshot)

    def _read(self, project: Project, snapshot: str) -> None:
        """Read the cases of a snapshot."""
        nodes = project.reading.nodes
        entries = read_tree(snapshot, project.store.load_nodes)
        files = project.store.load_case_files(list(set(entries.values())))
        pairs = pair_with_workspace(project, entries, files)
        gone = [files[id] for path, id in entries.items() if path not in nodes]
        self._moved = _contents(gone)
        self._same = {path for path, old in pairs.items() if entries[old] == nodes[path]}
        self._known = {
            path: _contents([files[entries[old]]])
            for path, old in pairs.items()
            if path not in self._same
        }

    def __call__(self, path: str, case: Case) -> bool:
        """Return whether a case of a file has changed."""
        self._was_asked = True
        is_changed = self._moved is None or not (
            path in self._same
            or (content := _content(case)) in self._moved
            or (path in self._known and content in self._known[path])
        )
        self._is_any = self._is_any or is_changed
        return is_changed

    def require_any(self) -> None:
        """Raise `NothingSelectedError` when it was asked about cases, none of which has changed."""
        if self._was_asked and not self._is_any:
            raise NothingSelectedError(
                "nothing is selected: nothing has changed since the newest run", hint=ALL
            )


_Content = tuple[object, ...]


def _content(case: Case) -> _Content:
    return case.tests, case.prompts, case.evaluation


def _contents(files: Iterable[CaseFile]) -> ValueSet:
    contents = ValueSet()
    for file in files:
        contents.update(map(_content, file.cases))
    return contents
