"""Prints the results of `run` for people."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from evalstore.core.display import is_simulated, money, plural, status_word
from evalstore.core.runs import spending_text
from evalstore.interfaces.cli import output
from evalstore.interfaces.cli.output import for_here
from evalstore.interfaces.cli.render.layout import (
    MOST_ALIKE,
    Table,
    align_cases,
    alike_text,
    join_alike,
    print_lines,
    print_table,
)
from evalstore.interfaces.cli.render.status import case_place, print_untrusted
from evalstore.planning.project import Untrusted
from evalstore.results.flips.regressions import passed_in_text
from evalstore.results.flips.verdict_changes import changes_line
from evalstore.results.log.failures import CallFailures
from evalstore.results.names import show_command
from evalstore.runs.run_report import RunReport
from evalstore.runs.run_text import (
    Extent,
    ListedResult,
    failure_line,
    list_results,
    stop_lines,
    summary_text,
    verdict_line,
)
from evalstore.runs.status.status_text import skipped_text

if TYPE_CHECKING:
    from evalstore.runs.runners import JoinReport


def join_line(report: JoinReport) -> str:
    """Return what this program has done of a run that it has joined."""
    done = (
        f"this runner: {plural(report.asked, 'answer')}, "
        f"{plural(report.judged, 'verdict')}, {money(report.cost)}"
    )
    if report.failed:
        done += f", {plural(report.failed, 'failure')}"
    if report.stopped == "interrupted":
        done += "; interrupted"
    elif report.stopped:
        done += f"; the limit of the run ('{report.stopped}') is reached"
    if report.run is None:
        rest = "finish it" if report.stopped in ("max-cost", "max-time") else "continue the run"
        return f"{done}; other runners {rest}"
    return f"{done}; run {report.run[:8]} {status_word(report.status or '')}"


def print_report(
    report: RunReport,
    threshold: float | None,
    *,
    failures: Sequence[CallFailures] = (),
    extent: Extent = "news",
) -> None:
    """Print what a run changed, its verdicts, its summary and the gate."""
    for warning in report.warnings:
        output.warn(warning)
    print_changes(report)
    _print_results(report, extent)
    _print_models(report)
    print_lines([verdict_line(report, {})])
    print_lines(failure_line(failure.text, failure.calls, {}) for failure in failures)
    for hint in dict.fromkeys(failure.hint for failure in failures if failure.hint):
        output.talk(f"hint: {hint}")
    if report.failures:
        output.talk('(use "evalstore log --failures" to see where)')
    print_untrusted(report.untrusted)
    if report.skipped:
        output.sentence(f'{skipped_text(report.skipped)} ("evalstore status" lists them)')
    output.left_out(report.left_out)
    _print_spending(report)
    output.sentence(summary_text(report))
    if is_simulated(report.spending):
        output.talk("(simulated: scripted models call no service, so nothing is paid)")
    if report.stopped_at_failure and report.status != "complete":
        rest = "" if report.is_refresh else "; the next run continues from there"
        output.sentence(f"stopped at the first failing verdict (-x){rest}")
    _print_thresholds(report)
    _print_end(report, threshold)
    if report.is_refresh and report.asked and report.changes is not None:
        output.sentence(
            "the next plain run counts the older answers again; --max-age leaves them out"
        )


def _print_thresholds(report: RunReport) -> None:
    """Print a line for each threshold of the settings, those that are missed first."""
    gates = sorted(report.thresholds or (), key=lambda gate: gate.reached)
    shown = gates if output.verbose else gates[:_MOST_GATES]
    for gate in shown:
        rate = output.percent(gate.passed / gate.judged if gate.judged else None)
        count = f"{gate.passed:,} of {gate.judged:,} pass ({rate})"
        word = ("reached" if gate.reached else "missed") if gate.judged else "not judged"
        colour = {"reached": "pass", "missed": "fail"}.get(word, "pending")
        text = f"threshold {output.percent(gate.pass_rate)} of {output.safe(gate.name)}: {count}, "
        output.line(text + output.paint(word, colour))
    if len(gates) > len(shown):
        output.line(f"… {len(gates) - len(shown):,} more thresholds (-v lists all)")


def _print_end(report: RunReport, threshold: float | None) -> None:
    """Print why the run was stopped, or whether the gate passed."""
    if stopped := list(stop_lines(report)):
        print_lines(stopped)
        if report.is_refresh:
            output.talk("(use --max-age instead of --refresh to keep it)")
    elif report.gate == "failed":
        why = ""
        if threshold is not None:
            rate = output.percent(report.totals.rate.rate)
            why = f": {rate} is less than {output.percent(threshold)}"
        elif report.regressions:
            is_one = len(report.regressions) == 1
            fail = "fails" if is_one else "fail"
            if any(each.result.verdict == "undecided" for each in report.regressions):
                fail = f"{'does' if is_one else 'do'} not pass"
            then = f", {fail} in run {output.short(report.run)}"
            count = plural(len(report.regressions), "regression")
            why = f": {count} ({passed_in_text(report.regressions)}{then})"
        elif missed := report.missed:
            more = f", and {len(missed) - 1:,} more" if len(missed) > 1 else ""
            why = f": the threshold of {output.safe(missed[0].name)} is missed{more}"
        output.line(output.paint(f"gate failed{why}", "fail"))
    elif report.left_out:
        output.line(output.paint("files with errors are left out, see above", "fail"))
    elif report.exit_code:
        output.line(output.paint(f"incomplete; {for_here(_how_to_complete(report))}", "pending"))
    elif report.gate_off:
        output.line("gate disabled (--fail-on none)")
    else:
        output.line(output.paint(f"gate passed{_new_failures(report)}", "pass"))


def _new_failures(report: RunReport) -> str:
    """Return, in words, how many failing results are not regressions, as they were never judged."""
    if report.regressions is None:
        return ""
    words = report.totals.verdicts
    failing = words["fail"] + words["error"]
    count = failing if report.changes is None else len(report.changes.new)
    text = f": {output.plural_is(count, 'failing result')} new (no earlier verdict)"
    return text if count else ""


def print_changes(report: RunReport, *, is_data: bool = True) -> None:
    """Print how many verdicts changed since the last run; to stderr as a message."""
    changes = report.changes
    if changes is None:
        return
    is_again = report.status == "complete" and report.judged and not changes.first_judged
    if not (changes.is_any or is_again):
        return
    if is_data:
        print_lines([changes_line(changes)])
    else:
        output.talk(changes_line(changes).text)
    run = output.short(report.run)
    if not changes.is_any:
        return
    if changes.is_of_several:  # no comparison of two runs has them all
        output.talk(f'  (use "evalstore show {run}" to list them)')
    else:
        output.talk(f'  (use "evalstore diff {output.short(changes.since)} {run}" to see how)')
    if changes.older:
        told = 'the oldest answers count; "evalstore run --max-age AGE" leaves out older ones'
        output.talk(f"  ({told})")


def _print_results(report: RunReport, extent: Extent) -> None:
    """Print the results that did not pass, each with its feedback; with `-v` all results."""
    listed = list_results(report, "results" if output.verbose else extent)
    prompts = report.totals.prompts
    places = [case_place(each.file, each.row, each.prompt, prompts) for each in listed.results]
    aligned = [*zip(*align_cases(places, [each.model for each in listed.results]), strict=True)]
    described = zip(listed.entries, aligned, strict=False)
    is_joined = extent == "news" and not output.verbose
    for alike in join_alike(described, _reasons) if is_joined else ([it] for it in described):
        for entry, (place, model) in alike[:MOST_ALIKE]:
            output.line(_result_line(entry, f"{place}  {model}"))
        for text in alike[0][0].feedback.splitlines():
            for part in output.wrap(text, output.width() - 11):
                output.line(f"           {part}")
        if len(alike) > MOST_ALIKE:
            text = alike_text(len(alike) - MOST_ALIKE, at_least=listed.more > 0)
            output.line(f"           {text}")
    if listed.rest:
        output.line(listed.rest)
    for _, (place, model) in zip(listed.before, aligned, strict=False):
        output.line(f"    {place}  {model}".rstrip())
    if listed.failed_before > len(listed.before) > 0:
        output.line(f"    … {listed.failed_before - len(listed.before):,} more")
    if listed.entries or listed.rest:
        output.line()
    first = next(
        (cell for cell in listed.results if cell.sessions and cell.verdict not in (None, "pass")),
        None,
    )
    if first is not None:
        prompt = prompts.get(first.file, {}).get(first.prompt, "")
        several = len(report.totals.models) > 1
        command = show_command(first, prompt, names_model=several)
        output.talk(f'(use "{output.safe(command)}" to see why)')


def _reasons(described: tuple[ListedResult, object]) -> object:
    """Return what results have in common that are listed together; None for one without reasons."""
    entry, _ = described
    return (entry.result.word, entry.mark, entry.feedback) if entry.feedback else None


def _result_line(entry: ListedResult, place: str) -> str:
    """Return the line of a result, or where it is too long two or three."""
    cell, word = entry.result, entry.result.word or "answered"
    session = output.faint(output.short(cell.sessions[0])) if cell.sessions else ""
    colour = "broke" if entry.regression else _MARKS.get(entry.change, "broke")
    marks = [f"  ({output.paint(entry.mark, colour)})"] if entry.mark else []
    marks += [f"  {entry.attempts}"] if entry.attempts else []
    line = f"{output.paint(output.pad(word, 9), word)}  {place}  {session}"
    columns = output.table_width()
    end = "".join(marks)
    if end and columns is not None and output.shown_columns(line + end) > columns:
        split = "\n" + " " * 9
        is_wide = output.shown_columns(end) > columns - 9
        end = split + (split if is_wide else "").join(marks)
    return f"{line}{end}".rstrip()


_BAR = 20
"""The columns of the bar of a candidate's pass rate."""
_MOST_GATES = 20
"""Thresholds that are listed without `-v`."""
_LEAST_MODEL = 16
"""The columns to which the name of a candidate is cut before its bar is left out."""
_COMMANDS = 3
"""The most commands that trust what waits."""
_MARKS = {"broke": "broke", "fixed": "fixed", "new": "broke", "changed": None}
"""The changes of listed results, and their colours."""


def _what_to_trust(untrusted: Sequence[Untrusted]) -> str:
    """Return the commands that allow all that waits."""
    commands = " and ".join(f"'{output.safe(each.command)}'" for each in untrusted[:_COMMANDS])
    more = f" and {len(untrusted) - _COMMANDS} more" if len(untrusted) > _COMMANDS else ""
    models = sum(bool(each.runs) for each in untrusted)
    waiting = ["the waiting model" + "s" * (models > 1)] if models else []
    waiting += ["the waiting checks"] if models < len(untrusted) else []
    verb = "allows" if len(untrusted) == 1 else "allow"
    return f"{commands}{more} {verb} {' and '.join(waiting)}"


def _how_to_complete(report: RunReport) -> str:
    """Explain how to complete an incomplete run."""
    verdicts = report.totals.verdicts
    if report.untrusted and not report.failed:
        return _what_to_trust(report.untrusted)
    if not any(verdicts.values()) and not report.failed:
        return "no result has a verdict, so the gate is undetermined"
    if verdicts["pending"] and report.judge_only and not report.failed:
        return "'evalstore run' asks for the answers that are missing"
    if verdicts["undecided"] and not verdicts["pending"] and not report.failed:
        return (
            "'evalstore run --retry-errors' asks the judges again except in a tie, "
            "'evalstore label' decides"
        )
    if report.failed and report.hopeless == report.failed:
        return "'evalstore log --failures' shows what to fix before running again"
    if report.hopeless:
        others = output.plural(report.failed - report.hopeless, "failed call")
        return f"running again may help with {others}; the others need to be fixed first"
    if not (report.failed or report.time_is_up or report.stopped_at_failure):
        return "a run asks for nothing more: 'evalstore status' says what is missing"
    return "running again may help"


def _print_spending(report: RunReport) -> None:
    """Print the calls, tokens and cost of each model, as candidate and as evaluator."""
    if not report.spending:
        return
    rows = []
    for spending in report.spending:
        tokens = spending["cachedTokens"]
        cached = f" ({output.count(tokens)} cached)" if tokens else ""
        kind = "local" if spending.get("local") else ""
        part = " (judging)" if spending["part"] == "evaluator" else ""
        rows.append(
            (
                spending["model"] + part,
                output.plural(spending["calls"], "call"),
                f"{output.count(spending['inputTokens'])} tokens in{cached}",
                f"{output.count(spending['outputTokens'])} out",
                spending_text({**spending, "simulated": False}),
                "simulated" if is_simulated([spending]) else kind,
            )
        )
    header = ("model", "calls", "input", "output", "cost", "kind")
    numbers = frozenset(header[1:5])
    print_table(Table(header, rows, numbers, ("input", "output"), has_header=False))


def _print_models(report: RunReport) -> None:
    """Print the pass rate of each candidate, when there are several."""
    by_model = report.totals.models
    if len(by_model) < 2:
        return
    rows = []
    for model, words in by_model.items():
        judged = words.total() - words[None] - words["pending"]
        passed, undecided = words["pass"], words["undecided"]
        filled = round(_BAR * passed / judged) if judged else 0
        unsure = round(_BAR * (passed + undecided) / judged) - filled if judged else 0
        share = output.percent(passed / judged if judged else None)
        text = f"{passed}/{judged} pass"
        if undecided:
            text = f"{text}, {undecided} undecided"
        bar = "█" * filled + "▒" * unsure + "░" * (_BAR - filled - unsure)
        rows.append((model, bar, text, share))
    print_table(
        Table(
            ("model", "bar", "passed", "rate"),
            rows,
            numbers=frozenset(("bar", "passed", "rate")),
            optional=("bar",),
            shortened={"model": _LEAST_MODEL},
            has_header=False,
            paint=_paint_bar,
        )
    )


def _paint_bar(line: str) -> str:
    """Colour the parts of a bar in a line: passed, undecided and failed results."""
    line = re.sub("█+", lambda part: output.paint(part[0], "pass"), line)
    line = re.sub("▒+", lambda part: output.paint(part[0], "undecided"), line)
    return re.sub("░+", lambda part: output.faint(part[0]), line)
