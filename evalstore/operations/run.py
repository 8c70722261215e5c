"""`run` and `judge`: carry out the plan, and record the run."""

from __future__ import annotations

import asyncio
import secrets
import signal
import subprocess
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from evalstore import __version__, hashing
from evalstore.errors import OK
from evalstore.execute import Executor, Limits, Outcome, Rim
from evalstore.operations.desk import Desk, open_desk
from evalstore.operations.doors import Doors
from evalstore.operations.gate import decide
from evalstore.operations.reporting import RunReport
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

    from evalstore.operations.orders import Orders, Wanted, Where
    from evalstore.operations.summary import Status
    from evalstore.plan import Plan

_GRACE_SECONDS = 10.0


class Watcher(Protocol):
    """Who looks on while a run goes."""

    def start(self, asks: int, judgements: int) -> None:
        """The plan is known."""
        ...

    def advance(self, what: str, count: int) -> None:
        """So many more are `asked`, `judged` or `failed`."""
        ...

    def note(self, message: str) -> None:
        """Something the user should read now."""
        ...

    def stop(self) -> None:
        """Nothing more will come."""
        ...


def plan_run(where: Where, wanted: Wanted, *, judge_only: bool = False) -> Status:
    """What `run` would do, without doing it."""
    with open_desk(where, create=True) as desk:
        desk.require_sound(wanted)
        plan = desk.plan(wanted)
        if judge_only:
            _only_judge(plan)
        return describe_plan(desk, plan, wanted)


def run(where: Where, wanted: Wanted, orders: Orders, watcher: Watcher) -> RunReport:
    """Ask what is missing, judge what is missing, record the run.

    Raises `WorkspaceError` before anything is asked when files have errors.
    """
    with open_desk(where, create=True) as desk:
        desk.require_sound(wanted)
        plan = desk.plan(wanted)
        if orders.judge_only:
            _only_judge(plan)
        started = now()
        snapshot = _store_workspace(desk)
        outcome = _execute(desk, plan, wanted, orders, watcher)
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


# --- executing


def _execute(desk: Desk, plan: Plan, wanted: Wanted, orders: Orders, watcher: Watcher) -> Outcome:
    if not plan.asks and not plan.judgements:
        return Outcome()
    settings = desk.settings
    doors = Doors(desk)
    executor = Executor(
        desk.store,
        plan,
        doors.candidates(plan),
        doors.judges(plan),
        Limits(
            concurrency=orders.concurrency or settings.concurrency,
            timeout=orders.timeout or settings.timeout,
            retries=settings.retries if orders.retries is None else orders.retries,
            judge_tokens=settings.max_evaluation_output_tokens,
        ),
        Rim(
            now=now, nonce=lambda: secrets.token_hex(8), progress=watcher.advance, warn=watcher.note
        ),
    )
    for note in doors.notes:
        watcher.note(note)
    watcher.start(plan.ask_count, plan.judge_count)
    try:
        return asyncio.run(_run_until_interrupted(executor, watcher))
    finally:
        watcher.stop()


async def _run_until_interrupted(executor: Executor, watcher: Watcher) -> Outcome:
    """Run; a first SIGINT lets calls in flight finish for a while, a second ends at once."""
    loop = asyncio.get_running_loop()
    task = asyncio.create_task(executor.run())
    presses = 0

    def interrupt() -> None:
        nonlocal presses
        presses += 1
        if presses == 1:
            watcher.note(
                f"interrupted: finishing what is in flight for up to {_GRACE_SECONDS:.0f} s "
                "(again to stop now)"
            )
            executor.halt()
            loop.call_later(_GRACE_SECONDS, task.cancel)
        else:
            task.cancel()

    for number in (signal.SIGINT, signal.SIGTERM):
        _handle(loop, number, interrupt)
    try:
        return await task
    except asyncio.CancelledError:
        executor.outcome.interrupted = True
        return executor.outcome


def _handle(
    loop: asyncio.AbstractEventLoop, number: signal.Signals, handler: Callable[[], None]
) -> None:
    try:
        loop.add_signal_handler(number, handler)
    except (NotImplementedError, RuntimeError, ValueError):
        return  # not the main thread, or Windows: Ctrl-C then ends at once


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
        selection={
            name: list(value) if isinstance(value, tuple) else value
            for name, value in (
                ("paths", wanted.paths),
                ("tags", wanted.tags),
                ("excludeTags", wanted.exclude_tags),
                ("name", wanted.name),
                ("models", wanted.models),
                ("evaluators", wanted.evaluators),
            )
            if value
        },
        judgeOnly=True if orders.judge_only else None,
        asked=outcome.asked,
        judged=outcome.judged,
        reused=plan.reused,
        failed=outcome.failed,
        verdicts=counts,
        cost=round(outcome.cost + outcome.judge_cost, 8) if outcome.priced else None,
        git=git_state(desk.workspace.root),
        version=__version__,
    )
    return desk.store.record_run(content), counts


def _status(cells: list[CellResult], outcome: Outcome) -> str:
    if outcome.interrupted:
        return "interrupted"
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
