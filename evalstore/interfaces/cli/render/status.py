"""Prints what a run would do: the command `status`, and a dry run."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import TypeVar

from evalstore.comparison.version_diff import Difference
from evalstore.core.display import StyledLine, StyledSpan, case_name, money, planned_judgements
from evalstore.interfaces.cli import output
from evalstore.interfaces.cli.render.layout import (
    BESIDE_PLACE,
    Table,
    align_cases,
    print_lines,
    print_table,
)
from evalstore.planning.estimate import PricePart
from evalstore.planning.plan import PlanItem, SummedItems
from evalstore.planning.project import Untrusted
from evalstore.planning.status_report import FileChange, OtherReason, Status
from evalstore.runs.status.status_text import (
    KIND_TITLES,
    change_text,
    edit_text,
    in_progress_text,
    join_changes,
    kind_count_text,
    labels_text,
    left_text,
    lost_labels_text,
    nothing_text,
    outcome_text,
    pending_text,
    plan_text,
    reason_text,
    remote_texts,
    row_id_hint,
    short_limit_text,
    trust_hint,
    used_again_texts,
    value_lines,
    waiting_text,
)

T = TypeVar("T")
_SHOWN = 20
"""Lines of a list before it is cut; `-v` shows all."""
_BESIDE_LISTED = 14
"""Columns beside a case and a model that are listed below a reason."""
_REASONS = 5
"""Reasons for work in unchanged files before the list is cut."""


def print_status(
    status: Status,
    *,
    explain: bool,
    dry_run: bool = False,
    options: str = "",
) -> None:
    """Print what `status` and `run -n` report; `options` are those that select the cases.

    With `--quiet`, a dry run is one line.
    """
    for warning in (*status.refused, *status.warnings):
        output.warn(warning)
    output.left_out(status.left_out)
    if dry_run and output.quiet:
        text = plan_text(status) if status.is_any else pending_text(status)
        output.sentence(f"{text[:1].upper()}{text[1:]}")
        return
    if status.last_run is None:
        output.line("No run yet.")
    elif status.changes or status.edits:
        _print_changes(status)
    is_cut = explain and len(status.items) > _SHOWN + 1 and not output.verbose
    if status.other_reasons and (is_cut or not explain):
        _print_other_reasons(status)
    if status.skipped:
        _print_skipped(status)
    is_explained = bool(status.items) and explain
    if is_explained:
        _print_items(status)
    is_listed = is_explained or status.other_reasons
    if status.changes or status.edits or status.skipped or is_listed or status.last_run is None:
        output.line()
    for each in status.in_progress:
        output.sentence(in_progress_text(each))
    if outcome := outcome_text(status):
        output.sentence(f'{outcome} (use "evalstore diff" for details)')
    if lost := lost_labels_text(status.lost_labels):
        output.sentence(lost)
    if labels := labels_text(status):
        output.sentence(f'{labels} (use "evalstore run" to record this)')
    for text in _cut(used_again_texts(status), _REASONS):
        output.sentence(text)
    if left := left_text(status):
        output.sentence(left)
    if status.untrusted:
        output.sentence(waiting_text(status))
        print_untrusted(status.untrusted)
    if not status.is_any:
        output.sentence(nothing_text(status))
        _print_remotes(status)
        return
    output.sentence(("Dry run: nothing was asked. " if dry_run else "") + plan_text(status))
    if (dry_run or output.verbose) and len(status.prices) > 1:
        _print_prices(status)
    if short_limit := short_limit_text(status):
        output.sentence(short_limit)
    if not explain:
        run, explained = (
            f"evalstore {command} {options}".rstrip() for command in ("run", "status --explain")
        )
        hint = f'"{explained}" to list it with reasons)'
        if options:  # the line gets long
            output.sentence(f'  (use "{run}" to do it)')
            output.sentence(f"  (use {hint}")
        else:
            output.sentence(f'  (use "{run}" to do it, {hint}')
    _print_remotes(status)


def _print_prices(status: Status) -> None:
    """Print what each candidate and each judge is likely to cost."""
    rows = []
    judges = [part for part in status.prices if part.is_judge]
    costs = [part.usd for part in judges if part.usd is not None]
    every = sum(part.calls for part in judges), sum(costs) if len(costs) == len(judges) else None
    for part in (*status.prices, *[PricePart("all", True, *every)] * (len(judges) > 1)):
        may_be_less = part.is_judge and status.may_judge_less
        made = output.plural(part.calls, "verdict" if part.is_judge else "answer")
        number = f"{'up to ' * may_be_less}{made}"
        cost = f"{'up to about ' * may_be_less}{money(part.usd)}"
        name = f"    {part.model}{' (judging)' * part.is_judge}"
        rows.append((name, number, "price unknown" if part.usd is None else cost))
    header = ("model", "number", "cost")
    print_table(Table(header, rows, frozenset(header[1:]), has_header=False))


def _print_remotes(status: Status) -> None:
    for text in remote_texts(status):
        output.sentence(text)


def _print_changes(status: Status) -> None:
    when = output.ago(status.last_started or 0, in_brackets=True)
    output.sentence(f"Changed since run {output.short(status.last_run or '')} ({when}):")
    file = " -- FILE" if status.changes else ""
    output.sentence(f'  (use "evalstore diff{file}" to see how)')
    joined = join_changes(status.changes)
    changes = [change for change, _ in joined]
    named = [*(change.file for change in changes), *(edit.of for edit in status.edits)]
    width = max(map(output.columns_of, map(output.safe, named)))
    told = set[tuple[str | None, str | None]]()
    for change, files in joined:
        _print_wrapped(
            f"{change.letters}  {output.pad(output.safe(change.file), width)}  "
            f"{output.safe(change_text(change))}"
        )
        if (change.was, change.now) not in told:  # one edit may have several effects
            _print_values(change, 12)
        told.add((change.was, change.now))
        for each in files if output.verbose else ():
            own = change_text(replace(each, reason="", also=(), edited=()))  # others share these
            _print_wrapped(f"    {output.safe(each.file)}  {output.safe(own)}")
    if len(changes) < len(status.changes) and not output.verbose:
        output.talk("  (-v lists each file)")
    for edit in status.edits:
        name = output.pad(output.safe(edit.of), width)
        _print_wrapped(f"{edit.code}  {name}  {output.safe(edit_text(status, edit))}")
        _print_values(edit.edit, 12)
    if hint := row_id_hint(status):
        output.talk(f"({hint})")


def _print_other_reasons(status: Status) -> None:
    """Print why something is pending that the changes above do not explain."""
    reasons = status.other_reasons
    output.sentence("Also pending:" if status.changes or status.edits else "Pending:")
    shown = _cut(reasons, _REASONS)
    for each in shown:
        place = each.file if each.files == 1 else f"{each.files:,} files"
        count = planned_judgements(each.count, 0, may_be_less=status.may_judge_less)
        count = count if each.kind == "judge" else output.plural(each.count, "answer")
        _print_wrapped(f"{count} in {output.safe(place)}  {output.safe(reason_text(each))}")
        _print_values(each, 8)
    if len(reasons) > len(shown):
        output.line(f"    … {len(reasons) - len(shown)} more (-v lists all)")


def _print_skipped(status: Status) -> None:
    output.line()
    output.sentence(f"Skipped, because the model lacks a capability ({len(status.skipped)}):")
    shown = _cut(status.skipped, _SHOWN)
    lacks = [f"{model} has no {capability}" for _, _, model, capability in shown]
    places = [output.safe(case_name(file, row)) for file, row, *_ in shown]
    for name, lack in zip(*align_cases(places, lacks, 6), strict=True):
        output.line(f"    {name}  {lack}".rstrip())
    _print_cut(len(status.skipped))


def print_untrusted(files: list[Untrusted]) -> None:
    """Print the Python files that are not trusted, each with the command that allows it."""
    for file in files:
        output.line(f"    {output.paint(output.safe(file.words), 'pending')}")
        output.talk(f"    {output.safe(trust_hint(file))}")


def _print_wrapped(text: str) -> None:
    """Print an entry of a list, wrapped between words in a terminal."""
    print_lines([StyledLine((StyledSpan(text),), 4)])


def _print_values(item: FileChange | OtherReason | PlanItem | Difference, indent: int) -> None:
    width = None if output.verbose else output.width()
    print_lines(value_lines(item, width=width, indent=indent))


def _print_items(status: Status) -> None:
    """Print the items of each kind; equal reasons are above all that have them."""
    for kind, title in KIND_TITLES.items():
        if not (every := SummedItems(status.items, kind)):
            continue
        count = kind_count_text(status, kind, every.total, every.by_checks)
        output.line()
        output.line(f"{title} ({count}):")
        is_cut = not output.verbose and len(every) > _SHOWN + 1
        items = list(islice(every, _SHOWN)) if is_cut else every  # they are read several times
        groups: dict[object, tuple[PlanItem, list[int]]] = {}
        for number, item in enumerate(items):
            key = item.reason, item.was, item.now, item.also
            groups.setdefault(key, (item, []))[1].append(number)
        is_any_alone = any(len(numbers) == 1 for _, numbers in groups.values())
        places = [case_place(it.file, it.row, it.prompt, status.prompts) for it in items]
        names = [" by ".join(filter(None, (item.model, item.evaluator))) for item in items]
        counts = [f" ({item.count}x)" if item.count > 1 else "" for item in items]
        columns = align_cases(places, names, BESIDE_PLACE if is_any_alone else _BESIDE_LISTED)
        rows = [f"{place}  {name}" for place, name in zip(*columns, strict=True)]
        for item, (number, *others) in groups.values():
            reason = output.safe(reason_text(item))
            _print_wrapped(reason if others else f"{rows[number]}  {reason}{counts[number]}")
            _print_values(item, 8)
            for each in (number, *others) if others else ():
                output.line(f"        {rows[each].rstrip()}{counts[each]}")
        _print_cut(len(every))


def _cut(items: list[T], most: int) -> list[T]:
    """Return the first items, or all with `-v` and where a line would stand for a single one."""
    return items if output.verbose or len(items) <= most + 1 else items[:most]


def _print_cut(count: int) -> None:
    if count > _SHOWN + 1 and not output.verbose:
        output.line(f"    … {count - _SHOWN} more (-v lists all)")


def case_place(
    file: str, row: str, prompt: str | None, prompts: dict[str, dict[str | None, str]]
) -> str:
    """Return the place of a case, with its system prompt when its file has several."""
    return output.safe(case_name(file, row, prompts.get(file, {}).get(prompt)))
