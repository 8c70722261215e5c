"""Prints what was copied to or from a remote."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalstore.cli import output
from evalstore.display import bytes_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evalstore.operations.pull import PullReport
    from evalstore.operations.push import PushReport

_WORDS = {
    "runs": "run",
    "answers": "answer",
    "judgements": "judgement",
    "versions": "other version",
}


def counts_text(records: Mapping[str, int]) -> str:
    """Return the numbers of runs, answers, judgements and versions in words."""
    counts = [output.plural(count, _WORDS[name]) for name, count in records.items() if count]
    return ", ".join(counts) or "nothing"


def push_line(report: PushReport) -> str:
    """Return what was pushed in a line."""
    return _line("push", "to", report, report.bytes_sent)


def pull_line(report: PullReport) -> str:
    """Return what was pulled in a line."""
    return _line("pull", "from", report, report.bytes_received)


def warn_of_newer(report: PullReport) -> None:
    """Warn when there are rows that this program does not know."""
    if report.newer:
        output.warn(
            f"{output.plural(report.newer, 'row')} of a newer version of evalstore stayed in the "
            "remote"
        )


def _line(verb: str, word: str, report: PullReport | PushReport, size: int) -> str:
    place = f"{word} {report.remote} ({output.safe(report.address)})"
    if not any(report.records.values()):
        return f"nothing to {verb} {place}"
    if report.dry_run:
        return f"would {verb} {counts_text(report.records)} {place}"
    return f"{verb}ed {counts_text(report.records)} {place}: {bytes_text(size)}"
