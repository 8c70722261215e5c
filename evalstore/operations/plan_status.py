"""Describes the status of a workspace: its plan with the changes, the reasons and the cost."""

from __future__ import annotations

import time
from itertools import chain
from typing import TYPE_CHECKING

from evalstore.operations.equal_parts import find_unchanged_parts
from evalstore.operations.file_changes import all_new, find_file_changes, with_outcomes
from evalstore.operations.lost_labels import find_lost_labels
from evalstore.operations.participant_edits import find_current_edits
from evalstore.operations.prompt_names import prompt_labels, settled_places
from evalstore.operations.remote_answers import (
    asks_again,
    find_remote_answers,
    find_remote_judgements,
    find_unread_remotes,
)
from evalstore.operations.scripted_answers import warn_of_edited_scripts
from evalstore.operations.status_cache import StatusCache
from evalstore.operations.status_report import Status, other_reasons
from evalstore.operations.status_sums import StatusSums, called_models, can_add_up, find_refusals
from evalstore.operations.stored_outcomes import StoredOutcomes, find_stored_outcomes
from evalstore.planning.estimate import count_by_checks, estimate, may_judge_less
from evalstore.planning.history_filters import stands_until
from evalstore.planning.open_project import locate_store, open_project, open_workspace
from evalstore.planning.options import GO_ON, is_partial
from evalstore.planning.plan_item import PlanItem
from evalstore.planning.planner import plan_scope, require_sound, resolve_scope
from evalstore.planning.reasons import Explainer
from evalstore.values import RECORDED

if TYPE_CHECKING:
    from collections.abc import Iterable

    from evalstore.planning.options import Location, SelectionOptions
    from evalstore.planning.plan import Plan, PlannedAsk, PlannedJudgement
    from evalstore.planning.project import Project
    from evalstore.planning.reason import Reason
    from evalstore.runs import Run


def compute_status(
    location: Location, selection: SelectionOptions, *, whole: bool = True
) -> Status:
    """Return what a run would do and what changed, and cache it for the next `status`.

    Without `whole`, the list of items may be missing, to save memory.
    """
    began = time.time_ns()
    workspace = open_workspace(location)
    memory = StatusCache(location, selection, workspace, locate_store(workspace, location), began)
    with open_project(location, workspace=workspace) as project:
        require_sound(project, selection, hint=GO_ON)
        settled = find_unchanged_parts(project, selection)
        scope = resolve_scope(project, selection, settled=settled)
        if not whole and can_add_up(project, scope):
            sums = StatusSums(project, selection, scope)
            status, runs_code = sums.status(), sums.has_code
        else:
            plan = plan_scope(project, scope)
            status = describe_plan(project, plan, selection)
            runs_code = any(cell.case.code for cell in plan.cells)
        runs_code = (
            runs_code
            or any(part.has_code for part in scope.settled)
            or any(model.application for model in project.reading.models.values())
        )
        memory.keep(status, project.reading.references.looked, runs_code=runs_code)
        if not project.reading.errors and not (status.ask or status.record):
            _remember(project)
        return status


def _remember(project: Project) -> None:
    """Save the index if all versions in it are stored."""
    leaves = [id for id, (kind, _) in project.reading.contents.items() if kind == "cases"]
    if len(project.store.load_lengths("cases", leaves)) == len(leaves):
        project.reading.save_index(project.workspace)


def describe_plan(project: Project, plan: Plan, selection: SelectionOptions) -> Status:
    """Describe a plan, with the changes since the last run and its cost."""
    warn_of_edited_scripts(project, selection)
    explainer = Explainer(project)
    asks = explainer.asks(plan)
    judgements = explainer.judgements(plan)
    items = [_ask_item(ask, reason) for ask, reason in asks]
    items += [_judge_item(judgement, reason) for judgement, reason in judgements]
    last = project.store.find_runs(limit=1)
    edits = find_current_edits(project, selection, items) if last else []
    price = estimate(project, asks, plan.judgements)
    by_checks = count_by_checks(plan)
    changes = (
        find_file_changes(
            project, plan, items, last[0], explainer.was_run, narrows=selection.narrows
        )
        if last
        else all_new(plan)
    )
    labels = _count_new_labels(project, plan, last[0].ended) if last else 0
    outcomes = StoredOutcomes()
    if last and not asks_again(project, selection):
        is_of_all = bool(edits or labels or _may_count_otherwise(project, last[0]))
        settled = {change.file for change in changes if change.settled}
        if is_of_all or settled:
            outcomes = find_stored_outcomes(project, plan, None if is_of_all else settled)
            changes = [with_outcomes(change, outcomes) for change in changes]
    models = {cell.candidate.id for cell in plan.cells} | plan.settled.models
    pending = {ask.cell.candidate.id for ask in plan.asks}
    pending |= {judgement.cell.candidate.id for judgement in plan.judgements}
    return Status(
        items=items,
        ask=plan.ask_count,
        record=plan.recorded_count,
        judge=plan.judge_count,
        reuse=plan.reused,
        skipped=[(pair.file, pair.row, pair.model, ", ".join(pair.lacks)) for pair in plan.skipped],
        cost=price.usd,
        guess=price.guess,
        known_cost=price.known,
        is_simulated=price.is_simulated,
        unpriced=list(price.unpriced),
        models=len(models),
        cells=len(plan.cells) + sum(part.cells for part in plan.settled),
        has_recorded=RECORDED in models,
        pending_models=len(pending - {RECORDED}),
        is_recorded_pending=RECORDED in pending,
        by_checks=by_checks,
        may_judge_less=may_judge_less(plan),
        changes=changes,
        edits=edits,
        broke=len(outcomes.broke),
        fixed=len(outcomes.fixed),
        other_reasons=other_reasons(items, changes) if last else [],
        last_run=last[0].id if last else None,
        last_started=last[0].started if last else None,
        warnings=[
            *project.warnings,
            *(problem.sentence for problem in project.reading.problems),
        ],
        prompts=_prompt_labels(project, plan, items),
        left_asks=plan.left_asks,
        left_judgements=plan.left_judgements,
        untrusted=project.code.named,
        left_out=project.left_out,
        refused=find_refusals(project, called_models(plan)),
        waiting=plan.blocked_judgements,
        waiting_asks=sum(ask.count for ask in plan.waiting_asks),
        labels=labels,
        lost_labels=find_lost_labels(project, last[0], changes) if last else [],
        remotes=()
        if asks_again(project, selection)
        else find_remote_answers(
            project,
            [*(ask for ask, _ in asks), *plan.waiting_asks],
            [*price.answers, *(None for _ in plan.waiting_asks)],
        ),
        remote_judgements=()
        if asks_again(project, selection)
        else find_remote_judgements(project, plan, price.judgements),
        unread_remotes=find_unread_remotes(project, selection)
        if plan.ask_count
        or plan.waiting_asks
        or plan.blocked_judgements
        or plan.judge_count > by_checks
        else (),
        stands_until=stands_until(plan, project.settings),
    )


def _may_count_otherwise(project: Project, last: Run) -> bool:
    """Return whether other answers, or votes, may count now than in the last run."""
    settings = project.settings
    now = {
        "attempts": settings.attempts,
        "evaluationsPerEvaluator": settings.evaluations_per_evaluator,
        "verdict": settings.verdict,
    }
    if any(last.settings.get(name, value) != value for name, value in now.items()):
        return True
    for run in project.store.find_recent_runs():
        if _OF_OTHER_ANSWERS & run.selection.keys():
            return True
        if not is_partial(run):
            break
    return False


_OF_OTHER_ANSWERS = {"refresh", "max_age", "maxAge", "attempts"}
"""Stored options of a run for which other answers count than without them."""


def _prompt_labels(
    project: Project, plan: Plan, items: Iterable[PlanItem]
) -> dict[str, dict[str | None, str]]:
    """Return the names of the system prompts of files with items, where there are several."""
    files = {item.file for item in items}
    cells = (cell for cell in plan.cells if cell.file in files)
    settled = (place for place in settled_places(plan.settled) if place.file in files)
    return prompt_labels(project, chain(cells, settled))


def _ask_item(ask: PlannedAsk, reason: Reason) -> PlanItem:
    cell = ask.cell
    return PlanItem(
        "record" if cell.case.recorded else "ask",
        cell.file,
        cell.case.row,
        cell.prompt,
        cell.candidate.id,
        None,
        ask.count,
        reason.text,
        reason.was,
        reason.now,
        reason.also,
    )


def _judge_item(judgement: PlannedJudgement, reason: Reason) -> PlanItem:
    cell = judgement.cell
    return PlanItem(
        "judge",
        cell.file,
        cell.case.row,
        cell.prompt,
        cell.candidate.id,
        judgement.judge.id if judgement.judge else "checks",
        judgement.count,
        reason.text,
        reason.was,
        reason.now,
        reason.also,
    )


def _count_new_labels(project: Project, plan: Plan, since: int) -> int:
    """Return how many labels on the planned cases were given, or removed, after a time."""
    labels = project.store.find_labels()
    if not labels or labels[-1].at <= since:
        return 0
    planned = {
        (cell.case.evaluation, subject)
        for cell in plan.cells
        if cell.case.evaluation
        for subject in cell.subjects(plan.sessions)
    }
    words: dict[tuple[str, str, tuple[str, ...]], list[str]] = {}
    for label in labels:
        place = label.evaluation.evaluation, label.evaluation.sessions
        if place in planned:
            before_and_now = words.setdefault((label.person, *place), ["none", "none"])
            before_and_now[1:] = [label.id]
            if label.evaluation.verdict == "none":
                before_and_now[1:] = ["none"]
            if label.at <= since:
                before_and_now[:1] = before_and_now[1:]
    return sum(1 for before, now in words.values() if before != now)
