"""Decides the gate of a run and its exit code."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalstore.errors import INCOMPLETE, INTERRUPTED, NO, STOPPED, USAGE
from evalstore.planning.renames import Renames
from evalstore.reports.comparison import ResultIndex
from evalstore.store.results import iterate_results, read_results

if TYPE_CHECKING:
    from collections.abc import Iterable

    from evalstore.operations.run_report import RunReport
    from evalstore.planning.options import RunOptions
    from evalstore.planning.project import Project
    from evalstore.results import Result


def decide(project: Project, report: RunReport, options: RunOptions) -> None:
    """Set the gate and the exit code of a report.

    The gate passes only with verdicts, and when no missing verdict could make it fail.
    """
    failing = _is_failing(project, report, options)
    counts = report.totals.verdicts
    open_ended = bool(
        counts["pending"]
        or report.failed
        or (counts["undecided"] and options.fail_on != "none")
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


def _is_failing(project: Project, report: RunReport, options: RunOptions) -> bool:
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
        return _regresses(project, report)
    for file, words in report.totals.files.items():
        judged = words.total() - words["pending"] - words[None]
        threshold = project.reading.files[file].threshold
        if threshold is not None and judged and options.fail_on == "failure":
            if words["pass"] / judged < threshold:
                return True
        elif any(words[word] for word in bad):
            return True
    return False


def _regresses(project: Project, report: RunReport) -> bool:
    """Whether a case does not pass that passed in the last earlier run that judged it.

    An earlier run of some cases is skipped for the other cases.
    """
    counts = report.totals.verdicts
    if not counts["fail"] + counts["undecided"] + counts["error"]:
        return False
    renames = Renames(project)
    newest = project.store.load_run(report.run)
    all_results = (result for batch in iterate_results(project.store, newest) for result in batch)
    waiting = [result for result in all_results if result.verdict not in ("pass", None)]
    prompts = _prompts_of(project, waiting)
    for run in project.store.find_recent_runs(before=newest):
        if not waiting:
            return False
        results = [result for result in read_results(project.store, run) if result.verdict]
        before = ResultIndex(renames.follow(run, results, {result.file for result in waiting}))
        verdicts: dict[int, str | None] = {}
        for result in waiting:
            was = before.find(result, prompts.get((result.file, result.key), (result.prompt,)))
            verdicts[id(result)] = was.verdict if was else None
        if "pass" in verdicts.values():
            return True
        waiting = [result for result in waiting if verdicts[id(result)] is None]
    return False


def _prompts_of(
    project: Project, results: Iterable[Result]
) -> dict[tuple[str, str], tuple[str | None, ...]]:
    """All system prompts of the cases of these results, by file and key."""
    prompts: dict[tuple[str, str], tuple[str | None, ...]] = {}
    keys: dict[str, set[str]] = {}
    for result in results:
        keys.setdefault(result.file, set()).add(result.key)
    for file, case_keys in keys.items():
        for case in project.reading.files[file].cases:
            if case.key in case_keys:
                prompts.setdefault((file, case.key), case.prompts)
    return prompts
