"""Decides the gate of a run, and its exit code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import product

from evalstore.core.errors import INCOMPLETE, INTERRUPTED, NO, STOPPED, USAGE
from evalstore.core.values import SPECIAL_TAGS
from evalstore.planning.options import RunOptions
from evalstore.planning.project import Project
from evalstore.runs.run_report import RunReport, RunTotals, ThresholdGate
from evalstore.store import Store
from evalstore.workspace.settings.settings import Settings, Threshold


def decide(
    project: Project, report: RunReport, options: RunOptions, results: str | None = None
) -> None:
    """Set the gate and the exit code of a report.

    The gate passes only if there are verdicts, and if no missing verdict could make it fail.
    `results` is the id of the tree of results, for the thresholds of the settings.
    """
    covered: Mapping[str, Mapping[str | None, int]] = {}
    report.missed = []
    if results and project.settings.thresholds:
        report.thresholds, found = _find_gates(project.store, project.settings, results)
        if options.fail_on == "failure" and options.threshold is None:
            report.missed = [gate for gate in report.thresholds if not gate.reached]
            covered = found
    failing = bool(report.missed) or _is_failing(project, report, options, covered)
    counts = report.totals.verdicts
    # A regression is found without its decision: undecided is not a pass either.
    is_by_rate = options.threshold is not None
    needs_decisions = is_by_rate if options.fail_on == "regression" else options.fail_on != "none"
    open_ended = bool(
        counts["pending"]
        or report.failed
        or (counts["undecided"] and needs_decisions)
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


# --- the gates of a run that the thresholds of the settings make, by tag, file or model


_Words = dict[str, Counter[str | None]]
"""Test file -> how many results have each verdict."""


def _find_gates(
    store: Store, settings: Settings, results: str
) -> tuple[list[ThresholdGate], _Words]:
    """Return the gates of a run, in the order of the settings, and the results that have one."""
    gates: list[ThresholdGate] = []
    covered: _Words = {}
    groups: list[dict[tuple[str, ...], Counter[str | None]]] = [{} for _ in settings.thresholds]
    for file, model, kind, verdict, count in store.count_results_by_kind(results):
        tags, is_covered = kind.get("tags", ()), False
        for threshold, counts in zip(settings.thresholds, groups, strict=True):
            if set(threshold.where) <= set(tags):
                is_covered = True
                for group in _groups(threshold, tags, file, model):
                    counts.setdefault(group, Counter())[verdict] += count
        if is_covered:
            covered.setdefault(file, Counter())[verdict] += count
    for threshold, counts in zip(settings.thresholds, groups, strict=True):
        for group, words in sorted(counts.items()):
            judged = words.total() - words[None]
            by = dict(zip(threshold.by, group, strict=True))
            gates.append(
                ThresholdGate(threshold.where, by, threshold.pass_rate, words["pass"], judged)
            )
    return gates, covered


def _groups(
    threshold: Threshold, tags: Sequence[str], file: str, model: str
) -> Iterator[tuple[str, ...]]:
    """Yield the groups of a result, several when the gates are by tag."""
    by_tag = [tag for tag in tags if tag not in SPECIAL_TAGS and tag not in threshold.where]
    values = {"tag": by_tag, "file": [file], "model": [model]}
    return product(*(values[name] for name in threshold.by))
