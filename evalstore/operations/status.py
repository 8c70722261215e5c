"""`status`: what changed since the last run, what a run would do, why, and its price."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from evalstore.ledger import sum_usage
from evalstore.operations.choice import stands_until
from evalstore.operations.desk import Desk, open_desk, open_workspace, store_path
from evalstore.operations.explain import Explainer, Reason
from evalstore.operations.quiet import Memory
from evalstore.operations.results import prompt_labels
from evalstore.operations.summary import Change, Item, Status
from evalstore.store.trees import read_tree
from evalstore.values import Case, CaseFile, Json, Usage

if TYPE_CHECKING:
    from evalstore.operations.orders import Wanted, Where
    from evalstore.plan import Ask, Judgement, Plan

_OUTPUT_GUESS = 300
"""Tokens of an answer that has no relative."""
_VERDICT_GUESS = 60
"""Tokens of a judgement."""


def status(where: Where, wanted: Wanted) -> Status:
    """What a run would do, and what changed; no model is called."""
    began = time.time_ns()
    workspace = open_workspace(where)
    memory = Memory(where, wanted, workspace, store_path(workspace, where), began)
    with open_desk(where, workspace=workspace) as desk:
        desk.require_sound(wanted)
        plan = desk.plan(wanted)
        found = describe_plan(desk, plan, wanted)
        runs_code = any(cell.case.code for cell in plan.cells)
        memory.keep(found, workspace.references.looked, runs_code=runs_code)
        if not desk.reading.errors and not plan.asks:
            _remember(desk)
        return found


def _remember(desk: Desk) -> None:
    """Keep the index when all it speaks of is stored."""
    leaves = [id for id, (kind, _) in desk.reading.contents.items() if kind == "cases"]
    if len(desk.store.load_contents("cases", leaves)) == len(leaves):
        desk.workspace.save_index()


def describe_plan(desk: Desk, plan: Plan, wanted: Wanted) -> Status:
    """A plan in words, with what changed and what it would cost."""
    explainer = Explainer(desk)
    asks = explainer.asks(plan)
    judgements = explainer.judgements(plan)
    items = [_ask_item(ask, reason) for ask, reason in asks]
    items += [_judge_item(one, reason) for one, reason in judgements]
    last = desk.store.find_runs(limit=1)
    return Status(
        items=items,
        ask=plan.ask_count,
        record=plan.recorded_count,
        judge=plan.judge_count,
        reuse=plan.reused,
        skipped=[(one.file, one.row, one.model, ", ".join(one.lacks)) for one in plan.skipped],
        cost=estimate(desk, asks, judgements),
        models=len({cell.candidate.id for cell in plan.cells}),
        cells=len(plan.cells),
        changes=find_changes(desk, plan, items, last[0][1], narrows=wanted.narrows) if last else [],
        last_run=last[0][0] if last else None,
        last_started=last[0][1]["started"] if last else None,
        warnings=[*desk.warnings, *(f"{p.place}: {p.message}" for p in desk.reading.problems)],
        prompts=prompt_labels(desk, items),
        left_asks=plan.left_asks,
        left_judgements=plan.left_judgements,
        untrusted=desk.code.named,
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


# --- what changed in the files


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
    changed = [path for path in nodes if path in before and before[path] != nodes[path]]
    gone = {path: id for path, id in before.items() if path not in nodes}
    broken = {problem.file for problem in desk.reading.errors}
    by_node = {id: path for path, id in gone.items()}
    old = desk.store.load_case_files([before[path] for path in (*changed, *gone)])
    found: list[Change] = []
    renamed: set[str] = set()
    by_file: dict[str, list[Item]] = {}
    for item in items:
        by_file.setdefault(item.file, []).append(item)
    for path in sorted(nodes.keys() - before.keys()):
        source = by_node.get(nodes[path])
        if source:
            renamed.add(source)
            found.append(Change("R ", path, 0, 0, 0, f"was {source}"))
        else:
            count = len(desk.reading.files[path].cases)
            found.append(Change("A ", path, count, 0, 0, "new"))
    for path in changed:
        here = by_file.get(path, [])
        change = _change(path, old[before[path]], desk.reading.files[path], here)
        if change:
            found.append(change)
    for path, id in gone.items():
        if path not in renamed and path not in broken:
            found.append(Change("D ", path, 0, 0, len(old[id].cases), "retired"))
    if narrows:
        found = [one for one in found if one.file in by_file]
    return sorted(found, key=lambda one: one.file)


def _change(path: str, was: CaseFile, now: CaseFile, here: list[Item]) -> Change | None:
    """How a file differs; `here` is what is to be done in it."""
    tests = {_shown(case) for case in was.cases}
    evaluations = {(case.tests, case.evaluation) for case in was.cases}
    shown = [case for case in now.cases if _shown(case) not in tests]
    told = [
        case
        for case in now.cases
        if _shown(case) in tests and (case.tests, case.evaluation) not in evaluations
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


def _shown(case: Case) -> tuple[object, ...]:
    """What decides the answers to a case, the model aside."""
    return case.tests, case.prompts, case.recorded


# --- price


def estimate(
    desk: Desk, asks: list[tuple[Ask, Reason]], judgements: list[tuple[Judgement, Reason]]
) -> float | None:
    """What the plan would cost in USD, by the usage of the nearest relatives.

    None if a price is unknown.
    """
    relatives = {reason.relative for _, reason in asks if reason.relative}
    samples = desk.store.find_samples(relatives) if relatives else {}
    sessions = desk.store.load_sessions([found[0].id for found in samples.values()])
    usages = {
        question: sum_usage(sessions[found[0].id].turns) for question, found in samples.items()
    }
    tests = _lengths(
        desk,
        "test",
        {ask.question.test for ask, reason in asks if (reason.relative or "") not in usages},
    )
    by_models = [one for one, _ in judgements if one.judge]
    prompts = _lengths(desk, "prompt", {one.judge.prompt for one in by_models if one.judge})
    told = _lengths(desk, "evaluation", {one.cell.case.evaluation or "" for one in by_models})
    total = 0.0
    for ask, reason in asks:
        found = desk.price_of(ask.cell.candidate.id)
        if found is None:
            return None
        usage = usages.get(reason.relative or "") or Usage(
            tests.get(ask.question.test, 0) // 4, _OUTPUT_GUESS
        )
        total += ask.count * found.cost(usage).usd
    for one in by_models:
        assert one.judge
        found = desk.price_of(one.judge.id)
        if found is None:
            return None
        shown = prompts.get(one.judge.prompt, 0) + told.get(one.cell.case.evaluation or "", 0)
        usage = Usage(shown // 4 + _OUTPUT_GUESS, _VERDICT_GUESS)
        total += one.count * found.cost(usage).usd
    return round(total, 6)


def _lengths(desk: Desk, kind: str, ids: set[str]) -> dict[str, int]:
    """Characters of versions, read now or stored."""
    contents = desk.reading.contents
    fresh = {id: len(contents[id][1]) for id in ids if id in contents}
    return fresh | desk.store.load_lengths(kind, ids - fresh.keys() - {""})
