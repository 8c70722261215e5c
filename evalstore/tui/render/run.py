"""A plan, the progress of a run and its result as lines to read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from evalstore.display import likely_price, money, plural, safe
from evalstore.operations.views.styled_text import (
    BLANK,
    StyledLine,
    StyledSpan,
    heading,
    text_lines,
)
from evalstore.reports.version_diff import Difference, focus
from evalstore.tui.render.reading import problem_text
from evalstore.tui.render.verdicts import bar, verdict_cell, when
from evalstore.tui.state.verdict_order import SIGNS, verdict_counts

if TYPE_CHECKING:
    from evalstore.operations.status_report import Status
    from evalstore.operations.views.interactive_run import (
        PlanPreview,
        RunEnd,
        RunRequest,
        VerdictChanges,
    )
    from evalstore.planning.plan import PlanItem
    from evalstore.tui.state.background_run import BackgroundRun

_REASONS = 12
"""More are only counted."""
_WIDTH = 70
"""Of the part of two long values that is shown."""


# --- the plan


def plan_lines(request: RunRequest, preview: PlanPreview) -> Iterator[StyledLine]:
    """What would be done, by whom, why, and its price."""
    status = preview.status
    if not status.items:
        yield from _nothing(request, status)
    else:
        price = likely_price(status.cost, status.guess)
        yield heading(f"{work_summary(status)}: {price}")
        if preview.max_cost is not None:
            yield from text_lines(f"It stops before it costs more than {money(preview.max_cost)}.")
        if status.reuse:
            reused = plural(status.reuse, "stored answer")
            yield from text_lines(f"{reused} used again.", "faint")
        for kind, title in (("ask", "ask"), ("record", "take from files"), ("judge", "judge")):
            items = [item for item in status.items if item.kind == kind]
            if items:
                yield BLANK
                yield from _kind_lines(title, items)
        if request.before:
            yield BLANK
            yield from text_lines(_ABOUT_REPEATS, "faint")
    yield from left_lines(status)


_ABOUT_REPEATS = (
    "The new verdicts are those of the run that this makes. In the workspace the first verdict "
    "of each judge that could be read goes on counting."
)


def work_summary(status: Status) -> str:
    """`ask 12 answers, make 24 judgements`."""
    parts = (
        (status.ask, "ask", "answer"),
        (status.record, "take", "recorded answer"),
        (status.judge, "make", "judgement"),
    )
    return ", ".join(f"{verb} {plural(count, word)}" for count, verb, word in parts if count)


def _kind_lines(title: str, items: list[PlanItem]) -> Iterator[StyledLine]:
    who = Counter[str]()
    reasons = Counter[str]()
    first: dict[str, PlanItem] = {}
    for item in items:
        who[item.evaluator or item.model if item.kind == "judge" else item.model] += item.count
        reasons[item.reason] += item.count
        first.setdefault(item.reason, item)
    by = "by " if items[0].kind == "judge" else ""
    names = ", ".join(f"{safe(name)} {count:,}" for name, count in who.most_common())
    yield StyledLine(
        (StyledSpan(f"{title} {sum(who.values()):,}  ", "heading"), StyledSpan(f"{by}{names}"))
    )
    for reason, count in reasons.most_common(_REASONS):
        yield from text_lines(f"{count:>5,} x  {reason}", indent=2)
        yield from values_lines(first[reason], indent=11)
    if len(reasons) > _REASONS:
        yield from text_lines(f"… {len(reasons) - _REASONS} more reasons (w lists all)", "faint", 2)


def values_lines(item: PlanItem, indent: int = 0, width: int = _WIDTH) -> Iterator[StyledLine]:
    """The two values of an item, when its reason has no room for them."""
    if item.was is None or item.now is None or Difference("", item.was, item.now).fits:
        return
    was, now = focus(item.was, item.now, width)
    yield StyledLine((StyledSpan(f"- {safe(was)}", "old"),), indent)
    yield StyledLine((StyledSpan(f"+ {safe(now)}", "new"),), indent)


def _nothing(request: RunRequest, status: Status) -> Iterator[StyledLine]:
    yield heading("Nothing to do.")
    if request.before:
        yield from text_lines(
            "These cases have no stored answer, nothing judges them, or a person has: "
            "the word of a person stands."
        )
    elif not status.left_asks and not status.left_judgements and not status.untrusted:
        yield from text_lines(
            f"{plural(status.reuse, 'answer')} of {plural(status.models, 'candidate')} "
            "and all judgements are stored."
        )


def left_lines(status: Status) -> Iterator[StyledLine]:
    """What a run would leave undone, and warnings."""
    if status.left_asks or status.left_judgements:
        yield from text_lines(
            f"Left: {plural(status.left_asks, 'answer')} and "
            f"{plural(status.left_judgements, 'judgement')} (no model may be called for them).",
            "pending",
        )
    for file in status.untrusted:
        yield from text_lines(f"{file.words}; read it, then: {file.command}", "pending")
    if status.skipped:
        yield from text_lines(
            f"{plural(len(status.skipped), 'pair')} skipped for lack of a capability.", "faint"
        )
    for warning in status.warnings:
        yield from text_lines(f"warning: {warning}", "pending")


# --- the progress


def progress_lines(runner: BackgroundRun, width: int) -> Iterator[StyledLine]:
    """The progress of a run."""
    if not runner.is_planned:
        yield from text_lines("reading and planning …", "faint")
    for what, word in (("asked", "asking "), ("judged", "judging")):
        total, done = runner.totals[what], runner.done[what]
        if total:
            filled = bar(min(1.0, done / total), width)
            rest = "░" * (width - len(filled))
            yield StyledLine(
                (
                    StyledSpan(f"{word}  "),
                    StyledSpan(filled, "pass"),
                    StyledSpan(rest, "faint"),
                    StyledSpan(f"  {done:,}/{total:,}"),
                )
            )
    failed = runner.done["failed"]
    usd = money(runner.usd) + ("" if runner.is_priced else " (some prices unknown)")
    yield StyledLine(
        (
            StyledSpan(f"{usd} so far, {_minutes(runner.seconds)}"),
            *((StyledSpan(f", {SIGNS['error']} {failed:,} failed", "fail"),) if failed else ()),
        )
    )
    for note in runner.notes[-5:]:
        yield from text_lines(note, "pending")
    if runner.stops:
        yield from text_lines("c once more stops at once, without waiting.", "faint")


def _minutes(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"


# --- the result


def end_summary(runner: BackgroundRun) -> str:
    """How a run ended, in one line."""
    if runner.end is None:
        return problem_text(runner.problem) if runner.problem else ""
    end = runner.end
    return f"run {end.run[:8]} {end.status}: {end.asked:,} asked, {end.judged:,} judged"


def result_lines(end: RunEnd, changes: VerdictChanges | None = None) -> Iterator[StyledLine]:
    """How a run ended, and what flipped since the run before."""
    recorded = f"{end.recorded:,} recorded, " if end.recorded else ""
    yield heading(
        f"run {end.run[:8]} {end.status}: {end.asked:,} asked, {recorded}"
        f"{end.judged:,} judged, {end.reused:,} reused, {money(end.cost)}, "
        f"{end.seconds:.1f} s"
    )
    yield from text_lines(verdict_counts(end.verdicts))
    if changes is not None:
        yield _changes_line(changes)
    if end.status in ("interrupted", "over budget"):
        reasons = {"interrupted": "Interrupted", "over budget": "Stopped at the cost limit"}
        word = "Stopped at the time limit" if end.time_is_up else reasons[end.status]
        yield from text_lines(f"{word}: what was finished is stored, R continues from there.")
    yield from _repeat_lines(end)
    for failure in end.troubles:
        yield BLANK
        status = f" {failure.status}" if failure.status else ""
        yield StyledLine(
            (
                StyledSpan(f"{SIGNS['error']} failed {failure.count:,} x  ", "fail"),
                StyledSpan(f"{safe(failure.kind)}{status}  {safe(failure.model)}"),
            )
        )
        yield from text_lines(failure.message, indent=2)
        if failure.hint:
            yield from text_lines(f"hint: {failure.hint}", "faint", 2)
    for text in (*end.waiting, *end.warnings):
        yield from text_lines(text, "pending")


def _changes_line(changes: VerdictChanges) -> StyledLine:
    since = f"  since run {changes.was[:8]} ({when(changes.started)})"
    parts = (
        StyledSpan(f"{changes.broke:,} broke", "fail" if changes.broke else ""),
        StyledSpan(", "),
        StyledSpan(f"{changes.fixed:,} fixed", "pass" if changes.fixed else ""),
    )
    flipped = (
        parts if changes.broke or changes.fixed else (StyledSpan("nothing broke or was fixed"),)
    )
    return StyledLine((*flipped, StyledSpan(since, "faint")))


def _repeat_lines(end: RunEnd) -> Iterator[StyledLine]:
    """What was judged again, with the verdict before."""
    if not end.again:
        return
    yield BLANK
    same = 0
    for was, now in end.again:
        if was.word == now.word:
            same += 1
            continue
        before, after = verdict_cell(was.word), verdict_cell(now.word)
        yield StyledLine(
            (
                StyledSpan(before.text, before.colour),
                StyledSpan(" -> "),
                StyledSpan(after.text, after.colour),
                StyledSpan(f"  {safe(' '.join(_nonempty(now.file, now.row)))}  {safe(now.model)}"),
            )
        )
    if same:
        yield from text_lines(f"{plural(same, 'verdict')} as before.", "faint")


def _nonempty(*texts: str) -> Iterable[str]:
    return (text for text in texts if text)
