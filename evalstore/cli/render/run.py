"""The answers of `status`, `run` and `judge` for people."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from evalstore.cli import output
from evalstore.errors import INTERRUPTED, STOPPED
from evalstore.operations.status_report import summed
from evalstore.reports.version_diff import Difference, focus

if TYPE_CHECKING:
    from evalstore.operations.run_report import RunReport
    from evalstore.operations.status_report import FileChange, Status
    from evalstore.planning.code_trust import Untrusted

_SHOWN = 20
"""Lines of a list before it is cut; `-v` shows all."""


def print_status(found: Status, *, explain: bool, dry_run: bool = False) -> None:
    """The answer of `status` and of `run -n` for people."""
    for warning in (*found.refused, *found.warnings):
        output.talk(f"warning: {output.safe(warning)}")
    output.left_out(found.left_out)
    if found.last_run is None:
        output.line("No run yet.")
    elif found.changes:
        when = output.ago(found.last_started or 0, time.time_ns() // 1000)
        output.line(f"Changed since run {output.short(found.last_run)} ({when}):")
        output.line('  (use "evalstore diff -- FILE" to see how)')
        width = max(output.columns_of(change.file) for change in found.changes)
        for change in found.changes:
            output.line(
                f"    {change.code}  {output.pad(output.safe(change.file), width)}  "
                f"{_what(change)}".rstrip()
            )
            _print_values(change.was, change.now, "            ")
    if found.skipped:
        output.line()
        output.line(f"Skipped, because the model lacks a capability ({len(found.skipped)}):")
        for file, row, model, lacks in found.skipped if output.verbose else found.skipped[:_SHOWN]:
            output.line(f"    {_case(file, row)}  {output.safe(model)} has no {lacks}")
        _cut(len(found.skipped))
    if found.items and explain:
        _print_items(found)
    if found.changes or found.skipped or (found.items and explain) or found.last_run is None:
        output.line()
    left = " and ".join(
        output.plural(count, word)
        for count, word in ((found.left_asks, "answer"), (found.left_judgements, "judgement"))
        if count
    )
    if left:
        output.line(f"Left: {left} (no model may be called for them).")
    if found.untrusted:
        wait = "waits" if found.waiting + found.waiting_asks == 1 else "wait"
        waiting = " and ".join(
            output.plural(count, word)
            for count, word in ((found.waiting_asks, "answer"), (found.waiting, "judgement"))
            if count
        )
        output.line(f"{waiting} {wait} for trust:")
        _print_untrusted(found.untrusted)
    if not found.is_any and (left or found.untrusted):
        output.line("No other pending work.")
        return
    if not found.is_any:
        output.line(
            f"Nothing to do: {output.plural(found.reuse, 'answer')} of "
            f"{output.plural(found.models, 'candidate')} and all judgements are stored."
        )
        return
    output.line(
        ("Dry run: nothing was asked. " if dry_run else "")
        + f"A run would {_would_have(found)} and make "
        f"{output.plural(found.judge, 'judgement')} with "
        f"{output.plural(found.models, 'candidate')}, "
        + output.likely_price(found.cost, found.guess)
        + f"; {output.plural(found.reuse, 'answer')} reused."
    )
    if not explain:
        output.line(
            '  (use "evalstore run" to do it, "evalstore status --explain" to list it with reasons)'
        )


def _would_have(found: Status) -> str:
    """Where the answers would come from."""
    recorded = f"take {output.plural(found.record, 'recorded answer')}"
    if found.record and not found.ask:
        return recorded
    return f"ask {output.plural(found.ask, 'answer')}" + (f", {recorded}" if found.record else "")


def _print_untrusted(files: list[Untrusted]) -> None:
    """The Python files that are not trusted, each with what allows it."""
    for file in files:
        output.line(f"    {output.paint(output.safe(file.words), 'pending')}")
        output.talk(f'    (read it, then use "{output.safe(file.command)}" to allow it)')


def _what(change: FileChange) -> str:
    parts = []
    if change.code.strip() == "A":
        return f"{output.plural(change.asked, 'case')} new"
    if change.code.strip() == "D":
        return f"{output.plural(change.gone, 'case')} retired"
    if change.code.strip() == "R":
        return output.safe(change.reason)
    for count, word in (
        (change.new, "new"),
        (change.asked, "asked again"),
        (change.judged, "judged again"),
        (change.gone, "retired"),
    ):
        if count:
            parts.append(f"{output.plural(count, 'case')} {word}")
    return ": ".join(part for part in (", ".join(parts), output.safe(change.reason)) if part)


def _print_values(was: str | None, now: str | None, indent: str) -> None:
    """Two values that are too long for the line above."""
    if Difference("", was, now).fits:
        return
    old, new = focus(was, now, output.width() - len(indent) - 2)
    output.line(f"{indent}{output.paint('- ' + output.safe(old), 'broke')}")
    output.line(f"{indent}{output.paint('+ ' + output.safe(new), 'fixed')}")


def _print_items(found: Status) -> None:
    for kind, title in (
        ("ask", "Would ask"),
        ("record", "Would take recorded answers"),
        ("judge", "Would judge"),
    ):
        items = summed(item for item in found.items if item.kind == kind)
        if not items:
            continue
        output.line()
        output.line(f"{title} ({sum(item.count for item in items)}):")
        shown = items if output.verbose else items[:_SHOWN]
        left = [_place(item.file, item.row, item.prompt, found.prompts) for item in shown]
        wide = max(map(output.columns_of, left))
        who = [" by ".join(filter(None, (item.model, item.evaluator))) for item in shown]
        who_wide = max(map(output.columns_of, who))
        last = None
        for item, place, name in zip(shown, left, who, strict=True):
            reason = (item.reason, item.was, item.now)
            count = f" ({item.count}x)" if item.count > 1 else ""
            output.line(
                f"    {output.pad(place, wide)}  {output.pad(output.safe(name), who_wide)}  "
                f"{output.safe(item.reason)}{count}"
            )
            if reason != last:
                _print_values(item.was, item.now, "        ")
            last = reason
        _cut(len(items))


def _cut(count: int) -> None:
    if count > _SHOWN and not output.verbose:
        output.line(f"    … {count - _SHOWN} more (-v lists all)")


def _case(file: str, row: str) -> str:
    return output.safe(f"{file} [{row}]" if row else file)


def _place(
    file: str, row: str, prompt: str | None, prompts: dict[str, dict[str | None, str]]
) -> str:
    """A case, with its system prompt when its file has several."""
    label = prompts.get(file, {}).get(prompt)
    return _case(file, row) + (f" ({output.safe(label)})" if label else "")


def print_report(report: RunReport, threshold: float | None) -> None:
    """The verdicts of a run, its summary and the gate for people."""
    for warning in report.warnings:
        output.talk(f"warning: {output.safe(warning)}")
    _print_cells(report)
    _print_models(report)
    _print_counts(report)
    for message, count in sorted(report.failures.items(), key=lambda one: -one[1]):
        output.line(output.paint(f"failed {count}x: {output.safe(message)}", "fail"))
    _print_untrusted(report.untrusted)
    if report.failures:
        output.talk('(use "evalstore log --failures" to see where, and how to fix them)')
    if report.skipped:
        output.line(
            f"{output.plural(len(report.skipped), 'pair')} skipped for lack of a capability "
            '("evalstore status" lists them)'
        )
    output.left_out(report.left_out)
    _print_spending(report)
    output.line(
        f"run {output.short(report.run)} {report.status}: {report.asked:,} asked, "
        + (f"{report.recorded:,} recorded, " if report.recorded else "")
        + f"{report.judged:,} judged, {report.reused:,} reused, {_cost(report)}"
        + (f"; saved {output.money(report.saved)} by reuse" if report.saved else "")
    )
    if report.stopped_at_failure:
        output.line("stopped at the first failure (-x); the next run continues from there")
    if report.exit_code == STOPPED:
        output.line(
            output.paint(
                f"stopped: {'time' if report.time_is_up else 'cost'} limit reached", "pending"
            )
            + _goes_on(report)
        )
    elif report.exit_code == INTERRUPTED:
        output.line(f"interrupted{_goes_on(report)}")
    elif report.gate == "failed":
        why = (
            f": {output.percent(report.totals.rate.rate)} is less than {output.percent(threshold)}"
            if threshold is not None
            else ""
        )
        output.line(output.paint(f"gate failed{why}", "fail"))
    elif report.left_out:
        output.line(output.paint("files with errors are left out, see above", "fail"))
    elif report.exit_code:
        output.line(output.paint(f"incomplete; {_what_helps(report)}", "pending"))
    elif report.gate_off:
        output.line("gate disabled (--fail-on none)")
    else:
        output.line(output.paint("gate passed", "pass"))


def _print_cells(report: RunReport) -> None:
    """What did not pass, each with its feedback; with `-v` every cell."""
    from evalstore.operations.run_totals import MOST_PENDING, MOST_SHOWN
    from evalstore.store.results import join_feedback

    totals, hidden = report.totals, 0
    if output.verbose:
        shown = list(report.lines())
        count = len(shown)
    else:
        few = totals.verdicts["pending"] <= MOST_PENDING
        listed = [result for result in totals.notable if few or result.word != "pending"]
        hidden = 0 if few else totals.verdicts["pending"]
        count = sum(totals.verdicts.values()) - totals.verdicts["pass"] - hidden
        shown = [
            (result, join_feedback(result.evaluations, totals.feedback))
            for result in listed[:MOST_SHOWN]
        ]
    left = [_place(one.file, one.row, one.prompt, totals.prompts) for one, _ in shown]
    wide = max(map(output.columns_of, left), default=0)
    models = max((output.columns_of(one.model) for one, _ in shown), default=0)
    for (one, feedback), label in zip(shown, left, strict=True):
        word = one.word or "answered"
        session = output.faint(output.short(one.sessions[0])) if one.sessions else ""
        output.line(
            f"{output.paint(output.pad(word, 9), word)}  {output.pad(label, wide)}  "
            f"{output.pad(output.safe(one.model), models)}  {session}".rstrip()
        )
        for text in feedback.splitlines():
            for part in output.wrap(text, output.width() - 11):
                output.line(f"           {part}")
    more = [f"{count - len(shown):,} more"] if count > len(shown) else []
    more += [f"{hidden:,} pending"] if hidden else []
    if more:
        output.line(f"… {' and '.join(more)} (-v lists all)")
    if shown or more:
        output.line()
    if any(one.sessions for one, _ in shown):
        output.talk('(use "evalstore show ID" to read an answer)')


def _print_counts(report: RunReport) -> None:
    """How many cells ended how, and the pass rate with its interval."""
    verdicts, rate = report.totals.verdicts, report.totals.rate
    counts = ", ".join(
        output.paint(f"{count} {word}", word)
        for word, count in verdicts.items()
        if count or word == "pass"
    )
    unjudged = report.totals.count(None)
    if unjudged:
        counts += f", {unjudged} answered without a judgement"
    of = f" of {rate.judged} judged" if verdicts["pending"] or unjudged else ""
    if rate.interval:
        low, high = map(output.percent, rate.interval)
        counts += f" ({rate.text}{of}, 95% interval {low} to {high})"
    output.line(counts)


def _cost(report: RunReport) -> str:
    """What the run has cost; with a price unknown, what is known of it."""
    known = sum(one["cost"] or 0.0 for one in report.spending)
    if report.cost is None and known:
        return f"{output.money(known)} (some prices unknown)"
    return output.money(report.cost)


def _goes_on(report: RunReport) -> str:
    """The words about how a run was stopped and continues."""
    if report.is_refresh:
        return "; what was finished is stored (--max-age instead of --refresh keeps it)"
    return "; what was finished is stored, and the next run continues from there"


def _what_helps(report: RunReport) -> str:
    """What may make an incomplete run complete."""
    verdicts = report.totals.verdicts
    if report.untrusted and not report.failed:
        waiting = "model" if report.untrusted[0].runs else "checks"
        return f"'{output.safe(report.untrusted[0].command)}' allows the waiting {waiting}"
    if not any(verdicts.values()) and not report.failed:
        return "no case has a verdict, so the gate is undetermined"
    if verdicts["pending"] and report.judge_only and not report.failed:
        return "'evalstore run' asks for the answers that are missing"
    if verdicts["undecided"] and not verdicts["pending"] and not report.failed:
        return "'evalstore run --retry-errors' has the undecided judged again"
    if report.failed and report.hopeless == report.failed:
        return "'evalstore log --failures' shows what to fix before running again"
    return "running again may help"


def _print_spending(report: RunReport) -> None:
    """What each model was called for in this run, judging apart."""
    if not report.spending:
        return
    rows = []
    for one in report.spending:
        cached = f" ({output.count(one['cachedTokens'])} cached)" if one["cachedTokens"] else ""
        part = " (judging)" if one["part"] == "evaluator" else ""
        rows.append(
            (
                one["model"] + part,
                output.plural(one["calls"], "call"),
                f"{output.count(one['inputTokens'])} tokens in{cached}",
                f"{output.count(one['outputTokens'])} out",
                output.money(one["cost"]),
            )
        )
    output.table(rows)


def _print_models(report: RunReport) -> None:
    """The pass rate of each candidate, when there are several."""
    by_model = report.totals.models
    if len(by_model) < 2:
        return
    wide = max(map(output.columns_of, by_model))
    for model, words in by_model.items():
        judged = words.total() - words[None] - words["pending"]
        passed = words["pass"]
        filled = round(20 * passed / judged) if judged else 0
        bar = output.paint("█" * filled, "pass") + output.faint("░" * (20 - filled))
        share = output.percent(passed / judged if judged else None)
        output.line(
            f"{output.pad(output.safe(model), wide)}  {bar}  {passed}/{judged} pass  {share}"
        )
