"""A plan, the progress of a run and its result as lines to read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from evalstore.display import likely_price, money, plural, safe
from evalstore.errors import EvalstoreError, WorkspaceError
from evalstore.reports.version_diff import Difference, focus
from evalstore.tui.render.verdicts import bar, verdict, when
from evalstore.tui.state.verdict_order import SIGNS, counted
from evalstore.tui.widgets.text_view import BLANK, StyledLine, StyledSpan, heading, text_lines

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


def plan_lines(intent: RunRequest, planned: PlanPreview) -> Iterator[StyledLine]:
    """What would be done, by whom, why and at which price."""
    found = planned.status
    if not found.items:
        yield from _nothing(intent, found)
    else:
        price = likely_price(found.cost, found.guess)
        yield heading(f"{what_to_do(found)}: {price}")
        if planned.max_cost is not None:
            yield from text_lines(f"It stops before it costs more than {money(planned.max_cost)}.")
        if found.reuse:
            reused = plural(found.reuse, "stored answer")
            yield from text_lines(f"{reused} used again.", "faint")
        for kind, title in (("ask", "ask"), ("record", "take from files"), ("judge", "judge")):
            items = [item for item in found.items if item.kind == kind]
            if items:
                yield BLANK
                yield from _kind_lines(title, items)
        if intent.before:
            yield BLANK
            yield from text_lines(_ABOUT_AGAIN, "faint")
    yield from besides(found)


_ABOUT_AGAIN = (
    "The new verdicts are those of the run that this makes. In the workspace the first verdict "
    "of each judge that could be read goes on counting."
)


def what_to_do(found: Status) -> str:
    """`ask 12 answers, make 24 judgements`."""
    parts = (
        (found.ask, "ask", "answer"),
        (found.record, "take", "recorded answer"),
        (found.judge, "make", "judgement"),
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


def _nothing(intent: RunRequest, found: Status) -> Iterator[StyledLine]:
    yield heading("Nothing to do.")
    if intent.before:
        yield from text_lines(
            "These cases have no stored answer, nothing judges them, or a person has: "
            "the word of a person stands."
        )
    elif not found.left_asks and not found.left_judgements and not found.untrusted:
        yield from text_lines(
            f"{plural(found.reuse, 'answer')} of {plural(found.models, 'candidate')} "
            "and all judgements are stored."
        )


def besides(found: Status) -> Iterator[StyledLine]:
    """What a run would leave, and what the user should know."""
    if found.left_asks or found.left_judgements:
        yield from text_lines(
            f"Left: {plural(found.left_asks, 'answer')} and "
            f"{plural(found.left_judgements, 'judgement')} (no model may be called for them).",
            "pending",
        )
    for file in found.untrusted:
        yield from text_lines(f"{file.words}; read it, then: {file.command}", "pending")
    if found.skipped:
        yield from text_lines(
            f"{plural(len(found.skipped), 'pair')} skipped for lack of a capability.", "faint"
        )
    for warning in found.warnings:
        yield from text_lines(f"warning: {warning}", "pending")


# --- the progress


def progress_lines(runner: BackgroundRun, width: int) -> Iterator[StyledLine]:
    """How far a run is."""
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


def result_lines(ended: RunEnd, flips: VerdictChanges | None = None) -> Iterator[StyledLine]:
    """How a run ended, and what flipped since the run before."""
    recorded = f"{ended.recorded:,} recorded, " if ended.recorded else ""
    yield heading(
        f"run {ended.run[:8]} {ended.status}: {ended.asked:,} asked, {recorded}"
        f"{ended.judged:,} judged, {ended.reused:,} reused, {money(ended.cost)}, "
        f"{ended.seconds:.1f} s"
    )
    yield from text_lines(counted(ended.verdicts))
    if flips is not None:
        yield _flips_line(flips)
    if ended.status in ("interrupted", "over budget"):
        why = {"interrupted": "Interrupted", "over budget": "Stopped at the cost limit"}
        word = "Stopped at the time limit" if ended.time_is_up else why[ended.status]
        yield from text_lines(f"{word}: what was finished is stored, R continues from there.")
    yield from _again_lines(ended)
    for trouble in ended.troubles:
        yield BLANK
        status = f" {trouble.status}" if trouble.status else ""
        yield StyledLine(
            (
                StyledSpan(f"{SIGNS['error']} failed {trouble.count:,} x  ", "fail"),
                StyledSpan(f"{safe(trouble.kind)}{status}  {safe(trouble.model)}"),
            )
        )
        yield from text_lines(trouble.message, indent=2)
        if trouble.hint:
            yield from text_lines(f"hint: {trouble.hint}", "faint", 2)
    for text in (*ended.waiting, *ended.warnings):
        yield from text_lines(text, "pending")


def _flips_line(flips: VerdictChanges) -> StyledLine:
    since = f"  since run {flips.was[:8]} ({when(flips.started)})"
    parts = (
        StyledSpan(f"{flips.broke:,} broke", "fail" if flips.broke else ""),
        StyledSpan(", "),
        StyledSpan(f"{flips.fixed:,} fixed", "pass" if flips.fixed else ""),
    )
    flipped = parts if flips.broke or flips.fixed else (StyledSpan("nothing broke or was fixed"),)
    return StyledLine((*flipped, StyledSpan(since, "faint")))


def _again_lines(ended: RunEnd) -> Iterator[StyledLine]:
    """What was judged again, with the verdict before."""
    if not ended.again:
        return
    yield BLANK
    same = 0
    for was, now in ended.again:
        if was.word == now.word:
            same += 1
            continue
        before, after = verdict(was.word), verdict(now.word)
        yield StyledLine(
            (
                StyledSpan(before.text, before.colour),
                StyledSpan(" -> "),
                StyledSpan(after.text, after.colour),
                StyledSpan(f"  {safe(' '.join(_known(now.file, now.row)))}  {safe(now.model)}"),
            )
        )
    if same:
        yield from text_lines(f"{plural(same, 'verdict')} as before.", "faint")


def _known(*texts: str) -> Iterable[str]:
    return (text for text in texts if text)


def words_of(problem: EvalstoreError) -> str:
    """A problem as the command line tells it."""
    if isinstance(problem, WorkspaceError):
        listed = sorted(problem.problems, key=lambda one: one.severity != "error")
        lines = [f"{one.severity}: {one.place}: {one.message}" for one in listed[:5]]
        hints = [f"hint: {one.hint}" for one in listed[:1] if one.hint]
        more = len(listed) - 5
        return "\n".join([*lines, *([f"… {more} more"] if more > 0 else []), *hints])
    hint = f"\nhint: {problem.hint}" if problem.hint else ""
    return f"error: {problem}{hint}"
