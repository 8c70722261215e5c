"""Prints the lists of `log`, `diff` and failures."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from evalstore.cli import output
from evalstore.planning.options import describe_selection
from evalstore.reports.version_diff import Difference, focus

if TYPE_CHECKING:
    from evalstore.operations.diff import Diff
    from evalstore.operations.failures import FailureLog
    from evalstore.operations.log import Log
    from evalstore.reports.comparison import Pair

_CHANGES = {True: " + changes", False: "", None: ", changes unknown"}


def print_diff(found: Diff, *, answers: bool, stat: bool) -> None:
    """A comparison for people: flips first."""
    pairs = found.comparison
    for note in found.notes:
        output.talk(f"note: {note}")
    if found.models:
        output.line(f"{' -> '.join(map(output.safe, found.models))} in run {found.was[:8]}")
    if found.edits and not stat:
        output.line("Edited:")
        for file, edits in found.edits.items():
            output.line(f"    {output.safe(file)}")
            for edit in edits[:6]:
                _print_edit(edit, "        ")
            if len(edits) > 6:
                output.line(f"        … {len(edits) - 6} more")
    for title, listed in (
        ("Broke", pairs.broke),
        ("Fixed", pairs.fixed),
        ("Changed", pairs.changed),
        ("New", pairs.new),
        ("Gone", pairs.gone),
    ):
        if listed and not stat:
            output.line(f"{output.paint(title, title.lower(), bold=True)} ({len(listed)}):")
            limit = len(listed) if output.verbose else 20
            for pair in listed[:limit]:
                _print_pair(found, pair, answers=answers)
            if len(listed) > limit:
                output.line(f"    … {len(listed) - limit} more (-v lists all)")
    before, after = pairs.rates()
    counts = [
        f"{len(listed)} {word}"
        for word, listed in (
            ("broke", pairs.broke),
            ("fixed", pairs.fixed),
            ("changed", pairs.changed),
            ("new", pairs.new),
            ("gone", pairs.gone),
        )
        if listed
    ]
    output.line(", ".join([*counts, f"{len(pairs.unchanged)} unchanged"]))
    if before.judged:
        change = pairs.change()
        about = f"{output.plural(change.pairs, 'case')} in {output.plural(change.files, 'file')}"
        output.line(f"pass rate {before.text} -> {after.text} ({about}, paired)")
        output.line(f"{change.points}; {change.finding}")


def _print_edit(edit: Difference, start: str) -> None:
    output.line(start + output.safe(str(edit)))
    if not edit.fits:
        indent = " " * (len(start) + 2)
        old, new = focus(edit.was, edit.now, output.width() - len(indent) - 2)
        output.line(f"{indent}{output.paint('- ' + output.safe(old), 'broke')}")
        output.line(f"{indent}{output.paint('+ ' + output.safe(new), 'fixed')}")


def _print_pair(found: Diff, pair: Pair, *, answers: bool) -> None:
    shown = pair.either
    label = f"{shown.file} [{shown.row}]" if shown.row else shown.file
    prompt = found.prompts.get(shown.file, {}).get(shown.prompt)
    label += f" ({prompt})" if prompt else ""
    was, now = _word(pair.was), _word(pair.now)
    arrow = (
        f"{output.paint(was, was)} -> {output.paint(now, now)}"
        if pair.was and pair.now and was != now
        else output.paint(now or was, now or was)
    )
    reason = found.reason(pair)
    model = "" if found.models else f"{output.safe(shown.model)}  "
    output.line(
        f"    {output.safe(label)}  {model}{arrow}"
        + (f"  ({output.safe(reason)})" if reason and pair.was and pair.now else "")
    )
    for side, result in (("was", pair.was), ("now", pair.now)):
        feedback = found.feedback_of(result)
        if feedback:
            first, *rest = output.wrap(feedback, output.width() - 13)
            output.line(f"        {side}: {first}")
            for part in rest:
                output.line(f"             {part}")
    if answers:
        for text in found.answer_diff(pair):
            colour = "fixed" if text.startswith("+") else "broke" if text.startswith("-") else None
            output.line(
                "        "
                + (output.paint(output.safe(text), colour) if colour else output.safe(text))
            )


def _word(result: Any) -> str:
    if result is None:
        return ""
    return result.verdict or ("pending" if result.evaluation else "answered")


def print_failures(found: FailureLog, *, oneline: bool) -> None:
    """Failures for people, with each hint once below them."""
    now = time.time_ns() // 1000
    hints: dict[str, str] = {}
    for entry in found.entries:
        one = entry.document()
        what = f"{one['class']} {one['status']}" if one["status"] else one["class"]
        hints |= {what: entry.hint} if entry.hint else {}
        if one["file"] is None:
            place = f"question {output.short(one['question'])}" if one["question"] else ""
        else:
            place = f"{one['file']} [{one['row']}]" if one["row"] else one["file"]
            if entry.place and entry.place.has_several:
                place += f" ({found.prompts[one['prompt']]})"
        parts = (
            output.short(entry.id),
            output.ago(entry.failure.at, now),
            output.safe((one["model"] or "") + (" (as evaluator)" if one["evaluator"] else "")),
            output.safe(place),
            f"{output.paint(what, 'error')}, {output.plural(one['attempts'], 'try')}",
        )
        line = "  ".join(part for part in parts if part)
        message = output.safe(one["message"])
        output.line(f"{line}  {message}" if oneline else f"{line}\n    {message}")
    for what, hint in hints.items():
        output.talk(f"hint: {what}: {hint}")
    if found.total > len(found.entries):
        output.talk(f"({found.total - len(found.entries):,} older; -v lists all)")


def print_log(found: Log, *, oneline: bool) -> None:
    """Runs for people."""
    now = time.time_ns() // 1000
    for number, entry in enumerate(found.entries):
        run = entry.run
        verdicts = ", ".join(
            output.paint(f"{count} {word}", word) for word, count in entry.verdicts.items() if count
        )
        when = output.ago(run.started, now)
        message = output.safe(run.message or "")
        selection = output.safe(describe_selection(run.selection))
        if oneline:
            output.line(
                "  ".join(
                    part
                    for part in (
                        output.short(run.id),
                        when,
                        verdicts,
                        f"({selection})" if selection else "",
                        "; ".join(map(output.safe, map(str, entry.edits))) or message,
                    )
                    if part
                )
            )
            continue
        if number:
            output.line()
        output.line(
            f"{output.paint('run', 'pending')} {run.id}  {when}"
            + (f"  git {run.git.commit[:8]}{_CHANGES[run.git.dirty]}" if run.git else "")
        )
        if message:
            output.line(f"    {message}")
        if selection:
            output.line(f"    arguments: {selection}")
        output.line(
            f"    {run.status}: {run.asked:,} asked, "
            + (f"{run.recorded:,} recorded, " if run.recorded else "")
            + f"{run.judged:,} judged, {run.reused:,} reused, "
            + output.money(run.cost)
        )
        if verdicts:
            output.line(f"    {verdicts}")
        for edit in entry.edits:
            _print_edit(edit, "    edit: ")
    if found.total > len(found.entries):
        output.talk(f"({found.total - len(found.entries)} older)")
