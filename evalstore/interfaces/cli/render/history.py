"""Prints the lists of `log`, `diff` and failures."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from evalstore.comparison.comparison import Pair
from evalstore.comparison.pair_groups import PairGroup
from evalstore.core.clock import local_minute
from evalstore.core.display import (
    WORKSPACE,
    StyledLine,
    StyledSpan,
    case_name,
    clip,
    cost_text,
    side_name,
)
from evalstore.interfaces.cli import output
from evalstore.interfaces.cli.render.layout import (
    MOST_ALIKE,
    alike_text,
    join_alike,
    print_lines,
)
from evalstore.planning.first_pushes import push_text
from evalstore.planning.options import is_partial
from evalstore.results.compare.diff_result import (
    CHANGES,
    FLIPS,
    SAME_ANSWER,
    Diff,
    change_name,
    count_cases,
    listed_pairs,
    pair_line,
    side_lines,
    summary_lines,
)
from evalstore.results.edits.edits import by_subject
from evalstore.results.flips.verdict_changes import Outcome
from evalstore.results.log.failures import FailureLog, class_text, is_of_script
from evalstore.runs.run_text import run_counts_text, scope_text
from evalstore.runs.status.status_text import ROW_ID_HINT, edit_lines
from evalstore.store.revisions import WORK

if TYPE_CHECKING:
    from evalstore.results.log.log import Log, LogEntry

_EDITS = 6
"""Edits of a file before the list is cut."""
_PAIRS = 20
"""Pairs of a kind before the list is cut; `-v` shows all."""
_NOTE = 60
"""The most columns of the message of a run."""
_PENDING = 3
"""Pairs that are now pending before the list is cut: a run will judge them."""
_GIT_CHANGES = {True: " + changes", False: "", None: ", changes unknown"}


def print_diff(diff: Diff, *, answers: bool, stat: bool, flips: bool = False) -> None:
    """Print the counts of a comparison, the edits, and the pairs, of which the flips come first."""
    changes: Sequence[str] = (*(FLIPS if flips else CHANGES),)
    if output.verbose and not flips:
        changes = (*changes, SAME_ANSWER)
    if not diff.models:
        output.sentence(" -> ".join(_side_text(diff, side) for side in (diff.was, diff.now)))
    for note in diff.notes:
        output.line(f"note: {output.safe(note)}")
    if diff.models:
        output.line(f"{' -> '.join(map(output.safe, diff.models))} in {side_name(diff.was)}")
    print_lines(summary_lines(diff))
    is_listed = not stat and any(getattr(diff.comparison, change) for change in changes)
    if is_listed or (not stat and (diff.edits or diff.participants)):
        output.line()
    if not stat:
        _print_edits(diff)
        for change in changes:
            _print_pairs(diff, change, listed_pairs(diff, change), answers=answers)
        if answers and not flips:
            equal = [pair for pair in diff.equal_with_answers if diff.answer_diff(pair)]
            _print_pairs(diff, "unchanged", equal, answers=True)
    if diff.same_answer and not (stat or flips or output.verbose):
        output.talk("(-v lists those with the same answer)")
    if diff.is_now_partial:
        whole = f"evalstore diff {output.short(diff.was)}"
        if diff.models:  # of the workspace, in place of a partial run
            option = "--prompt" if diff.is_of_prompts else "--model"
            words = ["evalstore", "diff", WORK, option, diff.models[0], "--vs", diff.models[1]]
            whole = shlex.join(words)
        output.talk(f'(use "{output.safe(whole)}" to compare all cases)')
    if is_listed:
        output.talk('(use "evalstore show ID" to read an answer)')
        if diff.has_edited_rows:
            output.talk(f"({ROW_ID_HINT})")
    elif not (stat or answers) and diff.models and diff.comparison.unchanged:
        revision = WORK if diff.was == WORKSPACE else output.short(diff.was)
        file = diff.comparison.unchanged[0].either.file
        command = shlex.join(["evalstore", "show", f"{revision}:{file}"])
        output.talk(
            f'(use "{output.safe(command)}" to find both answers of a case, '
            '"evalstore view" to read them side by side)'
        )


def _side_text(diff: Diff, side: str) -> str:
    """Return the workspace, or a run with its age and message: `run 1a2b (just now, "a note")`."""
    if side not in diff.runs:
        return side_name(side)
    run = diff.runs[side]
    when = output.ago(run.started, in_brackets=True)
    facts = [when, *([f'"{clip(run.message, _NOTE)}"'] if run.message else [])]
    return f"{side_name(side)} ({', '.join(facts)})"


def _print_edits(diff: Diff) -> None:
    width = None if output.verbose else output.width()
    if diff.edits or diff.participants:
        output.line("Edited:")
    for subject, edits in by_subject(diff.edits, diff.sources).items():
        output.line(f"    {output.safe(subject)}")
        for edit in edits[:_EDITS]:
            print_lines(edit_lines(edit, width=width, indent=8))
        if len(edits) > _EDITS:
            output.line(f"        … {len(edits) - _EDITS} more")
    for edit in diff.participants:
        print_lines(edit_lines(edit, width=width, indent=4))


def _print_pairs(diff: Diff, change: str, pairs: PairGroup | list[Pair], *, answers: bool) -> None:
    if not pairs:
        return
    name = change_name(diff, change)
    title = output.paint(
        name[:1].upper() + name[1:], change if change in FLIPS else None, bold=True
    )
    rows = (
        range(len(pairs)) if isinstance(pairs, list) else pairs.rows()
    )  # a list: of as many cases
    cases, *several = count_cases(rows)
    output.line(f"{title} ({', '.join([cases, *several]) if several else f'{len(pairs):,}'}):")
    shown = pairs if output.verbose or isinstance(pairs, list) else _first(pairs)
    is_joined = not (output.verbose or answers)

    def reasons(pair: Pair) -> list[StyledLine]:
        is_silent = pair.is_now_pending and not output.verbose
        return [] if is_silent else [*side_lines(diff, pair, diff.feedback, indent=8)]

    described = ((pair, reasons(pair)) for pair in shown)
    for alike in join_alike(described, _change) if is_joined else ([each] for each in described):
        for pair, _ in alike[:MOST_ALIKE]:
            print_lines([pair_line(diff, pair, signs={}, indent=4, with_ids=True)])
        pair, lines = alike[0]
        print_lines(lines)
        if len(alike) > MOST_ALIKE:
            output.line(f"        {alike_text(len(alike) - MOST_ALIKE)}")
        if answers:
            for text in diff.answer_diff(pair):
                colour = {"+": "new", "-": "old"}.get(text[:1])
                line = output.paint(output.safe(text), colour) if colour else output.safe(text)
                output.line(f"        {line}".rstrip())
    if len(pairs) > len(shown):
        output.line(f"    … {len(pairs) - len(shown)} more (-v lists all)")


def _change(described: tuple[Pair, list[StyledLine]]) -> object:
    """Return what pairs have in common that are listed together; None for one that stands alone."""
    pair, lines = described
    sides = [side and (side.verdict, side.word) for side in (pair.was, pair.now)]
    return (*sides, tuple(lines)) if lines else None


def _first(pairs: PairGroup) -> list[Pair]:
    """Return the first pairs, and the first of those that are now pending behind them."""
    settled, pending = pairs.split_pending()
    waiting = _PENDING + 1 if len(pending) == _PENDING + 1 else _PENDING
    return settled[:_PAIRS] + pending[:waiting]


def print_failures(log: FailureLog, *, oneline: bool) -> None:
    """Print failures, with each hint once below them."""
    if not log.entries:
        output.talk("No call has failed.")
    hints: dict[tuple[str, str], None] = {}
    for entry in log.entries:
        failure = entry.document()
        kind = class_text(failure["class"], failure["status"], failure["message"])
        of_script = is_of_script(entry.failure.message)
        if entry.hint and not (entry.is_resolved or entry.is_dropped):
            hints.setdefault(("" if of_script else f"{kind}: ", entry.hint))
        if failure["file"] is None:
            place = f"question {output.short(failure['question'])}" if failure["question"] else ""
        else:
            several = entry.place and entry.place.has_several
            prompt = log.prompts[failure["prompt"]] if several else None
            place = case_name(failure["file"], failure["row"], prompt)
        parts = (
            output.short(entry.id),
            output.ago(entry.failure.at),
            output.safe((failure["model"] or "") + (" (as judge)" if failure["evaluator"] else "")),
            output.safe(place),
            f"{output.paint(kind, 'error')}, {output.plural(failure['attempts'], 'try')}",
            f"({'judged' if failure['evaluator'] else 'answered'} since)"
            if entry.is_resolved
            else "(no longer asked)" * entry.is_dropped,
        )
        message = output.safe(failure["message"])
        if oneline:
            output.line(output.fitted(filter(None, (*parts, message))))
            continue
        for line in ("  ".join(filter(None, parts)), f"    {message}"):
            output.line(line)
    for kind, hint in hints:
        output.talk(f"hint: {kind}{hint}")
    if log.total > len(log.entries):
        output.talk(f"({log.total - len(log.entries):,} older; -v lists all)")
    if any(entry.is_resolved for entry in log.entries):
        output.talk('(failed calls stay in this list; "since" marks those that succeeded later)')


def print_log(log: Log, *, oneline: bool, graph: bool = False, dated: bool = False) -> None:
    """Print runs as a table, `dated` or not; with `graph`, after a lane for each writer."""
    if not log.entries:
        dates = [f"{word} {local_minute(moment)}" for word, moment in log.bounds.items()]
        none = " and ".join(dates) or "yet: 'evalstore run' makes one"
        output.talk(f"No runs {none}.")
    prefixes = [GraphPrefix("", "")] * len(log.entries)
    if graph:
        prefixes = draw_lanes([each.push.writer if each.push else "" for each in log.entries])
    is_folded = log.file is None and not (graph or output.verbose)
    idle = _find_idle(log.entries) if is_folded else set()
    folded = 0
    for number, (entry, prefix) in enumerate(zip(log.entries, prefixes, strict=True)):
        if number in idle:
            folded += 1
            if number + 1 not in idle:
                text = f"{output.plural(folded, 'run')} with nothing to do (-v lists all)"
                output.line("\n" * (not oneline) + output.faint(text))
                folded = 0
            continue
        is_compared = log.compared is None or number < log.compared
        if oneline:
            parts = _one_line(entry, of_file=log.file is not None, is_compared=is_compared)
            output.line(prefix.first + output.fitted(parts, output.shown_columns(prefix.first)))
            continue
        if number:
            output.line(prefixes[number - 1].other.rstrip())
        first, *others = _entry_lines(log, entry, dated=dated, is_compared=is_compared)
        start, *rest = _folded(first, prefix.first)
        output.line(prefix.first + start)
        for line in (*rest, *(part for other in others for part in _folded(other, prefix.other))):
            output.line(prefix.other + line)
        for edit in entry.edits:
            width = None if output.verbose else output.width()
            head, *values = edit_lines(edit, width=width, indent=10)
            label = StyledSpan("edit: " * (not edit.subject.startswith("label")))
            lines = [StyledLine((label, *head.spans), 4), *values]
            print_lines(lines, prefix=prefix.other)
    if log.total > len(log.entries):
        output.talk(f"({log.total - len(log.entries)} older)")
    if log.others:
        runs = output.plural(log.others, "other run")
        lack = f"lack{'s' * (log.others == 1)} the {'file' if log.row is None else 'row'}"
        output.talk(f"({runs} {lack}, or changed neither it nor its verdicts)")
    if log.compared is not None:
        newest = "newest run" if log.compared == 1 else f"newest {log.compared} runs"
        output.talk(
            f"(broken and fixed results are counted for the {newest}; "
            '"evalstore show ID" shows them for others)'
            if log.compared
            else '(broken and fixed results are not counted; "evalstore diff" lists them)'
        )


def _find_idle(entries: Sequence[LogEntry]) -> set[int]:
    """Return the numbers of runs without work, names and notes; the newest is none of them."""
    results: dict[str, str] = {}
    """By the scope of runs, those of the newest one so far."""
    idle = set()
    for number, entry in reversed([*enumerate(entries)]):
        run, scope = entry.run, scope_text(entry.run)
        work = run.asked, run.recorded, run.judged, run.failed, *(entry.outcome or ())
        notes = run.message, entry.names, entry.edits, entry.push
        if number and not any((*work, *notes)) and results.get(scope) == run.results:
            idle.add(number)
        results[scope] = run.results
    return idle


def _folded(line: str, prefix: str) -> list[str]:
    """Return a line behind a prefix, wrapped between words where it does not fit the terminal."""
    columns = output.table_width()
    if columns is None or not line.strip():
        return [line]
    columns -= output.shown_columns(prefix)
    is_short = output.shown_columns(line) <= columns
    return [line] if is_short else output.wrap_sentence(line, columns)


def _one_line(entry: LogEntry, *, of_file: bool, is_compared: bool) -> Iterator[str]:
    run = entry.run
    selection = output.safe(scope_text(run))
    parts = (
        output.short(run.id),
        output.ago(run.started),
        _verdicts(entry, is_compared=is_compared),
        f"({output.safe(', '.join(entry.names))})" if entry.names else "",
        f"partial: {selection}" if selection and is_partial(run) else selection,
        "; ".join(map(output.safe, map(str, entry.edits))),
        "" if of_file and entry.edits else output.safe(run.message or ""),
        # What a narrow terminal cuts away is the end.
        f"by {output.safe(run.author)}" if run.author else "",
        f"from {output.safe(entry.push.writer)}" if entry.push else "",
        f"git {run.git.text}" if run.git else "",
    )
    return filter(None, parts)


def _entry_lines(log: Log, entry: LogEntry, *, dated: bool, is_compared: bool) -> Iterator[str]:
    """Yield the lines of a run without its edits."""
    run = entry.run
    yield (
        f"{output.paint('run', 'pending')} {run.id}  {output.ago(run.started, dated=dated)}"
        + (f"  git {run.git.commit[:8]}{_GIT_CHANGES[run.git.dirty]}" if run.git else "")
        + (f"  by {output.safe(run.author)}" if run.author else "")
        + (f"  ({output.safe(', '.join(entry.names))})" if entry.names else "")
    )
    if run.message:
        yield f"    {output.safe(run.message)}"
    if entry.push:
        yield f"    {push_text(entry.push)}"
    if selection := output.safe(scope_text(run)):
        yield f"    arguments: {selection}"
    if log.file is None:
        yield f"    {run_counts_text(run)}, {cost_text(run.cost, run.spending)}"
    if verdicts := _verdicts(entry, is_compared=is_compared):
        yield f"    {verdicts}"
    elif not entry.is_covered:
        yield f"    the run did not cover this {'file' if log.row is None else 'row'}"
    if log.file is not None and not entry.edits:
        yield f"    no edit: {entry.no_edit}"


def _verdicts(entry: LogEntry, *, is_compared: bool) -> str:
    verdicts = _painted(entry.verdicts.items())
    if verdicts and not is_compared:
        return f"{verdicts} (not compared)"
    outcome = entry.outcome or Outcome(0, 0, ())
    changed = _painted((word, count) for count, word in outcome.counts)
    why = f": {', '.join(outcome.causes)}" if outcome.causes else ""
    return f"{verdicts} ({changed}{why})" if changed else verdicts


def _painted(counts: Iterable[tuple[str, int]]) -> str:
    return ", ".join(output.paint(f"{count} {word}", word) for word, count in counts if count)


# --- the lanes of `log --graph`: one for each machine, or person, whose runs are listed


_MOST = 8
"""Lanes beside each other; further writers share the last."""


class GraphPrefix(NamedTuple):
    """What stands before the lines of a run."""

    first: str
    """Before its first line, with `*` in its lane."""
    other: str
    """Before its other lines, and the line between it and the next run."""


def draw_lanes(writers: Sequence[str]) -> list[GraphPrefix]:
    """Return the prefixes of runs in their order; `writers` are those of the runs."""
    lane_of = {writer: min(lane, _MOST - 1) for lane, writer in enumerate(dict.fromkeys(writers))}
    places = [lane_of[writer] for writer in writers]
    last = {lane: number for number, lane in enumerate(places)}
    count = max(places, default=0) + 1
    begun: set[int] = set()
    prefixes = []
    for number, place in enumerate(places):
        begun.add(place)
        running = [lane in begun and last[lane] > number for lane in range(count)]
        signs = ["|" if is_running else " " for is_running in running]
        first = [*signs[:place], "*", *signs[place + 1 :]]
        prefixes.append(GraphPrefix(" ".join(first) + "  ", " ".join(signs) + "  "))
    return prefixes
