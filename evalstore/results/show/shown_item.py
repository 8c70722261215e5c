"""The command `show`: finds any stored object by its id or name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from evalstore.core import hashing
from evalstore.core.batches import in_batches
from evalstore.core.deserialize import restore_session
from evalstore.core.display import WORKSPACE, short
from evalstore.core.errors import EvalstoreError, RevisionError
from evalstore.core.values import CaseFile, Json, Result, order_counts
from evalstore.planning.cell_results import as_result
from evalstore.planning.open_project import open_catalogue, open_project, open_store
from evalstore.planning.options import Location, SelectionOptions
from evalstore.planning.planner import require_sound, resolve_scope
from evalstore.planning.project import Project, VersionReader
from evalstore.planning.status_report import compute_workspace, iterate_workspace
from evalstore.results.answer.answer import AnswerView, read_answer
from evalstore.results.answer.verdict_explanation import (
    VerdictExplanation,
    explain_session,
    find_edit,
)
from evalstore.results.names import name_prompts, read_reference, reference_names
from evalstore.results.show.explained_case import SeveralCasesError, explain_case
from evalstore.results.show.revision_results import find_test_file
from evalstore.results.show.show import (
    IN_PROGRESS,
    ShownCases,
    ShownItem,
    ShownResults,
    list_results,
    show_file,
    show_item,
)
from evalstore.store.revisions import WORK, RunInProgressError, resolve, split_path

if TYPE_CHECKING:
    from evalstore.results.answer.judgements import Judgement
    from evalstore.store import Store


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
        if not ids and (meant := _find_meant(location, text)):
            raise RevisionError(str(error), hint=f"did you mean {meant}?") from None
        if not ids:
            raise
        raise RevisionError(
            f"'{text}' is the name of a {kind[:-1]}, and 'show' takes ids",
            hint=f"'evalstore show {short(ids[0])}' shows it once it is stored; "
            f"'evalstore ls {kind}' lists the ids",
        ) from None


def _find_meant(location: Location, text: str) -> str:
    """Return the first cases whose row a text names without their file; empty if there are none."""
    with open_project(location) as project:
        cases = (
            f"{path}::{case.row}"
            for path, file in sorted(project.reading.files.items())
            for case in file.cases
            if case.row == text
        )
        return " or ".join(f"'{place}'" for place in islice(cases, _MOST_MEANT))


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
    related = {
        "test": find("test", question.test),
        "prompt": find("prompt", question.prompt),
        "model": find("model", question.model),
        "question": hashing.question_id(question),
        **_describe_cases(view.cells),
        "evaluations": [
            _describe_judgement(judgement, rows.get(judgement.id)) for judgement in judgements
        ],
        "instructions": store.load_contents(
            "evaluation", {judgement.evaluation for judgement in judgements}
        ),
    }
    return ShownItem("session", id, stored, related, push=view.push)


def _describe_cases(cells: tuple[Result, ...]) -> dict[str, Json]:
    if not cells:
        return {}
    return {
        "file": cells[0].file,
        "row": cells[0].row,
        "current": sorted({cell.evaluation for cell in cells if cell.evaluation}),
        "cases": [{"file": cell.file, "row": cell.row, "verdict": cell.word} for cell in cells],
    }


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
