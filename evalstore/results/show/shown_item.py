"""The command `show`: finds any stored object by its id or name; `show FILE::ROW` explains it."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice
from typing import NamedTuple

from evalstore.comparison.comparison import numbers_now
from evalstore.core import hashing
from evalstore.core.batches import in_batches
from evalstore.core.deserialize import restore_session
from evalstore.core.display import WORKSPACE, short
from evalstore.core.errors import EvalstoreError, NothingSelectedError, RevisionError
from evalstore.core.hashing import digest_of_value
from evalstore.core.runs import Run
from evalstore.core.values import RECORDED, URGENCY, CaseFile, Json, Result, order_counts
from evalstore.files.fields import suggest
from evalstore.planning.cell_results import as_result
from evalstore.planning.open_project import open_catalogue, open_project, open_store, open_workspace
from evalstore.planning.options import Location, SelectionOptions, is_partial
from evalstore.planning.participants import match_models
from evalstore.planning.path_history import follow_file
from evalstore.planning.planner import require_sound, resolve_scope
from evalstore.planning.project import Project, VersionReader
from evalstore.planning.selection import find_row_in, find_targets, split_case, split_row
from evalstore.planning.status_report import compute_workspace, iterate_workspace, results_at
from evalstore.results.answer.answer import AnswerView, read_answer
from evalstore.results.answer.judgements import Judgement
from evalstore.results.answer.verdict_explanation import (
    VerdictExplanation,
    explain_result,
    explain_session,
    explain_stored_result,
    explain_workspace_result,
    find_edit,
    find_edit_of,
    find_planned_work,
)
from evalstore.results.labels import with_later_labels
from evalstore.results.names import (
    CaseReference,
    find_prompt,
    name_prompts,
    read_reference,
    reference_names,
)
from evalstore.results.show.show import (
    IN_PROGRESS,
    Pair,
    ShownCases,
    ShownItem,
    ShownResult,
    ShownResults,
    find_file_of_run,
    find_test_file,
    list_results,
    pair_of,
    result_to_json,
    show_file,
    show_item,
)
from evalstore.store import Store
from evalstore.store.events import RUNS_SEARCHED
from evalstore.store.results import Cells, RowResults, iterate_entries
from evalstore.store.revisions import WORK, RunInProgressError, resolve, resolve_run, split_path
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
            # Runs before one of all cases have nothing to add, but perhaps the candidate.
            is_whole = not is_partial(run) and run.origin is None and bool(self._models)
            has_model = self._model is None or match_models(self._model, self._models)
            if self._left < 0 or (is_whole and has_model):
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
                if now is None or self._row not in (None, now.row):
                    continue
                prompt = numbers_now(case.prompts, now.prompts).get(result.prompt)
                place = digest_of_value((now.key, result.model, prompt))
                if prompt is None or place in self._taken:  # it is gone, or a newer run has it
                    continue
                self._taken.add(place)
                self._models.add(result.model)
                was, is_older = (result.row, result.tests, result.evaluation), run is not self.run
                is_edited = is_older and was != (now.row, now.tests, now.evaluation)
                has_several = len(now.prompts) > 1
                yield FoundResult(result, run, now.key, has_several, is_older, is_edited)


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


def describe_shown(
    location: Location,
    revision: str,
    *,
    model: str | None = None,
    prompt: str | None = None,
) -> ShownItem | dict[str, Json]:
    """Return a stored object for JSON; `REV:path` means the cases of a test file in that run.

    `@work` means the current workspace, and `[REV:]FILE::ROW` a case with the explanation of its
    verdict: of the candidate and the system prompt that are named. `FILE` is its case, or if it
    has several the file with each result of the newest run that has it.

    Raises `RevisionError`.
    """
    explained = _explain_case(location, revision, model, prompt)
    if isinstance(explained, VerdictExplanation):
        result = explained.result
        return {"kind": "case", "id": result.evaluation or result.test, **explained.document()}
    shown = explained or _show(location, revision)
    if isinstance(shown, ShownItem):
        return shown
    with open_store(location) as store:
        item = _show_session(store, shown)
        explanation = explain_session(location, store, shown)
        item.related |= explanation.document_of_history() if explanation else {}
        return item


def _show(location: Location, revision: str, most: int | None = None) -> ShownItem | AnswerView:
    """Return what a revision names: a session as the page of its answer."""
    text, colon, path = split_path(revision)
    if text == WORK:
        return show_workspace_file(location, path) if colon else show_workspace(location)
    with open_store(location) as store:
        if colon:
            return show_file(location, store, text, path)
        kind, id = _resolve(location, store, text)
        if kind == "session":
            return read_answer(location, store, id)
        return show_item(location, store, kind, id, most)


def show_to_people(
    location: Location,
    revision: str,
    *,
    model: str | None = None,
    prompt: str | None = None,
    most: int | None = None,
) -> ShownItem | AnswerView | VerdictExplanation:
    """Return a stored object for a terminal: a session or a case as an explained answer.

    With `most`, at most so many results of a run, the most urgent ones.
    """
    shown = _explain_case(location, revision, model, prompt) or _show(location, revision, most)
    if isinstance(shown, AnswerView):
        with open_store(location) as store:
            return explain_session(location, store, shown) or shown
    return shown


def _resolve(location: Location, store: Store, text: str) -> tuple[str, str]:
    """Return the kind and the id of what a revision names; raises `RevisionError`.

    The name of a prompt, a tool or a schema is an error with its id as the hint; for that of a test
    file or a row, the hint is how to write it. A run in progress is found, too.
    """
    try:
        return resolve(store, text)
    except RunInProgressError as running:
        return IN_PROGRESS, running.id
    except RevisionError as error:
        with open_catalogue(location) as project:
            names = {kind: ids.get(text) for kind, ids in project.reading.names.items()}
        kind, ids = next(((kind, ids) for kind, ids in names.items() if ids), ("", ()))
        if not ids:
            with open_project(location) as project:
                cases = (
                    f"'{path}::{case.row}'"
                    for path, file in sorted(project.reading.files.items())
                    for case in file.cases
                    if case.row == text
                )
                if meant := " or ".join(islice(cases, _MOST_MEANT)):
                    raise RevisionError(str(error), hint=f"did you mean {meant}?") from None
            raise
        raise RevisionError(
            f"'{text}' is the name of a {kind[:-1]}, and 'show' takes ids",
            hint=f"'evalstore show {short(ids[0])}' shows it once it is stored; "
            f"'evalstore ls {kind}' lists the ids",
        ) from None


_MOST_MEANT = 3
"""The most cases that a hint names."""


def _explain_case(
    location: Location, text: str, model: str | None, prompt: str | None
) -> VerdictExplanation | ShownItem | None:
    """Return the explanation of a case; None for a text that names something else.

    Of a test file with several cases it is the file with those of its results that are chosen.
    """
    is_chosen = model is not None or prompt is not None
    if (reference := read_reference(text, files=is_chosen)) is not None:
        try:
            return explain_case(location, reference, model, prompt)
        except SeveralCasesError as error:
            if error.run is None and not is_chosen:
                raise
            chosen = error.select(location, model, prompt or reference.prompt)
            if error.run is None:
                return show_workspace_file(location, error.file, chosen)
            with open_store(location) as store:
                item = show_file(location, store, error.run.id, error.file, chosen)
            if not reference.revision:
                item.edit, item.is_now = find_edit(location, error.file, item.id), True
            return item
    if is_chosen:
        raise EvalstoreError(
            "'--model' and '--prompt' select among the results of a case",
            hint="write FILE, FILE::ROW or REV:FILE, or leave them out",
        )
    return None


def _show_session(store: Store, view: AnswerView) -> ShownItem:
    """Return a stored session with its cases and judgements."""
    id, find = view.id or "", VersionReader(store).find
    stored = store.load_any("session", id).content
    question = restore_session(stored).question
    rows = {key: cell.row for cell in reversed(view.cells) for key in cell.evaluations}
    # Oldest first; those on several sessions together come last.
    judgements = sorted(
        view.judgements,
        key=lambda judgement: (len(judgement.sessions) > 1, judgement.started, judgement.id),
    )
    cases = {
        "current": sorted({cell.evaluation for cell in view.cells if cell.evaluation}),
        "cases": [{"file": it.file, "row": it.row, "verdict": it.word} for it in view.cells],
    }
    related = {
        "test": find("test", question.test),
        "prompt": find("prompt", question.prompt),
        "model": find("model", question.model),
        "question": hashing.question_id(question),
        **({"file": view.file, "row": view.row, **cases} if view.cells else {}),
        "evaluations": [
            _describe_judgement(judgement, rows.get(judgement.id)) for judgement in judgements
        ],
        "instructions": store.load_contents(
            "evaluation", {judgement.evaluation for judgement in judgements}
        ),
    }
    return ShownItem("session", id, stored, related, push=view.push)


def _describe_judgement(judgement: Judgement, row: str | None) -> dict[str, Json]:
    return {
        "started": judgement.started,
        "id": judgement.id,
        "evaluation": judgement.evaluation,
        "evaluator": judgement.evaluator,
        "verdict": judgement.verdict,
        "score": judgement.score,
        "human": judgement.is_person,
        "by": judgement.by,
        "feedback": judgement.feedback,
        "row": row,
        "together": len(judgement.sessions),
        "sessions": list(judgement.sessions),
        **({"takenFrom": judgement.taken_from} if judgement.taken_from else {}),
    }


# --- `show @work`: the current cases of the workspace, or of one test file


def show_workspace(location: Location) -> ShownItem:
    """Return all cases with their verdicts from stored answers and judgements.

    The id is that of the snapshot that a run would store.
    """
    with open_project(location) as project:
        require_sound(project, SelectionOptions())
        batches = ([result for result, _ in batch] for batch in iterate_workspace(project))
        results = ShownResults(list_results(batches))
        id, _ = project.snapshot()
    return ShownItem(
        WORKSPACE,
        id,
        {"verdicts": order_counts(results.verdicts)},
        {"results": results},
        name_prompts(location, results.prompts),
    )


def show_workspace_file(
    location: Location,
    path: str,
    chosen: ShownResults | None = None,
) -> ShownItem:
    """Return the current cases of a test file, with their results, or those that are chosen.

    Raises `RevisionError` if there is no such file.
    """
    with open_project(location) as project:
        require_sound(project, SelectionOptions())
        name = find_test_file(location, project.workspace, project.reading.files, path, WORKSPACE)
        file = project.reading.files[name]
        node = project.reading.nodes[name]
        every = ShownResults(list_results(_iterate_results(project, name, file)))
        results = chosen or every
        parts = (CaseFile(tuple(batch)) for batch in in_batches(file.cases))
        described = (hashing.describe_case_file(part)["cases"] for part in parts)
        cases = ShownCases(described, project.versions.load)
        return ShownItem(
            "cases",
            node,
            hashing.describe_case_file(replace(file, cases=())),
            {"file": name, "tests": {}, "evaluations": {}, "results": results},
            name_prompts(location, every.prompts),
            reference_names(project, cases.references),
            cases=cases,
        )


def _iterate_results(project: Project, name: str, file: CaseFile) -> Iterator[list[Result]]:
    """Yield the current results of a test file; none if there is no candidate to answer it."""
    if not project.settings.candidates and not all(case.recorded for case in file.cases):
        return
    selection = SelectionOptions(paths=(f"{project.workspace.root / name}",))
    for _, results in compute_workspace(project, resolve_scope(project, selection)):
        yield [as_result(result) for result in results]
