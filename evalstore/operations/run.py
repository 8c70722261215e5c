"""`run` and `judge`: carry out the plan, and record the run."""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, Protocol

from evalstore import __version__, hashing
from evalstore.catalogue import Model
from evalstore.errors import INCOMPLETE, INTERRUPTED, NO, OK
from evalstore.execute import Door, Executor, Limits, Outcome, Rim
from evalstore.operations.desk import Desk, Wanted, Where, open_desk
from evalstore.operations.results import CellResult, build_results, feedback_of, join_feedback, read_results, settle
from evalstore.operations.status import Status, describe_plan
from evalstore.plan import Candidate, Judge, Plan
from evalstore.pricing import find
from evalstore.providers import Provider, open_provider
from evalstore.report.statistics import Rate, wilson
from evalstore.values import Json

FailOn = Literal["failure", "regression", "undecided", "error", "none"]
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


@dataclass(frozen=True, slots=True)
class Orders:
    """How a run is to go."""

    concurrency: int | None = None
    timeout: float | None = None
    retries: int | None = None
    threshold: float | None = None
    fail_on: FailOn = "failure"
    message: str | None = None
    judge_only: bool = False


@dataclass
class RunReport:
    """What a run did and found."""

    run: str
    status: str
    asked: int
    judged: int
    reused: int
    failed: int
    failures: dict[str, int]
    verdicts: dict[str, int]
    cost: float | None
    judge_cost: float
    gate: str
    exit_code: int
    cells: list[CellResult]
    feedback: dict[str, str]
    rate: Rate
    skipped: list[tuple[str, str, str, str]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def document(self) -> Json:
        """As JSON."""
        return {
            "run": self.run,
            "status": self.status,
            "asked": self.asked,
            "judged": self.judged,
            "reused": self.reused,
            "failed": self.failed,
            "failures": [{"message": message, "count": count} for message, count in self.failures.items()],
            "verdicts": self.verdicts,
            "cost": self.cost,
            "gate": self.gate,
            "cases": [
                {
                    "file": one.cell.file,
                    "row": one.cell.case.row,
                    "prompt": one.cell.prompt,
                    "model": one.cell.candidate.id,
                    "verdict": one.word,
                    "score": one.score,
                    "feedback": join_feedback((vote.id for vote in one.votes), self.feedback),
                    "session": one.sessions[0] if one.sessions else None,
                    "sessions": list(one.sessions),
                }
                for one in self.cells
            ],
        }


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
        before = desk.store.find_runs(limit=1)
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
            rate=wilson(counts["pass"], sum(counts[word] for word in ("pass", "fail", "undecided", "error"))),
            skipped=[(one.file, one.row, one.model, ", ".join(one.lacks)) for one in plan.skipped],
            warnings=[*desk.warnings, *(f"{p.place}: {p.message}" for p in desk.reading.problems)],
        )
        _gate(desk, report, orders, before[0][1] if before else None)
        return report


def _only_judge(plan: Plan) -> None:
    plan.asks = []
    plan.judgements = [one for one in plan.judgements if one.session is not None]


def _store_workspace(desk: Desk) -> str:
    """Store every version the plan may name, and the snapshot; the index may speak of them then."""
    nodes = dict(desk.reading.nodes)
    root, tree = desk.snapshot()
    desk.store.ensure_versions({**desk.reading.contents, **desk.contents, **tree}, desk.reading.blobs)
    desk.workspace.save_index()
    assert nodes.keys() == desk.reading.files.keys()
    return root


# --- executing


def _execute(desk: Desk, plan: Plan, wanted: Wanted, orders: Orders, watcher: Watcher) -> Outcome:
    if not plan.asks and not plan.judgements:
        return Outcome()
    settings = desk.settings
    doors = _Doors(desk)
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
        Rim(now=now, nonce=lambda: secrets.token_hex(8), progress=watcher.advance, warn=watcher.note),
    )
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
            watcher.note(f"interrupted: finishing what is in flight for up to {_GRACE_SECONDS:.0f} s (again to stop now)")
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


def _handle(loop: asyncio.AbstractEventLoop, number: signal.Signals, handler: Callable[[], None]) -> None:
    try:
        loop.add_signal_handler(number, handler)
    except (NotImplementedError, RuntimeError, ValueError):
        return  # not the main thread, or Windows: Ctrl-C then ends at once


class _Doors:
    """Opens the providers of a plan, each account once."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.day = datetime.fromtimestamp(time.time(), tz=UTC).date().isoformat()
        self.environment = read_environment(desk.workspace.root)
        self._open: dict[tuple[object, ...], Provider] = {}

    def candidates(self, plan: Plan) -> dict[str, Door]:
        """By model version id."""
        found: dict[str, Candidate] = {ask.cell.question.model: ask.cell.candidate for ask in plan.asks}
        return {id: self._door(self.desk.find_model(one.id, "candidates"), "candidate", None) for id, one in found.items()}

    def judges(self, plan: Plan) -> dict[str, Door]:
        """By evaluator id."""
        found: dict[str, Judge] = {one.judge.evaluator: one.judge for one in plan.judgements if one.judge}
        doors = {}
        for id, judge in found.items():
            model = self.desk.find_model(judge.id, "evaluators")
            kind, content = self.desk.contents[id]
            temperature = _loads(content).get("temperature")
            doors[id] = self._door(model, "evaluator", temperature)
        return doors

    def _door(self, model: Model, part: Literal["candidate", "evaluator"], temperature: float | None) -> Door:
        provider = model.provider
        key = self.environment.get(provider.key_variable) if provider.key_variable else None
        place = (provider.type, provider.base_url, key, model.id if provider.type == "scripted" else None)
        if place not in self._open:
            self._open[place] = open_provider(
                provider.type,
                base_url=provider.base_url,
                api_key=key,
                responses=model.responses,
                supports_structured_outputs=provider.structured,
            )
        return Door(
            model=model,
            version=model.version(part),
            provider=self._open[place],
            price=find(model, self.desk.reading.currencies, self.day),
            temperature=temperature,
            structured=provider.structured and model.capabilities.get("structured") is not False,
        )


def _loads(content: str) -> Json:
    import json

    return json.loads(content)


def read_environment(root: Path) -> dict[str, str]:
    """The environment, filled up from `.env.local`, then `.env`; litellm sees the same."""
    from dotenv import dotenv_values

    for name in (".env.local", ".env"):
        for variable, value in dotenv_values(root / name, interpolate=False).items():
            if value is not None:
                os.environ.setdefault(variable, value)
    return dict(os.environ)


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
    counts = dict.fromkeys(("pass", "fail", "undecided", "error", "pending"), 0)
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
            {"id": one.id, "model": one.model, "temperature": one.temperature} for one in desk.candidates(wanted)
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
                ("paths", wanted.paths), ("tags", wanted.tags), ("excludeTags", wanted.exclude_tags), ("name", wanted.name),
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
        found = subprocess.run(  # noqa: S603
            ["git", "status", "--porcelain=v2", "--branch", "--untracked-files=no", "."],  # noqa: S607
            cwd=root, capture_output=True, text=True, timeout=10, check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    lines = found.stdout.splitlines()
    commit = next((line.split()[-1] for line in lines if line.startswith("# branch.oid")), "")
    if not commit or commit == "(initial)":
        return None
    return {"commit": commit, "dirty": any(not line.startswith("#") for line in lines)}


def now() -> int:
    """Microseconds since 1970, UTC."""
    return time.time_ns() // 1000


# --- the gate


def _gate(desk: Desk, report: RunReport, orders: Orders, before: Json) -> None:
    """Decide whether the run is good enough, and the exit code."""
    failing = _is_failing(desk, report, orders, before)
    if failing:
        report.gate = "failed"
    counts = report.verdicts
    open_ended = counts["pending"] or report.failed or (counts["undecided"] and orders.fail_on != "none")
    if report.status == "interrupted":
        report.exit_code = INTERRUPTED
    elif failing:
        report.exit_code = NO
    elif open_ended:
        report.exit_code = INCOMPLETE


def _is_failing(desk: Desk, report: RunReport, orders: Orders, before: Json) -> bool:
    if orders.threshold is not None:
        return report.rate.rate is not None and report.rate.rate < orders.threshold
    bad: tuple[str, ...] = {
        "failure": ("fail", "error"),
        "undecided": ("fail", "error", "undecided"),
        "error": ("error",),
        "regression": (),
        "none": (),
    }[orders.fail_on]
    if orders.fail_on == "regression":
        return before is not None and bool(_regressions(desk, report, before))
    by_file: dict[str, list[CellResult]] = {}
    for one in report.cells:
        by_file.setdefault(one.cell.file, []).append(one)
    for file, cells in by_file.items():
        judged = [one for one in cells if one.verdict]
        threshold = desk.reading.files[file].threshold
        if threshold is not None and judged and orders.fail_on == "failure":
            if sum(1 for one in judged if one.verdict == "pass") / len(judged) < threshold:
                return True
        elif any(one.verdict in bad for one in judged):
            return True
    return False


def _regressions(desk: Desk, report: RunReport, before: Json) -> list[CellResult]:
    """Cells that passed in the run before and do not pass now."""
    passed = {
        (one.file, one.key, one.prompt_number, one.model)
        for one in read_results(desk.store, before)
        if one.verdict == "pass"
    }
    return [
        one
        for one in report.cells
        if one.verdict in ("fail", "error", "undecided")
        and (one.cell.file, one.cell.case.key, one.cell.case.prompts.index(one.cell.prompt), one.cell.candidate.id) in passed
    ]
