"""A plan, the progress of a run and its result as lines to read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from evalstore.core.display import (
    BLANK,
    SIGNS,
    StyledLine,
    StyledSpan,
    case_name,
    heading,
    known_price,
    money,
    plural,
    safe,
    simulated,
    text_lines,
)
from evalstore.interfaces.tui.data_source import BackgroundRun
from evalstore.interfaces.tui.render.charts import bar
from evalstore.interfaces.tui.render.verdicts import verdict_cell, when
from evalstore.planning.project import Untrusted
from evalstore.planning.status_report import Status
from evalstore.runs.run_text import (
    failure_line,
    stop_lines,
    summary_text,
    verdict_line,
    verdict_spans,
)
from evalstore.runs.status.status_text import (
    KIND_TITLES,
    kind_count_text,
    labels_text,
    left_text,
    nothing_text,
    outcome_text,
    plan_text,
    reason_text,
    removed_texts,
    row_id_hint,
    skipped_text,
    trust_hint,
    value_lines,
    waiting_text,
)

if TYPE_CHECKING:
    from evalstore.runs.run import PlanPreview, RunEnd, RunRequest
    from evalstore.runs.status.status import KindReasons

_REASONS = 12
"""Reasons that are listed; more are only counted."""
_WIDTH = 80
"""The least columns in which two long values are shown."""
_VALUE_INDENT = 10
"""Columns before these values."""


# --- the plan


def plan_lines(
    request: RunRequest, preview: PlanPreview, width: int = 0, note: str = "", list_key: str = "w"
) -> Iterator[StyledLine]:
    """Yield the work of a run, with which models, why, and its price, in so many columns.

    The `note` follows the price. The key lists the reasons that are left out here.
    """
    status = preview.status
    if not status.is_any and not records_only(request, status):
        if request.before:
            yield heading("Nothing to do.")
            yield from text_lines(
                "These cases have no stored answer, nothing judges them, or a person has: "
                "a person's verdict is not replaced."
            )
        yield from left_lines(status)
        if not request.before:
            yield heading(nothing_text(status))
        yield from _removed_lines(request, status)
        return
    if status.is_any:
        yield heading(plan_text(status))
    if status.labels and not request.before:  # judging cases again is not about labels
        also = "also " if status.is_any else ""
        line = f"A run would {also}record {labels_text(status)}; that calls no model."
        yield from text_lines(line) if status.is_any else [heading(line)]
    elif not status.is_any:
        yield heading(
            "A run would record the verdicts that stored answers give; it calls no model."
        )
        yield from text_lines(f"{outcome_text(status)}.")
    if status.is_any and preview.max_cost is not None:
        yield from text_lines(f"It stops before it costs more than {money(preview.max_cost)}.")
    if note:
        yield from text_lines(note, "faint")
    for kind, title in KIND_TITLES.items():
        if of_kind := preview.reasons.get(kind):
            yield BLANK
            count = kind_count_text(status, kind, of_kind.total, of_kind.by_checks)
            by = "by " if kind == "judge" else ""
            names = ", ".join(f"{safe(it)} {n:,}" for it, n in of_kind.models.most_common())
            spans = StyledSpan(f"{title} ({count})  ", "heading"), StyledSpan(f"{by}{names}")
            yield StyledLine(spans)
            yield from _reason_lines(of_kind, status.prompts, width, list_key)
    yield from _removed_lines(request, status)
    if any(result.verdict for result in request.before):
        yield BLANK
        yield from text_lines(_ABOUT_REPEATS, "faint")
    yield from left_lines(status)


def records_only(request: RunRequest, status: Status) -> bool:
    """Return whether a run without calls would record labels, or other verdicts than the last."""
    return not request.before and bool(status.labels or outcome_text(status))


_ABOUT_REPEATS = (
    "The new verdicts count in the new run; in the workspace the first ones still count."
)


def _reason_lines(
    of_kind: KindReasons, prompts: Mapping[str, Mapping[str | None, str]], width: int, list_key: str
) -> Iterator[StyledLine]:
    reasons = of_kind.reasons
    for reason, count in reasons.most_common(_REASONS):
        item = of_kind.first[reason]
        text, number = reason_text(item), f"{count:>5,}x  "
        for line in text_lines(f"{number}{text}", indent=2):
            yield line._replace(hang=len(number))
        values = list(value_lines(item, width=max(_WIDTH, width), indent=_VALUE_INDENT))
        if values and reason in of_kind.differing:
            name = case_name(item.file, item.row, prompts.get(item.file, {}).get(item.prompt))
            yield from text_lines(f"one of the {count:,}, {name}:", "faint", _VALUE_INDENT)
        yield from values
    if len(reasons) > _REASONS:
        more = f"… {len(reasons) - _REASONS} more reasons ({list_key} lists all)"
        yield from text_lines(more, "faint", 2)


def _removed_lines(request: RunRequest, status: Status) -> Iterator[StyledLine]:
    """Yield how many rows each test file has lost; judging again is not about them."""
    texts = [] if request.before else removed_texts(status)
    if not texts:
        return
    yield BLANK
    for text in texts[:_REASONS]:
        yield from text_lines(text)
    if len(texts) > _REASONS:
        yield from text_lines(f"… in {len(texts) - _REASONS:,} more files", "faint")
    if hint := row_id_hint(status):
        yield from text_lines(f"({hint})", "faint")


def left_lines(status: Status) -> Iterator[StyledLine]:
    """Yield the work that a run would leave undone, and warnings."""
    if left := left_text(status):
        yield from text_lines(left, "pending")
    if status.untrusted:
        yield from text_lines(waiting_text(status), "pending")
        yield from _untrusted_lines(status.untrusted)
    if status.skipped:
        yield from text_lines(skipped_text(status.skipped), "faint")
    for warning in status.warnings:
        yield from text_lines(f"warning: {warning}", "pending")


def _untrusted_lines(files: Iterable[Untrusted]) -> Iterator[StyledLine]:
    for file in files:
        yield from text_lines(file.words, "pending", 4)
        yield from text_lines(trust_hint(file), "faint", 4)


# --- the progress


def progress_lines(progress: BackgroundRun, width: int) -> Iterator[StyledLine]:
    """Yield the progress of a run."""
    if not progress.is_planned:
        yield from text_lines("reading and planning …", "faint")
    for kind, label in (("asked", "asking "), ("judged", "judging")):
        total, done = progress.totals[kind], progress.done[kind]
        if total:
            filled = bar(min(1.0, done / total), width)
            rest = "░" * (width - len(filled))
            yield StyledLine(
                (
                    StyledSpan(f"{label}  "),
                    StyledSpan(filled, "pass"),
                    StyledSpan(rest, "faint"),
                    StyledSpan(f"  {done:,}/{total:,}"),
                )
            )
    if verdicts := verdict_spans(progress.verdict_counts, SIGNS):
        yield StyledLine((StyledSpan("so far   "), *verdicts))
    failed = progress.done["failed"]
    calls = f", {SIGNS['error']} {plural(failed, 'call')} failed"
    usd, seconds = (
        known_price(progress.usd, not progress.is_priced, brief=True),
        int(progress.seconds),
    )
    if progress.usd and progress.preview.status.is_simulated:
        usd = simulated(usd)
    yield StyledLine(
        (
            StyledSpan(f"{usd} so far, {seconds // 60}:{seconds % 60:02}"),
            *((StyledSpan(calls, "fail"),) if failed else ()),
        )
    )
    for note in progress.notes[-5:]:
        yield from text_lines(note, "pending")
    if progress.stops:
        yield from text_lines("c once more stops at once, without waiting.", "faint")


def run_text(progress: BackgroundRun) -> str:
    """Return what a run does in a line."""
    if not progress.is_planned:
        return "reading and planning …"
    calls = ", ".join(
        f"{label} {progress.done[kind]:,}/{total:,}"
        for kind, label in (("asked", "asking"), ("judged", "judging"))
        if (total := progress.totals[kind])
    )
    verdicts = "".join(span.text for span in verdict_spans(progress.verdict_counts, SIGNS))
    return "; ".join(filter(None, (calls, f"so far {verdicts}" * bool(verdicts)))) or "running"


# --- the result


def result_lines(end: RunEnd) -> Iterator[StyledLine]:
    """Yield how a run ended, and how many verdicts changed since the run before."""
    report = end.report
    yield heading(summary_text(report))
    yield from text_lines(f"{report.seconds:.1f} s", "faint")
    yield verdict_line(report, SIGNS)
    if changes := report.changes:
        from evalstore.results.flips.verdict_changes import changes_line

        line, since = changes_line(changes), StyledSpan("")
        if not changes.is_of_several:
            run = f"  (run {changes.since[:8]}, {when(changes.started)})"
            since = StyledSpan(run, "faint")
        yield line._replace(spans=(*line.spans, since))
    yield from stop_lines(report)
    yield from _repeat_lines(end)
    for failure in end.failures:
        yield BLANK
        yield failure_line(failure.text, failure.calls, SIGNS)
        hint = f": {failure.hint}" if failure.hint else ""
        yield from text_lines(f"hint: {failure.kind}{hint}", "faint", 2)
    if report.untrusted:
        yield BLANK
        yield from _untrusted_lines(report.untrusted)
    for warning in report.warnings:
        yield from text_lines(f"warning: {warning}", "pending")


def _repeat_lines(end: RunEnd) -> Iterator[StyledLine]:
    """Yield the verdicts that judging again has changed, and how many it has not."""
    if not end.repeated:
        return
    yield BLANK
    unchanged, prompts = 0, end.report.totals.prompts
    for was, now in end.repeated:
        if was.word == now.word:
            unchanged += 1
            continue
        name = case_name(now.file, now.row, prompts.get(now.file, {}).get(now.prompt))
        before, after = verdict_cell(was.word), verdict_cell(now.word)
        yield StyledLine(
            (
                StyledSpan(f"{safe(name)}  {safe(now.model)}  "),
                StyledSpan(before.text, before.colour),
                StyledSpan(" -> "),
                StyledSpan(after.text, after.colour),
            )
        )
    if unchanged:
        yield from text_lines(f"{plural(unchanged, 'verdict')} as before.", "faint")
