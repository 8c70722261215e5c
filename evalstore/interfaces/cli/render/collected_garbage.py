"""Prints what a clean-up of a remote has done."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalstore.core.display import bytes_text
from evalstore.interfaces.cli import output
from evalstore.interfaces.cli.render.copied_rows import print_sentence

if TYPE_CHECKING:
    from evalstore.exchange.sync.remotes import GarbageReport
    from evalstore.remotes.collect_garbage import FileCounts


def print_collected(report: GarbageReport) -> None:
    """Print what was compacted and deleted, and what is deleted later."""
    collected, is_planned = report.collected, report.dry_run
    place = f"{report.remote} ({output.safe(report.address)})"
    if collected.replaced.indexes:
        verb = "would compact" if is_planned else "compacted"
        pushes = output.plural(collected.replaced.indexes, "push")
        size = bytes_text(collected.replaced.size)
        text = f"{verb} {pushes} with {_packs(collected.replaced)} in {place}: {size}"
        if collected.written.indexes:
            size = bytes_text(collected.written.size) if collected.written.size else "there already"
            text += f" -> {_packs(collected.written)}, {size}"
        print_sentence(text)
    if collected.deleted:
        verb = "would delete" if is_planned else "deleted"
        print_sentence(f"{verb} {_counts(collected.deleted)} in {place}")
    if not collected.replaced and not collected.deleted:
        print_sentence(f"nothing to compact or delete in {place}")
    if collected.waiting:
        is_one = collected.waiting.indexes + collected.waiting.packs == 1
        verb, them, were = ("is", "it", "it was") if is_one else ("are", "them", "they were")
        print_sentence(
            f"{_counts(collected.waiting)} {verb} no longer needed; 'evalstore remote gc' deletes "
            f"{them} {report.grace} after {were} marked"
        )
    if collected.others:
        pushes = output.plural(collected.others, "push")
        output.talk(f"{pushes} can be compacted only by those who have signed them")


def _packs(counts: FileCounts) -> str:
    return output.plural(counts.packs, "pack")


def _counts(counts: FileCounts) -> str:
    words = [(counts.indexes, "index file"), (counts.packs, "pack")]
    files = " and ".join(output.plural(count, word) for count, word in words if count)
    return f"{files} ({bytes_text(counts.size)})"
