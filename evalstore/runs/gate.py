"""Decides the gate of a run and its exit code."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalstore.core.errors import INCOMPLETE, INTERRUPTED, NO, STOPPED, USAGE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evalstore.planning.options import RunOptions
    from evalstore.planning.project import Project
    from evalstore.results.stats.threshold_gates import ThresholdGates
    from evalstore.runs.run_report import RunReport
    from evalstore.runs.run_totals import RunTotals


def decide(
    project: Project,
    report: RunReport,
    options: RunOptions,
    thresholds: ThresholdGates | None = None,
) -> None:
    """Set the gate and the exit code of a report.

    The gate passes only if there are verdicts, and if no missing verdict could make it fail.
    """
    covered: Mapping[str, Mapping[str | None, int]] = {}
    report.missed = []
    if thresholds:
        report.thresholds = thresholds.gates
        if options.fail_on == "failure" and options.threshold is None:
            report.missed = [gate for gate in thresholds.gates if not gate.reached]
            covered = thresholds.covered
    failing = bool(report.missed) or _is_failing(project, report, options, covered)
    counts = report.totals.verdicts
    open_ended = bool(
        counts["pending"]
        or report.failed
        or (counts["undecided"] and _needs_decisions(options))
        or (report.totals.rate.rate is None and not report.gate_off)
    )
    if failing:
        report.gate = "failed"
    elif report.gate_off:
        report.gate = "off"
    elif open_ended or report.status in ("interrupted", "over budget"):
        report.gate = "undetermined"
    else:
        report.gate = "passed"
    if report.status == "interrupted":
        report.exit_code = INTERRUPTED
    elif report.status == "over budget":
        report.exit_code = STOPPED
    elif failing:
        report.exit_code = NO
    elif open_ended:
        report.exit_code = INCOMPLETE
    if report.left_out and report.exit_code not in (INTERRUPTED, STOPPED):
        report.exit_code = USAGE


def _needs_decisions(options: RunOptions) -> bool:
    """Return whether an undecided case leaves the gate open.

    A regression is found without its decision: undecided is not a pass either.
    """
    if options.fail_on == "regression":
        return options.threshold is not None
    return options.fail_on != "none"


def reaches_threshold(project: Project, totals: RunTotals, file: str) -> bool:
    """Return whether a test file has a threshold of its own, and enough of its cases pass."""
    threshold = project.reading.files[file].threshold
    words = totals.files[file]
    judged = words.total() - words["pending"] - words[None]
    return threshold is not None and bool(judged) and words["pass"] / judged >= threshold


def _is_failing(
    project: Project,
    report: RunReport,
    options: RunOptions,
    covered: Mapping[str, Mapping[str | None, int]],
) -> bool:
    """Return whether verdicts fail the gate; `covered` are counted that do not fail it alone."""
    if options.threshold is not None:
        rate = report.totals.rate.rate
        return rate is not None and rate < options.threshold
    bad: tuple[str, ...] = {
        "failure": ("fail", "error"),
        "undecided": ("fail", "error", "undecided"),
        "error": ("error",),
        "regression": (),
        "none": (),
    }[options.fail_on]
    if options.fail_on == "regression":
        return bool(report.regressions)
    for file, words in report.totals.files.items():
        judged = words.total() - words["pending"] - words[None]
        threshold = project.reading.files[file].threshold
        if threshold is not None and judged and options.fail_on == "failure":
            if words["pass"] / judged < threshold:
                return True
        elif any(words[word] > covered.get(file, {}).get(word, 0) for word in bad):
            return True
    return False
