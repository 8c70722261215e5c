"""Prints what was copied to or from a remote."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from evalstore.core.display import bytes_text
from evalstore.interfaces.cli import output
from evalstore.interfaces.cli.render.table import Table, print_table
from evalstore.remotes.acceptance import REASONS
from evalstore.workspace.settings.remote_names import BUNDLE, STORE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evalstore.exchange.sync.pull import PullReport
    from evalstore.exchange.sync.push import PushReport
    from evalstore.exchange.sync.remotes import RemotePush

_WRITERS = 5
"""The writers that are named of whom pushes are left out."""
_WORDS = {
    "runs": "run",
    "answers": "answer",
    "judgements": "verdict",
    "versions": "other version",
}


def counts_text(records: Mapping[str, int]) -> str:
    """Return the numbers of runs, answers, judgements and versions in words."""
    counts = [output.plural(count, _WORDS[name]) for name, count in records.items() if count]
    return ", ".join(counts) or "nothing"


def push_line(report: PushReport) -> str:
    """Return what was pushed in a line."""
    return _copied_line("push", "to", report, report.bytes_sent)


def pull_line(report: PullReport) -> str:
    """Return what was pulled in a line."""
    return _copied_line("pull", "from", report, report.bytes_received)


def _copied_line(verb: str, word: str, report: PushReport | PullReport, size: int) -> str:
    place = f"{word} {output.safe(f'{report.remote} ({report.address})')}"
    if not any(report.records.values()):
        return f"nothing to {verb} {place}"
    counts = counts_text(report.records)
    if report.dry_run:
        return f"would {verb} {counts} {place}"
    return f"{verb}ed {counts} {place}: {bytes_text(size)}"


def tell_of_excluded(runs: int) -> None:
    """Say how many runs were not copied because of their tags."""
    if runs:
        stay, they = ("stays", "it") if runs == 1 else ("stay", "they")
        output.talk(f"{output.plural(runs, 'run')} {stay} here: {they} may show excluded tests")


def tell_of_last_excluded(tags: Sequence[str]) -> None:
    """Say that the last push excluded tags, and that the next one will not by itself."""
    options = " ".join(f"--exclude-tag {shlex.quote(tag)}" for tag in tags)
    output.talk(
        output.safe(
            f'the last push used {options}; without it, "evalstore push" copies what that push '
            'left out (set "excludeTags" of the remote in evalstore.yaml to leave it out always)'
        )
    )


def print_sentence(text: str, label: str = "") -> None:
    """Print a text after a label, wrapped between words in a terminal."""
    columns = output.table_width()
    lines = output.wrap(text, columns - len(label)) if columns else [text]
    for number, line in enumerate(lines):
        output.line(f"{' ' * len(label) if number else label}{line}")


def warn_of_left_out(report: PullReport) -> None:
    """Warn of rows that this program does not know, and of pushes that do not count."""
    warn_of_rows_left(report)
    for left_out in report.left_out[:_WRITERS]:
        pushes = output.plural(left_out.pushes, "push")
        writer = left_out.writer or "an unknown writer"
        is_one = left_out.pushes == 1
        verb, then = ("is", "was") if is_one else ("are", "were")
        output.warn(f"{pushes} of {writer} {verb} {REASONS[left_out.reason]} and {then} left out")
    more = len(report.left_out) - _WRITERS
    if more > 0:
        output.warn(f"so were those of {output.plural(more, 'other writer')}")


def warn_of_rows_left(report: PullReport) -> None:
    """Warn of rows that were not copied."""
    if report.newer:
        rows = output.plural(report.newer, "row")
        output.warn(f"{rows} of a newer version of evalstore were not copied")
    _warn_of_waiting(report)
    if report.missing_packs:
        packs, rows = report.missing_packs, output.plural(report.missing_rows, "row")
        output.warn(
            f"the remote still lacks {output.plural(packs, 'pack')} with {rows}; pull again later, "
            "or see 'evalstore fsck --remote'"
        )


def print_pushes(pushes: Sequence[RemotePush]) -> None:
    """Print the pushes of a remote, and why some are left out."""
    header = ["pushed", "by", "rows"]
    rows = [[push.created, push.writer, f"{push.records:,}"] for push in pushes]
    if any(push.left_out for push in pushes):
        header.append("left out")
        for row, push in zip(rows, pushes, strict=True):
            row.append(REASONS[push.left_out] if push.left_out else "")
    print_table(Table(header, rows, numbers=frozenset({"rows"})))


def _warn_of_waiting(report: PullReport) -> None:
    """Warn of rows that were not copied, because they refer to rows that are not there."""
    runs, rows = report.waiting, report.waiting_rows
    counts = {"run": runs, "other row" if runs else "row": rows}
    stayed = [output.plural(count, word) for word, count in counts.items() if count]
    if not stayed:
        return
    place, then = "remote", "pull again when they have been pushed"
    if report.remote == BUNDLE:
        place, then = "bundle", "make it again"
    elif report.remote == STORE:
        address = shlex.quote(report.address)
        place, then = "other store", f"'evalstore fsck --store {address}' lists what is missing"
    output.warn(
        f"{' and '.join(stayed)} stayed in the {place}, which lacks rows that "
        f"{'it refers' if runs + rows == 1 else 'they refer'} to; {then}"
    )
