"""`status`: what changed since the last run, what a run would do, why, and its price."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from evalstore.operations.status_cache import StatusCache
from evalstore.operations.status_report import FileChange, Status
from evalstore.operations.views.prompt_names import prompt_labels
from evalstore.planning.estimate import estimate
from evalstore.planning.history_filters import stands_until
from evalstore.planning.opening import open_project, open_workspace, store_path
from evalstore.planning.options import GO_ON
from evalstore.planning.plan import PlanItem
from evalstore.planning.reasons import Explainer, Reason
from evalstore.planning.renames import pair_with_workspace
from evalstore.providers.kinds import SCRIPTED
from evalstore.store.trees import read_tree
from evalstore.values import Case, CaseFile, Json

if TYPE_CHECKING:
    from evalstore.planning.options import Location, SelectionOptions
    from evalstore.planning.plan import Plan, PlannedAsk, PlannedJudgement
    from evalstore.planning.project import Project


def status(where: Location, wanted: SelectionOptions) -> Status:
    """What a run would do, and what changed; no model is called."""
    began = time.time_ns()
    workspace = open_workspace(where)
    memory = StatusCache(where, wanted, workspace, store_path(workspace, where), began)
    with open_project(where, workspace=workspace) as project:
        project.require_sound(wanted, hint=GO_ON)
        plan = project.plan(wanted)
        found = describe_plan(project, plan, wanted)
        runs_code = any(cell.case.code for cell in plan.cells)
        memory.keep(found, project.reading.references.looked, runs_code=runs_code)
        if not project.reading.errors and not plan.asks:
            _remember(project)
        return found


def _remember(project: Project) -> None:
    """Keep the index when all it speaks of is stored."""
    leaves = [id for id, (kind, _) in project.reading.contents.items() if kind == "cases"]
    if len(project.store.load_lengths("cases", leaves)) == len(leaves):
        project.reading.save_index(project.workspace)


def describe_plan(project: Project, plan: Plan, wanted: SelectionOptions) -> Status:
    """A plan in words, with what changed and what it would cost."""
    explainer = Explainer(project)
    asks = explainer.asks(plan)
    judgements = explainer.judgements(plan)
    items = [_ask_item(ask, reason) for ask, reason in asks]
    items += [_judge_item(one, reason) for one, reason in judgements]
    last = project.store.find_runs(limit=1)
    price = estimate(project, asks, judgements)
    return Status(
        items=items,
        ask=plan.ask_count,
        record=plan.recorded_count,
        judge=plan.judge_count,
        reuse=plan.reused,
        skipped=[(pair.file, pair.row, pair.model, ", ".join(pair.lacks)) for pair in plan.skipped],
        cost=price.usd,
        guess=price.guess,
        models=len({cell.candidate.id for cell in plan.cells}),
        cells=len(plan.cells),
        changes=find_changes(project, plan, items, last[0][1], narrows=wanted.narrows)
        if last
        else _all_new(project, plan),
        last_run=last[0][0] if last else None,
        last_started=last[0][1]["started"] if last else None,
        warnings=[
            *project.warnings,
            *(f"{p.place}: {p.message}" for p in project.reading.problems),
        ],
        prompts=prompt_labels(project, items),
        left_asks=plan.left_asks,
        left_judgements=plan.left_judgements,
        untrusted=project.code.named,
        left_out=project.left_out,
        refused=_refusals(project, plan),
        waiting=plan.blocked_judgements,
        stands_until=stands_until(plan, project.settings),
    )


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
    )


def _refusals(project: Project, plan: Plan) -> list[str]:
    """What a run would refuse to send, in one warning, with what allows it."""
    ids = {ask.cell.candidate.id for ask in plan.asks if not ask.cell.case.recorded}
    ids |= {judgement.judge.id for judgement in plan.judgements if judgement.judge}
    models = [project.find_model(id, "models") for id in sorted(ids)]
    models = [model for model in models if model.provider.type != SCRIPTED]
    if not models:
        return []
    from evalstore.execution.refused_keys import combine, find_refused

    refused = find_refused(project.workspace.root, project.reading, models)
    if not refused:
        return []
    error = combine(refused)
    return [f"{error}; {error.hint}"]


# --- what changed in the files


def _all_new(project: Project, plan: Plan) -> list[FileChange]:
    """Before the first run all selected test files are new."""
    cases: dict[str, set[str]] = {}
    for cell in plan.cells:
        cases.setdefault(cell.file, set()).add(cell.case.row)
    return [FileChange("A ", path, len(rows), 0, 0, "new") for path, rows in sorted(cases.items())]


def find_changes(
    project: Project, plan: Plan, items: list[PlanItem], run: Json, *, narrows: bool
) -> list[FileChange]:
    """Test files that differ from the snapshot of a run, as git shows them.

    When the command `narrows`, only those in which it would do something.
    """
    nodes = project.reading.nodes
    root, _ = project.snapshot()
    if root == run["snapshot"]:
        return []
    before = read_tree(run["snapshot"], project.store.load_nodes)
    old_files: dict[str, CaseFile] = {}
    pairs = pair_with_workspace(project, before, old_files)
    changed = {path: old for path, old in pairs.items() if before[old] != nodes[path]}
    gone = before.keys() - set(pairs.values())
    broken = {problem.file for problem in (*project.reading.errors, *project.left_out)}
    leaves = {before[path] for path in (*changed.values(), *gone)}
    old_files |= project.store.load_case_files(leaves - old_files.keys())
    by_file: dict[str, list[PlanItem]] = {}
    for item in items:
        by_file.setdefault(item.file, []).append(item)
    found = [
        FileChange("A ", path, len(project.reading.files[path].cases), 0, 0, "new")
        for path in nodes.keys() - pairs.keys()
    ]
    for path, old in pairs.items():
        change = None
        if path in changed:
            was, here = old_files[before[old]], by_file.get(path, [])
            change = _change(path, was, project.reading.files[path], here)
        if path != old:
            change = _as_renamed(change or FileChange("R ", path, 0, 0, 0, ""), old)
        if change:
            found.append(change)
    found += [
        FileChange("D ", path, 0, 0, len(old_files[before[path]].cases), "retired")
        for path in gone - broken
    ]
    if narrows:
        found = [one for one in found if one.file in by_file]
    return sorted(found, key=lambda one: (one.file, one.code))


def _as_renamed(change: FileChange, old: str) -> FileChange:
    """A change of a file that had another path."""
    reason = "; ".join(part for part in (f"was {old}", change.reason) if part)
    return replace(change, reason=reason)


def _change(path: str, was: CaseFile, now: CaseFile, here: list[PlanItem]) -> FileChange | None:
    """How a file differs; `here` is what is to be done in it."""
    known = {_shown(case) for case in was.cases}
    shown = [case for case in now.cases if _shown(case) not in known]
    fewer = _only_fewer(shown, was)
    shown = [case for case in shown if case.key not in fewer]
    evaluations = {(case.tests, case.evaluation) for case in was.cases}
    told = [
        case
        for case in now.cases
        if (_shown(case) in known or case.key in fewer)
        and (case.tests, case.evaluation) not in evaluations
    ]
    kept = {case.key for case in now.cases} | {case.row for case in now.cases}
    gone = sum(1 for case in was.cases if case.key not in kept and case.row not in kept)
    if not shown and not told and not gone:
        return None
    new = {item.row for item in here if item.kind != "judge" and item.reason == "new row"}
    asked = {item.row for item in here if item.kind != "judge"} - new
    judged = {item.row for item in here if item.kind == "judge"} - asked - new
    if not here:
        return FileChange("= ", path, 0, 0, gone, "" if gone else "reverted to a stored version")
    first = next((item for item in here if item.reason != "new row"), here[0])
    return FileChange(
        code=("M" if shown or gone else ".") + ("M" if told else "."),
        file=path,
        asked=len(asked),
        judged=len(judged),
        gone=gone,
        reason=first.reason if asked or judged else "",
        new=len(new),
        was=first.was,
        now=first.now,
    )


def _only_fewer(cases: list[Case], was: CaseFile) -> set[str]:
    """The keys of those of the cases that ask nothing which the file as it was did not ask."""
    several = [case for case in cases if len(case.tests) > 1]
    if not several and all(len(case.tests) == 1 for case in was.cases):
        return set()
    held: dict[object, set[tuple[str, ...]]] = {}
    for case in was.cases:
        for test in set(case.tests):
            held.setdefault((case.prompts, case.recorded, test), set()).add(case.tests)
    return {
        case.key
        for case in cases
        if any(
            Counter(case.tests) <= Counter(tests)
            for tests in held.get((case.prompts, case.recorded, case.tests[0]), ())
        )
    }


def _shown(case: Case) -> tuple[object, ...]:
    """What decides the answers to a case, the model aside."""
    return case.tests, case.prompts, case.recorded
