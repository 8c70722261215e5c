"""The command `status`: the changes since the last run, and the plan with reasons and cost."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Set

from evalstore.core.runs import Run
from evalstore.core.values import Case, Question
from evalstore.planning.cells import EarlierBatches, WholePlanError, batches, is_short
from evalstore.planning.open_project import open_project, warn_of_ignored_variables
from evalstore.planning.options import GO_ON, Location, SelectionOptions, is_partial
from evalstore.planning.plan import FiledItems, ItemList, Plan
from evalstore.planning.planner import Scope, plan_cells, plan_scope, require_sound, resolve_scope
from evalstore.planning.project import Project
from evalstore.planning.status_report import SettingEdit, Status, find_stored_outcomes
from evalstore.providers.base import SCRIPTED
from evalstore.results.edits.file_changes import with_outcomes
from evalstore.results.edits.participant_edits import with_all_candidates
from evalstore.results.equal_parts import find_unchanged_parts
from evalstore.results.labels.labels import current_labels
from evalstore.runs.scripted_answers import warn_of_edited_scripts
from evalstore.runs.status.remote_answers import asks_again, find_unread_remotes
from evalstore.runs.status.status_sums import StatusSums
from evalstore.runs.status.status_text import lost_labels_text
from evalstore.runs.status.work_reasons import WorkReasons
from evalstore.runs.workspace_checks.model_problems import describe_retirement
from evalstore.store.driver import note_reached
from evalstore.store.shared_runs import find_runs_in_progress
from evalstore.store.trees.tree_nodes import CaseFinder, RowIndex, StoredCases, read_tree


def status(location: Location, selection: SelectionOptions, *, whole: bool = True) -> Status:
    """Return what a run would do and what changed, without calling a model.

    Without `whole`, the list of items is missing; it is in a temporary file.
    Warns of what has no effect in `.env`.
    """
    warn_of_ignored_variables(location)
    with open_project(location) as project:
        require_sound(project, selection, hint=GO_ON)
        selection = project.with_whole_names(selection)
        settled = find_unchanged_parts(project, selection)
        scope = resolve_scope(project, selection, settled=settled)
        items = FiledItems if whole else WorkReasons
        report = describe_scope(project, scope, selection, items)
        report.in_progress, unreadable = find_runs_in_progress(project.store)
        report.warnings += unreadable
        if not project.reading.errors and not (report.ask or report.record):
            contents = project.reading.contents
            leaves = [id for id, (kind, _) in contents.items() if kind == "cases"]
            if len(project.store.load_lengths("cases", leaves)) == len(leaves):
                project.reading.save_index(project.workspace)
        return report


def describe_scope(
    project: Project,
    scope: Scope,
    selection: SelectionOptions,
    items: Callable[[], ItemList],
    note: Callable[[Plan], None] = lambda _plan: None,
) -> Status:
    """Return the status of a scope.

    `items` makes what keeps the items of the plan. Many cells are planned batch by batch,
    unless the plan of a batch depends on later ones. `note` is called with each plan; those of
    batches come before that of all cells if all are planned then.
    """
    cells = scope.cells
    if not is_short(len(cells)):
        kept = items()

        def plan_batches(files: Set[str] | None) -> Iterator[Plan]:
            earlier = EarlierBatches(cells.shared) if files is None else None
            done = 0
            for batch in batches(cells):
                some = [cell for cell in batch if files is None or cell.file in files]
                if some:
                    yield plan_cells(project, scope, some, earlier=earlier)
                done += len(batch)
                note_reached("cases", done, len(cells))

        try:
            return _add_up(project, scope, selection, plan_batches, kept, note)
        except WholePlanError:
            pass
    plan = plan_scope(project, scope)
    return _add_up(project, scope, selection, lambda _files: [plan], items(), note)


def _add_up(
    project: Project,
    scope: Scope,
    selection: SelectionOptions,
    make_plans: Callable[[Set[str] | None], Iterable[Plan]],
    items: ItemList,
    note: Callable[[Plan], None],
) -> Status:
    """Return the status of the plans of a scope.

    `make_plans` may leave out what is not of some test files, to read what is stored for these.
    """
    warn_of_edited_scripts(project, selection)
    candidates = selection.models or [each.id for each in project.settings.candidates]
    judges = selection.evaluators or [each.id for each in project.settings.evaluators]
    if retirement := describe_retirement(project.reading, (*candidates, *judges)):
        project.warn(retirement)
    sums = StatusSums(project, selection, scope, items)
    for plan in make_plans(None):
        note(plan)
        sums.add(plan)
    last, status = sums.last, sums.finish()
    edits = status.edits
    if last and not asks_again(project, selection):
        is_silent = {edit.of for edit in edits} - {edit.of for edit in edits if edit.place}
        is_of_all = bool(is_silent or status.labels or _may_count_otherwise(project, edits))
        settled = {it.file for it in status.changes if it.settled or it.partly}
        if is_of_all or settled:
            files = None if is_of_all else settled
            outcomes = find_stored_outcomes(project, make_plans(files), files)
            status.changes = [with_outcomes(change, outcomes) for change in status.changes]
            status.broke, status.fixed = outcomes.broke.total(), outcomes.fixed.total()
            status.undecided = outcomes.undecided
    problems = (problem.sentence for problem in project.reading.problems)
    # Before others ask for the candidates of another selection, which may be left out.
    status.warnings = [*project.warnings, *problems]
    if last:
        status.last_run, status.last_started = last.id, last.started
        names = {change.old_file or change.file: change.file for change in status.changes}
        status.lost_labels = find_lost_labels(project, last, names)
        if status.lost_labels and selection.narrows:
            covered = {(cell.file, cell.case.row) for cell in scope.cells}
            status.lost_labels = [place for place in status.lost_labels if place in covered]
    status.untrusted, status.left_out = project.code.named, project.left_out
    status.refused = _find_refusals(project, sums.called)
    is_paid = status.ask or status.judge > status.by_checks
    if is_paid or status.waiting_asks or status.waiting:
        status.unread_remotes = find_unread_remotes(project, selection)
    return status


def _may_count_otherwise(project: Project, edits: Iterable[SettingEdit]) -> bool:
    """Return whether other answers, or votes, may count now than in the last run."""
    if any(edit.of in project.settings.of_runs for edit in edits):
        return True
    for run in project.store.find_recent_runs():
        if _OF_OTHER_ANSWERS & run.selection.keys():
            return True
        if not is_partial(run):
            break
    return False


_OF_OTHER_ANSWERS = {"refresh", "max_age", "maxAge", "attempts"}
"""Stored options of a run for which other answers count than without them."""


def _find_refusals(project: Project, ids: Collection[str]) -> list[str]:
    """Return a warning about keys that a run would not send to models, with how to allow them."""
    models = [project.find_model(id, "models") for id in sorted(ids)]
    models = [model for model in models if model.provider.type != SCRIPTED]
    if not models:
        return []
    from evalstore.runs.execution.key_access import combine_refusals, find_refused_keys

    refused = find_refused_keys(project.workspace.root, project.reading, models)
    if not refused:
        return []
    error = combine_refusals(refused)
    return [f"{error}; {error.hint}"]


# --- finds the labels that no longer count because of an edit since the last run


def describe_lost_labels(project: Project, edited: Iterable[str]) -> str:
    """Return how many labels no longer count since the last run, of files that were edited."""
    last = project.store.find_run_before()
    lost = find_lost_labels(project, last, {path: path for path in edited}) if last else []
    return lost_labels_text(lost)


def find_lost_labels(
    project: Project, last: Run, names: Mapping[str, str]
) -> list[tuple[str, str]]:
    """Return the file and row of each label that counted in the last run, but not after an edit.

    `names` are the current paths of edited files by those in the last run.
    Only edited files are read, and after an edit of a candidate also those with its labels.
    """
    store, finder = project.store, CaseFinder(project.store)
    labels = current_labels(store)
    if not labels:
        return []
    questions = {
        id: session.question
        for id, session in store.find_sessions(label.sessions[0] for label in labels).items()
    }
    candidates = with_all_candidates(store, last).candidates, project.candidates(SelectionOptions())
    had, has = ({(each.model, each.temperature) for each in side} for side in candidates)
    void = {model for model, _ in had - has}
    nodes = read_tree(last.snapshot, store.load_nodes)
    paths = {
        path for path, name in names.items() if path in nodes and name in project.reading.files
    }
    labelled = store.find_named_leaves((), {question.test for question in questions.values()})
    if any(question.model in void for question in questions.values()):
        paths |= {path for path, node in nodes.items() if node in labelled}
        leaves = store.find_tree_leaves(last.results)
        paths |= {path for path, leaf in leaves if leaf.cases in labelled and path in nodes}
    files = store.load_case_files({nodes[path] for path in paths})
    lost: list[tuple[str, str]] = []
    for path in sorted(paths):
        name = names.get(path, path)
        if name not in project.reading.files:
            continue
        cases: Iterable[Case] = (stored := files[nodes[path]].cases)
        if isinstance(stored, StoredCases):
            parts = stored.smallest_parts()
            cases = stored.read([part for part in parts if part.node in labelled])
        by_evaluation: dict[str | None, list[Case]] = {}
        for case in cases:
            by_evaluation.setdefault(case.evaluation, []).append(case)
        rows = RowIndex(project.reading.files[name], finder)
        for label in labels:
            question = questions.get(label.sessions[0])
            same = by_evaluation.get(label.evaluation, ())
            was = next((each for each in same if _asks(each, question, had)), None)
            now = rows.find(was) if was else None
            if now and not (now.evaluation == label.evaluation and _asks(now, question, has)):
                lost.append((name, now.row))
    return lost


def _asks(case: Case, question: Question | None, models: Set[tuple[str, float | None]]) -> bool:
    """Return whether a case puts a question to one of these models with their temperatures."""
    if not question or question.test not in case.tests or question.prompt not in case.prompts:
        return False
    if case.recorded:
        return case.recorded == question.model
    own = case.temperature
    return any(
        model == question.model and question.temperature == (temperature if own is None else own)
        for model, temperature in models
    )
