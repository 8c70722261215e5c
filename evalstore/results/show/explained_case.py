"""Finds the result that `show FILE::ROW` explains."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice
from typing import NamedTuple

from evalstore.comparison.comparison import numbers_now
from evalstore.core.batches import in_batches
from evalstore.core.display import short
from evalstore.core.errors import EvalstoreError, NothingSelectedError, RevisionError
from evalstore.core.hashing import digest_of_value
from evalstore.core.runs import Run
from evalstore.core.values import RECORDED, URGENCY, Case, CaseFile, Result
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
    Pair,
    ShownResult,
    ShownResults,
    pair_of,
    result_to_json,
)
from evalstore.store import Store
from evalstore.store.events import RUNS_SEARCHED
from evalstore.store.results import Cells, RowResults, iterate_entries
from evalstore.store.revisions import WORK, resolve_run
from evalstore.store.trees.tree_nodes import RowIndex, find_entry, read_tree


class SeveralCasesError(EvalstoreError):
    """The name of a case is that of a test file with several cases."""

    def __init__(
        self, case: str, file: str, found: Iterable[FoundResult], run: Run | None = None
    ) -> None:
        """Name up to three of the cases of the file; its results are read into a temporary file.

        `run` is the newest run with one of them; None: they are those of the workspace.
        """
        self.run, self.file, self._case = run, file, case
        self._results = ShownResults(_describe(each, file) for each in found)
        first = islice(self._results, _MOST_READ)
        places = [*dict.fromkeys(f"{each['file']}::{each['row']}" for each in first)]
        listed = ", ".join(map(shlex.quote, places[:3])) + ", …" * (len(places) > 3)
        super().__init__(f"'{case}' has several cases", hint=f"name one: {listed}")

    def select(self, location: Location, model: str | None, prompt: str | None) -> ShownResults:
        """Return the results of a candidate and of a system prompt.

        Raises `EvalstoreError` when there are none.
        """
        pairs = _select_pairs(location, self._case, self._results.pairs, model, prompt)
        if len(pairs) == len(self._results.pairs):
            return self._results
        return ShownResults(it for it in self._results.shown() if pair_of(it.document) in pairs)


class FoundResult(NamedTuple):
    """A result, and the newest run that has it."""

    result: Result
    run: Run | None
    """None: the workspace has it."""
    key: str
    """That of its case in the newest run."""
    has_several: bool = False
    """Whether that has several system prompts."""
    is_older: bool = False
    """Whether the run is older than the newest one with results of the file."""
    is_edited: bool = False
    """Whether its case was edited since."""
    is_now: bool = False
    """Whether its verdict is that of the workspace, by a label that came after the run."""


def _describe(found: FoundResult, file: str) -> ShownResult:
    """Return the document of a result; one of an older run is under the present path."""
    document = result_to_json(found.result)
    if found.is_older and found.run:
        document |= {"file": file, "run": found.run.id}
        document |= {"edited": True} if found.is_edited else {}
    return ShownResult(document, found.has_several)


_MOST_READ = 200
"""The most results among which cases are looked for to name them."""


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
        found = _find_newest_results(location, store, case, revision, model, labels=not revision)
        cells = [each.result for each in found]
        preferred = list[FoundResult]()
        if not (revision or model):
            candidates = open_workspace(location).settings.candidates
            current = {RECORDED, *(each.name or each.id for each in candidates)}
            preferred = [each for each in found if each.result.model in current]
        chosen = _choose(location, case, preferred or found, model, prompt)
        result = chosen.result
        if chosen.run and not chosen.is_now:
            explanation = explain_stored_result(location, store, result, chosen.run, cells=cells)
    if chosen.is_now:
        explanation = explain_result(location, result, None, cells=cells)
    if revision:
        return explanation
    planned = find_planned_work(location, result, {cell.prompt for cell in cells})
    edit = find_edit_of(location, result)
    return replace(explanation, planned=planned, edit=edit)


def find_case(location: Location, case: str, revision: str | None = None) -> tuple[Run, Result]:
    """Return the most urgent result of a case, and its run, as `explain_case` finds them."""
    with open_store(location) as store:
        found = _find_newest_results(location, store, case, revision)
        chosen = _choose(location, case, found, None, None)
        assert chosen.run
        return chosen.run, chosen.result


def _explain_now(
    location: Location, case: str, model: str | None, prompt: str | None
) -> VerdictExplanation:
    with open_project(location) as project:
        (target,) = project.targets((case,))
        found: list[FoundResult] = []
        left = (
            FoundResult(it, None, it.key) for it in results_at(project, [(target.path, target.row)])
        )
        for each in left:
            found.append(each)
            if each.result.row != found[0].result.row:
                raise SeveralCasesError(case, target.path, chain(found, left))
        result = _choose(location, case, found, model, prompt).result
        return explain_workspace_result(project, result, [each.result for each in found])


def _choose(
    location: Location,
    case: str,
    found: Sequence[FoundResult],
    model: str | None,
    prompt: str | None,
) -> FoundResult:
    """Return the most urgent of the results that the options leave; raises `EvalstoreError`."""
    by_pair = [((each.result.model, each.result.prompt), each) for each in found]
    pairs = _select_pairs(location, case, dict(by_pair), model, prompt)
    left = [each for pair, each in by_pair if pair in pairs]
    return min(left, key=lambda each: URGENCY.index(each.result.word or "answered"))


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


# --- finds the results of a case, or of all cases of a test file, each in the newest run with it


_MOST_RESULTS = 200_000
"""About how many results are read; the search ends there."""


def _find_newest_results(
    location: Location,
    store: Store,
    case: str,
    revision: str | None,
    model: str | None = None,
    *,
    labels: bool = False,
) -> list[FoundResult]:
    """Return the results of a case, those of the newest run first: of one run with a revision.

    Otherwise a run of some cases or candidates hides no result that an older run has: runs are
    read up to the newest that left out none, and on to the first result of `model`. With `labels`,
    those that came after these runs count. Raises `EvalstoreError` if it is unknown, has no result
    or has several cases.
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
    found = _with_labels(location, store, found) if labels else found
    first: list[FoundResult] = []
    for each in found:
        first.append(each)
        if each.key != first[0].key:
            raise SeveralCasesError(case, search.file, chain(first, found), search.run)
    if not first:
        where = f"run {newest.id[:8]}" if revision else f"the newest {len(runs)} runs"
        raise RevisionError(
            f"'{case}' has no result in {where}",
            hint="'evalstore run' asks for answers; '@work:FILE::ROW' shows the workspace",
        )
    return first


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
    location: Location, store: Store, found: Iterator[FoundResult]
) -> Iterator[FoundResult]:
    """Yield results; those that were labelled after their run with their verdict now."""
    for batch in in_batches(found):
        now = with_later_labels(location, store, [each.result for each in batch])
        for each in batch:
            labelled = now.get(each.result)
            yield each._replace(result=labelled, is_now=True) if labelled else each


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
        self.run: Run | None = None
        """The newest run with one of them; it says which cases there are."""
        self.file = ""
        """The path of the file in this run."""
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
                if self.run is None:
                    self.run, self.file = run, path
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

    def _add(self, run: Run, entries: dict[str, str]) -> Iterator[FoundResult]:
        """Yield the results of a run that no newer run has."""
        batches: Iterable[Cells] = iterate_entries(self._store, entries)
        if self._row is not None:
            (found,) = self._by_name.find(entries, dict.fromkeys(entries, self._names)).values()
            batches = [found.cells]
            self._left -= found.total - len(found.cells)
        for batch in batches:
            self._left -= len(batch)
            if run is not self.run:
                self._rows.expect(case for _, case in batch)
            for result, case in batch:
                now = case if run is self.run else self._rows.find(case)
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
            was, is_older = (result.row, result.tests, result.evaluation), run is not self.run
            is_edited = is_older and was != (now.row, now.tests, now.evaluation)
            has_several = len(now.prompts) > 1
            yield FoundResult(result, run, now.key, has_several, is_older, is_edited)

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
