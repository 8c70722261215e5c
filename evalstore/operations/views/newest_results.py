"""Finds the results of a case, or of all cases of a test file, each in the newest run with it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from evalstore.errors import RevisionError
from evalstore.operations.files_of_runs import find_file_of_run
from evalstore.planning.open_project import open_workspace
from evalstore.planning.options import is_partial
from evalstore.planning.path_history import follow_file
from evalstore.planning.path_targets import find_targets, split_case
from evalstore.store.case_files import StoredCases
from evalstore.store.path_trees import find_entry, read_tree
from evalstore.store.results import iterate_entries
from evalstore.store.revisions import resolve_run
from evalstore.store.row_results import RowResults
from evalstore.store.runs import RUNS_SEARCHED

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from evalstore.planning.options import Location
    from evalstore.results import Result
    from evalstore.runs import Run
    from evalstore.store import Store
    from evalstore.values import Case, CaseFile

_MOST_RESULTS = 200_000
"""About how many results are read; the search ends there."""


@dataclass
class NewestResults:
    """The results of a case or of a test file, each with the newest run that has it."""

    run: Run
    """The newest run with one of them; its snapshot says which cases there are."""
    file: str
    """The path of the test file in this run."""
    runs: dict[Result, Run] = field(default_factory=dict)
    """Each result -> its run. Files may have another path in an older one."""
    numbers: set[int] = field(default_factory=set)
    """The numbers of the cases with these results."""

    @property
    def has_several_cases(self) -> bool:
        """Return whether the results belong to several cases."""
        return len(self.numbers) > 1

    @property
    def results(self) -> list[Result]:
        """Return the results, those of the newest run first."""
        return [*self.runs]


def find_newest_results(
    location: Location,
    store: Store,
    case: str,
    revision: str | None,
    *,
    model: str | None = None,
) -> NewestResults:
    """Return the results of what `case` names: those of one run if there is a revision.

    Otherwise a run of some cases or candidates hides no result that an older run has: runs are
    read up to the newest that left out none, and on to the first result of `model`. Raises
    `EvalstoreError` if there is no such case or no result.
    """
    newest = resolve_run(store, revision or "@")
    file, row, known = _find_place(location, store, newest, case)
    runs = [newest]
    if revision is None:
        runs += store.find_recent_runs(before=newest, limit=RUNS_SEARCHED)
    folder = open_workspace(location).settings.paths["tests"]
    search: _Search | None = None
    seen: set[tuple[str, str]] = set()
    by_name = RowResults(store)
    for run, (path, node) in zip(runs, follow_file(store, runs, file, folder), strict=False):
        if node is None:  # the file was absent, or its path was that of another file
            continue
        leaf = find_entry([run.results], path, store.load_nodes).get(run.results)
        if leaf is None:
            continue
        if (path, leaf) not in seen:
            seen.add((path, leaf))
            if search is None:
                named = known.get(node) or store.load_case_files([node])[node]
                search = _Search(NewestResults(run, path), named.cases, row)
            if row is None:
                cells = [cell for batch in iterate_entries(store, {path: leaf}) for cell in batch]
                search.add(run, cells, len(cells))
            else:
                near = by_name.find({path: leaf}, {path: search.names})[path]
                search.add(run, near.cells, near.total)
        if search and search.is_done(run, model):
            break
    if search is None or not search.found.runs:
        where = f"run {newest.id[:8]}" if revision else f"the newest {len(runs)} runs"
        raise RevisionError(
            f"'{case}' has no result in {where}",
            hint="'evalstore run' asks for answers; '@work:FILE::ROW' shows the workspace",
        )
    return search.found


class _Search:
    """Collects the results of the cases of a file from newer to older runs."""

    def __init__(self, found: NewestResults, cases: Sequence[Case], row: str | None) -> None:
        """`cases` are all of the file in the newest run; `row` names one of them, or is None."""
        self.found = found
        self._cases = cases
        wanted: Iterable[tuple[int, Case]]
        if row is not None and isinstance(cases, StoredCases):
            wanted = cases.labelled((row,))
        else:
            wanted = ((n, case) for n, case in enumerate(cases) if row in (None, case.row))
        self._by_row, self._by_key = dict[str, int](), dict[str, int]()
        for number, case in wanted:
            self._by_row[case.row] = self._by_key[case.key] = number
        self._taken: set[tuple[int, int, str]] = set()
        self._left = _MOST_RESULTS

    @property
    def names(self) -> Collection[str]:
        """Return the keys and the labels of the cases that are looked for."""
        return self._by_row.keys() | self._by_key.keys()

    def add(self, run: Run, cells: Iterable[tuple[Result, Case]], total: int) -> None:
        """Add the results of a run that no newer run has; the file has `total` there."""
        self._left -= total
        here = [cell for cell in cells if self._number(cell[0]) is not None]
        for result, _ in sorted(here, key=lambda cell: not self._has_prompt(cell[0])):
            if (place := self._place(result)) is not None and place not in self._taken:
                self._taken.add(place)
                self.found.runs[result] = run
                self.found.numbers.add(place[0])

    def is_done(self, run: Run, model: str | None) -> bool:
        """Return whether older runs have nothing to add, after this one."""
        if self._left < 0:
            return True
        if is_partial(run) or run.origin is not None or not self.found.runs:
            return False
        return model is None or any(result.model == model for result in self.found.runs)

    def _number(self, result: Result) -> int | None:
        number = self._by_key.get(result.key)
        return self._by_row.get(result.row) if number is None else number

    def _has_prompt(self, result: Result) -> bool:
        number = self._number(result)
        return number is not None and result.prompt in self._cases[number].prompts

    def _place(self, result: Result) -> tuple[int, int, str] | None:
        """Return the case, the system prompt and the candidate of a result; None if it is gone."""
        number = self._number(result)
        if number is None:
            return None
        prompts = self._cases[number].prompts
        if result.prompt in prompts:
            return number, prompts.index(result.prompt), result.model
        if result.prompt_number < len(prompts):
            return number, result.prompt_number, result.model
        return None


def _find_place(
    location: Location, store: Store, run: Run, case: str
) -> tuple[str, str | None, Mapping[str, CaseFile]]:
    """Return the path and the row of a case in a run, and its file by the node of its cases.

    The row is None if only the file is named.
    """
    workspace = open_workspace(location)
    nodes = read_tree(run.snapshot, store.load_nodes)
    name, row = split_case(case)
    if row is None and "[" in case:
        name, row = case.split(" [", 1)[0], case
    file = find_file_of_run(location, store, run, nodes, name)
    files = store.load_case_files([nodes[file]])
    named = file + case[len(name) :] if row else file
    known = {file: files[nodes[file]]}
    (target,) = find_targets(location, workspace, nodes, known, (named,))
    return target.path, target.row, files
