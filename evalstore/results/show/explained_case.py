"""Finds the result that `show FILE::ROW` explains."""

from __future__ import annotations

import shlex
from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain

from evalstore.comparison.comparison import numbers_now
from evalstore.core.batches import in_batches
from evalstore.core.display import short
from evalstore.core.errors import EvalstoreError, NothingSelectedError, RevisionError
from evalstore.core.hashing import DigestMap, DigestSet, digest_of_value
from evalstore.core.results import Result
from evalstore.core.runs import Run
from evalstore.core.values import RECORDED, URGENCY, Case, CaseFile
from evalstore.files.fields import suggest
from evalstore.planning.open_project import open_project, open_store, open_workspace
from evalstore.planning.options import Location, is_partial
from evalstore.planning.participants import match_models
from evalstore.planning.path_history import follow_file
from evalstore.planning.selection import find_row_in, find_targets, split_case, split_row
from evalstore.planning.status_report import results_at
from evalstore.results.answer.verdict_explanation import (
    VerdictExplanation,
    explain_result,
    explain_stored_result,
    explain_workspace_result,
    find_edit_of,
    find_planned_work,
)
from evalstore.results.labels import with_later_labels
from evalstore.results.names import CaseReference, find_prompt, name_prompts
from evalstore.results.show.revision_results import find_file_of_run
from evalstore.results.show.show import (
    CasePrompts,
    ChosenResults,
    FoundResult,
    ListedResults,
    Pair,
)
from evalstore.store import Store
from evalstore.store.events import RUNS_SEARCHED
from evalstore.store.results import Cells, RowResults, iterate_entries, iterate_results
from evalstore.store.revisions import WORK, resolve_run
from evalstore.store.trees.tree_nodes import StoredCases, find_entry, read_tree


class SeveralCasesError(EvalstoreError):
    """The name of a case is that of a test file with several cases."""

    def __init__(
        self, case: str, results: ChosenResults, newest: NewestResults | None = None
    ) -> None:
        """Name the file and up to three of its cases.

        `newest` are the results of stored runs, from which these are; else from the workspace.
        """
        places, count = results.first, results.cases
        listed = [shlex.quote(f"{file}::{row}") for file, row in places[:3]]
        more = ", …" if len(places) > 3 else ""
        super().__init__(f"'{case}' has {count} cases", hint=f"name one: {', '.join(listed)}{more}")
        self.newest, self._case, self._results = newest, case, results
        self.file, _ = places[0]

    def select(self, location: Location, model: str | None, prompt: str | None) -> ListedResults:
        """Return the results of a candidate and of a system prompt; call it once.

        Raises `EvalstoreError` when there are none.
        """
        pairs = _select_pairs(location, self._case, self._results.pairs, model, prompt)
        return self._results.choose(pairs)


def explain_case(
    location: Location,
    reference: CaseReference,
    model: str | None = None,
    prompt: str | None = None,
) -> VerdictExplanation:
    """Explain a case: the most urgent of its results in a run.

    Without a revision each result is that of the newest run that has it, with the labels that came
    later, and results of models that are candidates now are preferred; `@work` is the workspace.
    `model` names a candidate, and
    `prompt` a system prompt by its name or the first digits of its id. Raises `EvalstoreError`
    if the case does not exist or has no result.
    """
    explanation = _explain(location, reference, model, prompt or reference.prompt)
    if explanation.prompt or not (only := explanation.result.prompt):
        return explanation
    return replace(explanation, only_prompt=name_prompts(location, [only])[only])


def _explain(
    location: Location, reference: CaseReference, model: str | None, prompt: str | None
) -> VerdictExplanation:
    case, revision = reference.case, reference.revision
    if revision == WORK:
        return _explain_now(location, case, model, prompt)
    with open_store(location) as store:
        newest = _find_newest_results(location, store, case, revision, model, labels=not revision)
        cells = newest.results
        former = frozenset[str]()
        if not revision:
            candidates = open_workspace(location).settings.candidates
            current = {RECORDED, *(each.name or each.id for each in candidates)}
            former = frozenset({cell.model for cell in cells} - current)
        preferred = [] if model else [cell for cell in cells if cell.model not in former]
        result = _choose(location, case, preferred or cells, model, prompt)
        if result not in newest.labelled:
            run = newest.runs[result]
            explanation = explain_stored_result(location, store, result, run, cells=cells)
    if result in newest.labelled:
        explanation = explain_result(location, result, None, cells=cells)
    if revision:
        return replace(explanation, former=former)
    planned = find_planned_work(location, result, {cell.prompt for cell in cells})
    edit = find_edit_of(location, result)
    return replace(explanation, former=former, planned=planned, edit=edit)


def find_case(location: Location, case: str, revision: str | None = None) -> tuple[Run, Result]:
    """Return the most urgent result of a case, and its run, as `explain_case` finds them."""
    with open_store(location) as store:
        newest = _find_newest_results(location, store, case, revision)
        result = _choose(location, case, newest.results, None, None)
        return newest.runs[result], result


def _explain_now(
    location: Location, case: str, model: str | None, prompt: str | None
) -> VerdictExplanation:
    with open_project(location) as project:
        (target,) = project.targets((case,))
        cells: list[Result] = []
        left = results_at(project, [(target.path, target.row)])
        for cell in left:
            if cells and cell.row != cells[0].row:
                found = (FoundResult(each, WORK, 0) for each in chain(cells, [cell], left))
                raise SeveralCasesError(case, ChosenResults(target.path, found, CasePrompts()))
            cells.append(cell)
        result = _choose(location, case, cells, model, prompt)
        return explain_workspace_result(project, result, cells)


def _choose(
    location: Location, case: str, cells: Sequence[Result], model: str | None, prompt: str | None
) -> Result:
    """Return the most urgent of the results that the options leave; raises `EvalstoreError`."""
    pairs = _select_pairs(location, case, dict.fromkeys(map(_pair, cells)), model, prompt)
    left = [cell for cell in cells if _pair(cell) in pairs]
    return min(left, key=lambda cell: URGENCY.index(cell.word or "answered"))


def _select_pairs(
    location: Location,
    case: str,
    pairs: Collection[Pair],
    model: str | None,
    prompt: str | None,
) -> set[Pair]:
    """Return the candidates and system prompts that the options leave; raises `EvalstoreError`."""
    left = {*pairs}
    if model is not None:
        models = sorted({known for known, _ in pairs})
        named = match_models(model, models)
        left = {pair for pair in left if pair[0] in named}
        if not left:
            raise EvalstoreError(
                f"'{model}' has no result for '{case}'", hint=suggest(model, models, "candidates")
            )
    if prompt is not None:
        ids = dict.fromkeys(id for _, id in left)
        id = find_prompt(name_prompts(location, [*ids]), prompt)
        left = {pair for pair in left if pair[1] == id}
    if not left:
        raise EvalstoreError(f"'{case}' has no result", hint="'evalstore run' asks for answers")
    return left


def _pair(result: Result) -> Pair:
    return result.model, result.prompt


# --- finds the results of a case, or of all cases of a test file, each in the newest run with it


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
    """Each result of a single case -> its run. Files may have another path in an older one."""
    labelled: Collection[Result] = ()
    """Those whose verdict is that of the workspace, by a label that came after the run."""

    @property
    def results(self) -> list[Result]:
        """Return the results of a single case, those of the newest run first."""
        return [*self.runs]


def _find_newest_results(
    location: Location,
    store: Store,
    case: str,
    revision: str | None,
    model: str | None = None,
    *,
    labels: bool = False,
) -> NewestResults:
    """Return the results of what `case` names: those of one run if there is a revision.

    Otherwise a run of some cases or candidates hides no result that an older run has: runs are
    read up to the newest that left out none, and on to the first result of `model`. With `labels`,
    those that came after these runs count. Raises `EvalstoreError` if it is unknown, has no result
    or has several cases, whose results are then in a temporary file.
    """
    newest = resolve_run(store, revision or "@")
    runs = [newest]
    if revision is None:
        runs += store.find_recent_runs(before=newest, limit=RUNS_SEARCHED)
    try:
        places, row, known = _find_places(location, store, runs, case)
    except NothingSelectedError as problem:
        raise _with_new_row(location, newest, case, problem) from None
    search = _Search(store, row, model, known)
    found = search.read(runs, places)
    labelled: set[Result] = set()
    found = _with_labels(location, store, found, labelled) if labels else found
    by_id = {run.id: run for run in runs}
    first: list[FoundResult] = []
    for each in found:
        first.append(each)
        if each.number != first[0].number:
            raise search.several(case, chain(first, found))
    if not first:
        where = f"run {newest.id[:8]}" if revision else f"the newest {len(runs)} runs"
        raise RevisionError(
            f"'{case}' has no result in {where}",
            hint="'evalstore run' asks for answers; '@work:FILE::ROW' shows the workspace",
        )
    return search.name({each.result: by_id[each.run] for each in first}, labelled)


def _with_new_row(
    location: Location, run: Run, case: str, problem: NothingSelectedError
) -> NothingSelectedError:
    """Return the error for a row that a run lacks; its hint names the row if it is a new one."""
    try:
        with open_project(location) as project:
            (target,) = project.targets((case,))
    except EvalstoreError:
        return problem
    place = shlex.quote(f"@work:{target.path}::{target.row}")
    return NothingSelectedError(
        f"run {short(run.id)} has no row '{case}'",
        hint=f"the workspace has it now: evalstore show {place}",
    )


def _with_labels(
    location: Location, store: Store, found: Iterator[FoundResult], labelled: set[Result]
) -> Iterator[FoundResult]:
    """Yield results; those that were `labelled` after their run with their verdict now."""
    for batch in in_batches(found):
        now = with_later_labels(location, store, [each.result for each in batch])
        labelled.update(now.values())
        for each in batch:
            yield each._replace(result=now.get(each.result, each.result))


class _Search:
    """Finds the results of the cases of a file from newer to older runs."""

    def __init__(
        self, store: Store, row: str | None, model: str | None, known: Mapping[str, CaseFile]
    ) -> None:
        """`row` names one of the cases, or is None; `model` is the candidate that is wanted.

        `known` are files that are read already, by node.
        """
        self._store, self._row, self._model, self._known = store, row, model, known
        self._by_name = RowResults(store)
        self._run: Run | None = None
        self._file = ""
        self._every = CasePrompts()
        self._cases = _CasesOfFile((), row)
        self._taken: dict[str, bytearray] = {}
        """Candidate -> 1 for each case and system prompt with a result."""
        self._left = _MOST_RESULTS

    def read(
        self, runs: Sequence[Run], places: Iterator[tuple[str, str | None]]
    ) -> Iterator[FoundResult]:
        """Yield the results; `places` are the path of the file in each run, and its cases."""
        seen: set[tuple[str, str]] = set()
        for run, (path, node) in zip(runs, places, strict=False):
            if node is None:  # the file was absent, or its path was that of another file
                continue
            load = self._store.load_nodes
            leaf = find_entry([run.results], path, load).get(run.results)
            if leaf is None:
                continue
            if (path, leaf) not in seen:
                seen.add((path, leaf))
                if self._run is None:
                    self._run, self._file = run, path
                    file = self._known.get(node) or self._store.load_case_files([node])[node]
                    self._cases = _CasesOfFile(file.cases, self._row)
                yield from self._add(run, {path: leaf})
            if self._is_done(run):
                return

    def several(self, case: str, found: Iterator[FoundResult]) -> SeveralCasesError:
        """Return the error with the results of several cases, all of which are `found`."""
        newest = self.name({})
        results = ChosenResults(newest.file, found, self._every)
        if self._row is not None:  # only those of its cases were read
            for batch in iterate_results(self._store, newest.run, newest.file):
                self._note(batch)
        return SeveralCasesError(case, results, newest)

    def name(self, runs: dict[Result, Run], labelled: Collection[Result] = ()) -> NewestResults:
        """Return results with the newest run that has the file."""
        assert self._run
        return NewestResults(self._run, self._file, runs, labelled)

    def _note(self, results: Iterable[Result]) -> None:
        for result in results:
            self._every.note(result.file, result.row, result.prompt)

    def _add(self, run: Run, entries: dict[str, str]) -> Iterator[FoundResult]:
        """Yield the results of a run that no newer run has."""
        batches: Iterable[Cells] = iterate_entries(self._store, entries)
        if self._row is not None:
            ((path, names),) = ((path, self._cases.names) for path in entries)
            found = self._by_name.find(entries, {path: names})[path]
            batches = [found.cells]
            self._left -= found.total - len(found.cells)
        for batch in batches:
            self._left -= len(batch)
            if run is self._run and self._row is None:
                self._note(result for result, _ in batch)
            for result, case in batch:
                if (number := self._cases.find(result)) is not None:
                    yield from self._take(run, result, case.prompts, number)

    def _take(
        self, run: Run, result: Result, had: tuple[str | None, ...], number: int
    ) -> Iterator[FoundResult]:
        """Yield a result of a case unless a newer one is known, or its system prompt is gone.

        Its case `had` these prompts.
        """
        place = numbers_now(had, self._cases.prompts(number)).get(result.prompt)
        if place is None:
            return
        taken = self._taken.get(result.model)
        if taken is None:
            taken = self._taken[result.model] = bytearray(self._cases.size)
        place += number * self._cases.most_prompts
        if not taken[place]:
            taken[place] = 1
            is_older = run is not self._run
            case = digest_of_value((result.row, result.tests, result.evaluation))
            is_edited = is_older and case not in self._cases.asked
            yield FoundResult(result, run.id, number, is_older, is_edited)

    def _is_done(self, run: Run) -> bool:
        """Return whether older runs have nothing to add, after this one."""
        if self._left < 0:
            return True
        if is_partial(run) or run.origin is not None or not self._taken:
            return False
        return self._model is None or bool(match_models(self._model, self._taken))


class _CasesOfFile:
    """Finds the cases of a file in the newest run; it keeps some dozen bytes of each."""

    def __init__(self, cases: Sequence[Case], row: str | None) -> None:
        """Index the cases; with `row`, only those with this label are found."""
        self._cases, self._row = cases, row
        self._prompts = array("L")
        """The number of the system prompts of each case, among different ones."""
        self._by_key = DigestMap()
        self._wanted: dict[int, Case] = {}
        """The cases with the label, by number."""
        numbers: dict[tuple[str | None, ...], int] = {}
        for number, case in enumerate(cases) if row is None else _labelled(cases, row):
            self._by_key.put(digest_of_value(case.key), number)
            if row is None:
                self._prompts.append(numbers.setdefault(case.prompts, len(numbers)))
            else:
                self._wanted[number] = case
        self._lists = [*numbers]
        lists = self._lists or [case.prompts for case in self._wanted.values()]
        self.most_prompts = max(map(len, lists), default=0)

    @property
    def size(self) -> int:
        """Return how many numbers there are of a case and one of its system prompts."""
        return len(self._cases) * self.most_prompts

    @property
    def names(self) -> set[str]:
        """Return the keys and the labels of the cases with the label that is looked for."""
        return {name for case in self._wanted.values() for name in (case.key, case.row)}

    def prompts(self, number: int) -> tuple[str | None, ...]:
        """Return the system prompts of a case."""
        if self._row is not None:
            return self._wanted[number].prompts
        return self._lists[self._prompts[number]]

    def find(self, result: Result) -> int | None:
        """Return the number of the case of a result: by the values of its row, else by its label.

        None if it is gone.
        """
        number = self._by_key.get(digest_of_value(result.key))
        return self._by_row.get(digest_of_value(result.row)) if number is None else number

    @cached_property
    def _by_row(self) -> DigestMap:
        """Return the numbers of the cases by label; the last of several with it counts."""
        numbers = DigestMap()
        for number, case in enumerate(self._cases) if self._row is None else self._wanted.items():
            numbers.put(digest_of_value(case.row), number)
        return numbers

    @cached_property
    def asked(self) -> DigestSet:
        """Return digests of what each case asks, and of how it is judged."""
        asked = DigestSet()
        for case in self._cases:
            asked.add(digest_of_value((case.row, case.tests, case.evaluation)))
        return asked


def _labelled(cases: Sequence[Case], row: str) -> Iterable[tuple[int, Case]]:
    """Return the cases with a label, with their numbers."""
    if isinstance(cases, StoredCases):
        return cases.labelled((row,))
    return ((number, case) for number, case in enumerate(cases) if case.row == row)


def _find_places(
    location: Location, store: Store, runs: Sequence[Run], case: str
) -> tuple[Iterator[tuple[str, str | None]], str | None, Mapping[str, CaseFile]]:
    """Return the path and the node of the file of a case in each run, its row, and files by node.

    The row is None if only the file is named. Runs newer than the last with the row have no node.
    """
    workspace = open_workspace(location)
    nodes = read_tree(runs[0].snapshot, store.load_nodes)
    name, row = split_case(case)
    if row is None and "[" in case:
        name, row = case.split(" [", 1)[0], case
    file = find_file_of_run(location, store, runs[0], nodes, name)
    files = store.load_case_files([nodes[file]])
    named = file + case[len(name) :] if row else file
    known = {file: files[nodes[file]]}
    places = follow_file(store, runs, file, workspace.settings.paths["tests"])
    try:
        (target,) = find_targets(location, workspace, nodes, known, (named,))
    except NothingSelectedError as problem:
        listed = [*places]
        versions = [*dict.fromkeys(node for _, node in listed if node)]
        files = store.load_case_files(versions)
        path, text = split_row(named)
        try:
            row, number = find_row_in(path, text or "", [files[node] for node in versions])
        except NothingSelectedError:
            raise problem from None
        newer = {*versions[:number]}
        return ((path, None if node in newer else node) for path, node in listed), row, files
    return places, target.row, files
