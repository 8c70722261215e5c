"""Whether a run is good enough: the gate, and the exit code."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalstore.errors import INCOMPLETE, INTERRUPTED, NO
from evalstore.operations.results import CellResult, read_results
from evalstore.values import Json

if TYPE_CHECKING:
    from evalstore.operations.desk import Desk
    from evalstore.operations.orders import Orders
    from evalstore.operations.reporting import RunReport


def decide(desk: Desk, report: RunReport, orders: Orders, before: Json) -> None:
    """Decide whether the run is good enough, and the exit code."""
    failing = _is_failing(desk, report, orders, before)
    if failing:
        report.gate = "failed"
    counts = report.verdicts
    open_ended = (
        counts["pending"] or report.failed or (counts["undecided"] and orders.fail_on != "none")
    )
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
        and (
            one.cell.file,
            one.cell.case.key,
            one.cell.case.prompts.index(one.cell.prompt),
            one.cell.candidate.id,
        )
        in passed
    ]
