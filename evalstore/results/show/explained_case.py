"""Finds the result that `show FILE::ROW` explains."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from evalstore.comparison.comparison import numbers_now
from evalstore.core.batches import in_batches
from evalstore.core.display import short
from evalstore.core.errors import EvalstoreError, NothingSelectedError, RevisionError
from evalstore.core.hashing import digest_of_value
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
    ChosenResults,
    FoundResult,
    Pair,
    ShownResults,
)
from evalstore.store import Store
from evalstore.store.events import RUNS_SEARCHED
from evalstore.store.results import Cells, RowResults, iterate_entries
from evalstore.store.revisions import WORK, resolve_run
from evalstore.store.trees.tree_nodes import RowIndex, find_entry, read_tree


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

    def select(self, location: Location, model: str | None, prompt: str | None) -> ShownResults:
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
                every = chain(cells, [cell], left)
                found = (FoundResult(each, WORK, each.key) for each in every)
                raise SeveralCasesError(case, ChosenResults(target.path, found))
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
        if each.key != first[0].key:
            newest_found = search.name({})
            results = ChosenResults(newest_found.file, chain(first, found))
            raise SeveralCasesError(case, results, newest_found)
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
        self._rows = RowIndex(CaseFile(()))
        """The cases in the newest run."""
        self._names = set[str]()
        """The keys and labels of those of the row."""
        self._taken = set[int]()
        """Digests of the cases, system prompts and candidates with a result."""
        self._models = set[str]()
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
                    self._rows = RowIndex(file, self._store)
                    cases = (
                        () if self._row is None else self._store.find_named_cases(file, {self._row})
                    )
                    named = (case for case in cases if case.row == self._row)
                    self._names = {name for case in named for name in (case.key, case.row)}
                yield from self._add(run, {path: leaf})
            if self._is_done(run):
                return

    def name(self, runs: dict[Result, Run], labelled: Collection[Result] = ()) -> NewestResults:
        """Return results with the newest run that has the file."""
        assert self._run
        return NewestResults(self._run, self._file, runs, labelled)

    def _add(self, run: Run, entries: dict[str, str]) -> Iterator[FoundResult]:
        """Yield the results of a run that no newer run has."""
        batches: Iterable[Cells] = iterate_entries(self._store, entries)
        if self._row is not None:
            (found,) = self._by_name.find(entries, dict.fromkeys(entries, self._names)).values()
            batches = [found.cells]
            self._left -= found.total - len(found.cells)
        for batch in batches:
            self._left -= len(batch)
            if run is not self._run:
                self._rows.expect(case for _, case in batch)
            for result, case in batch:
                now = case if run is self._run else self._rows.find(case)
                if now and self._row in (None, now.row):
                    yield from self._take(run, result, case.prompts, now)

    def _take(
        self, run: Run, result: Result, had: tuple[str | None, ...], now: Case
    ) -> Iterator[FoundResult]:
        """Yield a result of a case unless a newer one is known, or its system prompt is gone.

        Its case `had` these prompts.
        """
        prompt = numbers_now(had, now.prompts).get(result.prompt)
        place = digest_of_value((now.key, result.model, prompt))
        if prompt is not None and place not in self._taken:
            self._taken.add(place)
            self._models.add(result.model)
            was, is_older = (result.row, result.tests, result.evaluation), run is not self._run
            is_edited = is_older and was != (now.row, now.tests, now.evaluation)
            has_several = len(now.prompts) > 1
            yield FoundResult(result, run.id, now.key, has_several, is_older, is_edited)

    def _is_done(self, run: Run) -> bool:
        """Return whether older runs have nothing to add, after this one."""
        if self._left < 0:
            return True
        if is_partial(run) or run.origin is not None or not self._models:
            return False
        return self._model is None or bool(match_models(self._model, self._models))


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
