"""`status`: what changed since the last run, what a run would do, why, and its price."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from evalstore.operations.status_cache import Memory
from evalstore.operations.status_report import Change, Status
from evalstore.operations.views.prompt_names import prompt_labels
from evalstore.planning.estimate import estimate
from evalstore.planning.history_filters import stands_until
from evalstore.planning.opening import open_desk, open_workspace, store_path
from evalstore.planning.options import GO_ON
from evalstore.planning.plan import Item
from evalstore.planning.reasons import Explainer, Reason
from evalstore.planning.renames import pair_with_workspace
from evalstore.providers.kinds import SCRIPTED
from evalstore.store.trees import read_tree
from evalstore.values import Case, CaseFile, Json

if TYPE_CHECKING:
    from evalstore.planning.options import Wanted, Where
    from evalstore.planning.plan import Ask, Judgement, Plan
    from evalstore.planning.project import Desk


def status(where: Where, wanted: Wanted) -> Status:
    """What a run would do, and what changed; no model is called."""
    began = time.time_ns()
    workspace = open_workspace(where)
    memory = Memory(where, wanted, workspace, store_path(workspace, where), began)
    with open_desk(where, workspace=workspace) as desk:
        desk.require_sound(wanted, hint=GO_ON)
        plan = desk.plan(wanted)
        found = describe_plan(desk, plan, wanted)
        runs_code = any(cell.case.code for cell in plan.cells)
        memory.keep(found, desk.reading.references.looked, runs_code=runs_code)
        if not desk.reading.errors and not plan.asks:
            _remember(desk)
        return found


def _remember(desk: Desk) -> None:
    """Keep the index when all it speaks of is stored."""
    leaves = [id for id, (kind, _) in desk.reading.contents.items() if kind == "cases"]
    if len(desk.store.load_lengths("cases", leaves)) == len(leaves):
        desk.reading.save_index(desk.workspace)


def describe_plan(desk: Desk, plan: Plan, wanted: Wanted) -> Status:
    """A plan in words, with what changed and what it would cost."""
    explainer = Explainer(desk)
    asks = explainer.asks(plan)
    judgements = explainer.judgements(plan)
    items = [_ask_item(ask, reason) for ask, reason in asks]
    items += [_judge_item(one, reason) for one, reason in judgements]
    last = desk.store.find_runs(limit=1)
    price = estimate(desk, asks, judgements)
    return Status(
        items=items,
        ask=plan.ask_count,
        record=plan.recorded_count,
        judge=plan.judge_count,
        reuse=plan.reused,
        skipped=[(one.file, one.row, one.model, ", ".join(one.lacks)) for one in plan.skipped],
        cost=price.usd,
        guess=price.guess,
        models=len({cell.candidate.id for cell in plan.cells}),
        cells=len(plan.cells),
        changes=find_changes(desk, plan, items, last[0][1], narrows=wanted.narrows)
        if last
        else _all_new(desk, plan),
        last_run=last[0][0] if last else None,
        last_started=last[0][1]["started"] if last else None,
        warnings=[
            *desk.warnings,
            *(f"{p.place}: {p.message}" for p in desk.reading.problems),
        ],
        prompts=prompt_labels(desk, items),
        left_asks=plan.left_asks,
        left_judgements=plan.left_judgements,
        untrusted=desk.code.named,
        left_out=desk.left_out,
        refused=_refusals(desk, plan),
        waiting=plan.blocked_judgements,
        stands_until=stands_until(plan, desk.settings),
    )


def _ask_item(ask: Ask, reason: Reason) -> Item:
    cell = ask.cell
    return Item(
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


def _judge_item(one: Judgement, reason: Reason) -> Item:
    cell = one.cell
    return Item(
        "judge",
        cell.file,
        cell.case.row,
        cell.prompt,
        cell.candidate.id,
        one.judge.id if one.judge else "checks",
        one.count,
        reason.text,
        reason.was,
        reason.now,
    )


def _refusals(desk: Desk, plan: Plan) -> list[str]:
    """What a run would refuse to send, in one warning, with what allows it."""
    ids = {ask.cell.candidate.id for ask in plan.asks if not ask.cell.case.recorded}
    ids |= {one.judge.id for one in plan.judgements if one.judge}
    models = [desk.find_model(id, "models") for id in sorted(ids)]
    models = [one for one in models if one.provider.type != SCRIPTED]
    if not models:
        return []
    from evalstore.execution.refused_keys import combine, find_refused

    refused = find_refused(desk.workspace.root, desk.reading, models)
    if not refused:
        return []
    error = combine(refused)
    return [f"{error}; {error.hint}"]


# --- what changed in the files


def _all_new(desk: Desk, plan: Plan) -> list[Change]:
    """Before the first run all selected test files are new."""
    cases: dict[str, set[str]] = {}
    for cell in plan.cells:
        cases.setdefault(cell.file, set()).add(cell.case.row)
    return [Change("A ", path, len(rows), 0, 0, "new") for path, rows in sorted(cases.items())]


def find_changes(
    desk: Desk, plan: Plan, items: list[Item], run: Json, *, narrows: bool
) -> list[Change]:
    """Test files that differ from the snapshot of a run, as git shows them.

    When the command `narrows`, only those in which it would do something.
    """
    nodes = desk.reading.nodes
    root, _ = desk.snapshot()
    if root == run["snapshot"]:
        return []
    before = read_tree(run["snapshot"], desk.store.load_nodes)
    old_files: dict[str, CaseFile] = {}
    pairs = pair_with_workspace(desk, before, old_files)
    changed = {path: old for path, old in pairs.items() if before[old] != nodes[path]}
    gone = before.keys() - set(pairs.values())
    broken = {problem.file for problem in (*desk.reading.errors, *desk.left_out)}
    leaves = {before[path] for path in (*changed.values(), *gone)}
    old_files |= desk.store.load_case_files(leaves - old_files.keys())
    by_file: dict[str, list[Item]] = {}
    for item in items:
        by_file.setdefault(item.file, []).append(item)
    found = [
        Change("A ", path, len(desk.reading.files[path].cases), 0, 0, "new")
        for path in nodes.keys() - pairs.keys()
    ]
    for path, old in pairs.items():
        change = None
        if path in changed:
            was, here = old_files[before[old]], by_file.get(path, [])
            change = _change(path, was, desk.reading.files[path], here)
        if path != old:
            change = _as_renamed(change or Change("R ", path, 0, 0, 0, ""), old)
        if change:
            found.append(change)
    found += [
        Change("D ", path, 0, 0, len(old_files[before[path]].cases), "retired")
        for path in gone - broken
    ]
    if narrows:
        found = [one for one in found if one.file in by_file]
    return sorted(found, key=lambda one: (one.file, one.code))


def _as_renamed(change: Change, old: str) -> Change:
    """A change of a file that had another path."""
    reason = "; ".join(part for part in (f"was {old}", change.reason) if part)
    return replace(change, reason=reason)


def _change(path: str, was: CaseFile, now: CaseFile, here: list[Item]) -> Change | None:
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
        return Change("= ", path, 0, 0, gone, "" if gone else "back to what is stored")
    first = next((item for item in here if item.reason != "new row"), here[0])
    return Change(
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
