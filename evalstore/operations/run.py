"""`run` and `judge`: carry out the plan, and record the run."""

from __future__ import annotations

import secrets
import subprocess
from typing import TYPE_CHECKING

from evalstore import __version__, hashing
from evalstore.errors import OK
from evalstore.operations.desk import Desk, open_desk
from evalstore.operations.execution import carry_out
from evalstore.operations.gate import decide
from evalstore.operations.reporting import RunReport, describe_spending
from evalstore.operations.results import (
    VERDICTS,
    CellResult,
    build_results,
    feedback_of,
    prompt_labels,
    settle,
)
from evalstore.operations.status import describe_plan
from evalstore.operations.times import now
from evalstore.report.statistics import wilson
from evalstore.values import Json

if TYPE_CHECKING:
    from pathlib import Path

    from evalstore.execute import Outcome
    from evalstore.operations.orders import Orders, Wanted, Where
    from evalstore.operations.summary import Status
    from evalstore.operations.watching import Watcher
    from evalstore.plan import Plan


def plan_run(where: Where, wanted: Wanted, *, judge_only: bool = False) -> Status:
    """What `run` would do, without doing it."""
    with open_desk(where, create=True) as desk:
        desk.require_sound(wanted)
        plan = desk.plan(wanted, judge_only=judge_only)
        if judge_only:
            _only_judge(plan)
        return describe_plan(desk, plan, wanted)


def run(where: Where, wanted: Wanted, orders: Orders, watcher: Watcher) -> RunReport:
    """Ask what is missing, judge what is missing, record the run.

    Raises `WorkspaceError` before anything is asked when files have errors.
    """
    with open_desk(where, create=True) as desk:
        desk.require_sound(wanted)
        plan = desk.plan(wanted, judge_only=orders.judge_only)
        if orders.judge_only:
            _only_judge(plan)
        started = now()
        snapshot = _store_workspace(desk)
        outcome = carry_out(desk, plan, wanted, orders, watcher)
        cells = settle(plan, desk.settings.verdict, outcome.sessions, outcome.votes)
        run_id, counts = _record(desk, wanted, orders, plan, cells, outcome, snapshot, started)
        report = RunReport(
            run=run_id,
            status=_status(cells, outcome),
            asked=outcome.asked,
            judged=outcome.judged,
            reused=plan.reused,
            failed=outcome.failed,
            failures=outcome.failures,
            verdicts=counts,
            cost=round(outcome.cost + outcome.judge_cost, 8) if outcome.priced else None,
            judge_cost=outcome.judge_cost,
            spending=describe_spending(outcome),
            saved=_saved(desk, plan, cells, outcome),
            seconds=(now() - started) / 1e6,
            gate="passed",
            exit_code=OK,
            cells=cells,
            feedback=feedback_of(desk.store, (one for one in cells if one.verdict != "pass")),
            rate=wilson(
                counts["pass"], sum(counts[word] for word in ("pass", "fail", "undecided", "error"))
            ),
            skipped=[(one.file, one.row, one.model, ", ".join(one.lacks)) for one in plan.skipped],
            warnings=[*desk.warnings, *(f"{p.place}: {p.message}" for p in desk.reading.problems)],
            prompts=prompt_labels(desk, cells),
            gate_off=orders.fail_on == "none" and orders.threshold is None,
        )
        decide(desk, report, orders)
        return report


def _only_judge(plan: Plan) -> None:
    plan.asks = []
    plan.judgements = [one for one in plan.judgements if one.session is not None]


def _store_workspace(desk: Desk) -> str:
    """Store every version the plan may name, and the snapshot; the index may speak of them then."""
    nodes = dict(desk.reading.nodes)
    root, tree = desk.snapshot()
    desk.store.ensure_versions(
        {**desk.reading.contents, **desk.contents, **tree}, desk.reading.blobs
    )
    desk.workspace.save_index()
    assert nodes.keys() == desk.reading.files.keys()
    return root


# --- recording


def _record(
    desk: Desk,
    wanted: Wanted,
    orders: Orders,
    plan: Plan,
    cells: list[CellResult],
    outcome: Outcome,
    snapshot: str,
    started: int,
) -> tuple[str, dict[str, int]]:
    results, contents = build_results(cells, desk.reading.nodes)
    desk.store.ensure_versions(contents)
    counts = dict.fromkeys(VERDICTS, 0)
    for one in cells:
        if one.word:
            counts[one.word] += 1
    settings = desk.settings
    content = hashing.describe(
        "run",
        nonce=secrets.token_hex(8),
        started=started,
        ended=now(),
        status=_status(cells, outcome),
        message=orders.message,
        snapshot=snapshot,
        results=results,
        candidates=[
            {"id": one.id, "model": one.model, "temperature": one.temperature}
            for one in desk.candidates(wanted)
        ],
        evaluators=[{"id": one.id, "evaluator": one.evaluator} for one in desk.judges(wanted)],
        settings={
            "attempts": settings.attempts,
            "evaluationsPerEvaluator": settings.evaluations_per_evaluator,
            "verdict": settings.verdict,
            "maxTestOutputTokens": settings.max_test_output_tokens,
        },
        selection=wanted.document(),
        judgeOnly=True if orders.judge_only else None,
        asked=outcome.asked,
        judged=outcome.judged,
        reused=plan.reused,
        failed=outcome.failed,
        verdicts=counts,
        cost=round(outcome.cost + outcome.judge_cost, 8) if outcome.priced else None,
        spending=describe_spending(outcome),
        git=git_state(desk.workspace.root),
        version=__version__,
    )
    return desk.store.record_run(content), counts


def _saved(desk: Desk, plan: Plan, cells: list[CellResult], outcome: Outcome) -> float:
    """What the stored answers and judgements that count here have cost, in USD."""
    made = {vote.id for votes in outcome.votes.values() for vote in votes}
    judged = (vote.id for one in cells for vote in one.votes if vote.id not in made)
    answered = (id for ids in plan.sessions.values() for id in ids)
    return round(
        desk.store.sum_costs("session", answered) + desk.store.sum_costs("judgement", judged), 8
    )


def _status(cells: list[CellResult], outcome: Outcome) -> str:
    if outcome.interrupted:
        return "interrupted"
    if outcome.over_budget:
        return "over budget"
    return "incomplete" if outcome.failed or any(one.pending for one in cells) else "complete"


def git_state(root: Path) -> Json:
    """The commit of the workspace and whether it has changes; None outside of git."""
    try:
        found = subprocess.run(
            ["git", "status", "--porcelain=v2", "--branch", "--untracked-files=no", "."],
            cwd=root,
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    lines = found.stdout.splitlines()
    commit = next((line.split()[-1] for line in lines if line.startswith("# branch.oid")), "")
    if not commit or commit == "(initial)":
        return None
    return {"commit": commit, "dirty": any(not line.startswith("#") for line in lines)}
