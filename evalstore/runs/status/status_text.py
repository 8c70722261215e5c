"""Formats changed test files, pending work with its cost, and runs in progress as text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import TYPE_CHECKING

from evalstore.comparison.version_diff import Difference, shared_ends
from evalstore.core.display import (
    StyledLine,
    StyledSpan,
    ago,
    case_name,
    columns_of,
    first_difference,
    likely_price,
    money,
    planned_judgements,
    plural,
    plural_is,
    safe,
    short,
)
from evalstore.core.runs import with_cost_parts
from evalstore.planning.path_history import ROWS
from evalstore.planning.plan import PlanItem
from evalstore.planning.project import Untrusted
from evalstore.planning.status_report import FileChange, OtherReason, SettingEdit, Status
from evalstore.runs.status.remote_answers import unread_text

if TYPE_CHECKING:
    from evalstore.store.shared_runs import RunInProgress

ROW_ID_HINT = "an edited row counts as a new one, unless the field 'rowId' of its file names it"
"""Said where some rows of a file are gone and others are new."""
_COUNTS = "asked", "judged", "gone", "new", "settled", "waiting", "used_again", "added"
"""The counts of a changed file."""
_CASES_OF_ONE = re.compile(r"(\(| of )([\d,]+) cases?(?=\)|$)")
"""How many cases of a file a reason has, or a part that was edited as well."""
_NEW_CANDIDATE = "new candidate"
"""Begins a reason for which nothing is asked again."""


def join_changes(changes: Iterable[FileChange]) -> list[tuple[FileChange, list[FileChange]]]:
    """Return the changes with those of several files by the same edit as one: of `6 files`.

    Each comes with the changes that it stands for if these are several.
    """
    groups: dict[tuple[object, ...], list[FileChange]] = {}
    for change in changes:
        edited = tuple("" if name == change.file else name for name in change.edited)
        cause = (change.letters, change.reason, change.was, change.now, change.also)
        is_known = change.reason or _used_text(change)
        alone = change.file if not is_known or change.code in ("A ", "D ", "R ") else ""
        groups.setdefault((cause, edited, change.reverted, alone), []).append(change)
    return [
        (_joined(group), group) if len(group) > 1 else (group[0], []) for group in groups.values()
    ]


def _used_text(change: FileChange) -> str:
    """Return what a test file uses that was edited; empty if the file itself was."""
    return "" if change.file in change.sources else ", ".join(change.edited)


def _joined(changes: Sequence[FileChange]) -> FileChange:
    """Return changes by the same edit as one."""
    first = changes[0]
    names = first.edited if first.edited == changes[1].edited else ()

    def of_all(text: str) -> str:
        """Return a text of each of the files with the counts of all of them."""
        return _CASES_OF_ONE.sub(
            lambda it: it[1] + plural(len(changes) * int(it[2].replace(",", "")), "case"), text
        )

    return replace(
        first,
        file=plural(len(changes), "file"),
        reason=of_all(first.reason),
        also=tuple(map(of_all, first.also)),
        edited=names,
        may_be_edited_rows=any(change.may_be_edited_rows for change in changes),
        **{name: sum(getattr(change, name) for change in changes) for name in _COUNTS},
    )


def change_text(change: FileChange) -> str:
    """Return the effect of a changed file on its cases; what has the reason comes last."""
    code = change.code.strip()
    if code == "A":
        return f"{plural(change.asked, 'case')} new"
    if code == "D":
        return f"{plural(change.gone, 'case')} removed"
    if code == "R":
        return reason_text(change)
    settled = settled_text(change)
    if code == "=" and change.settled and not change.gone:
        cause = _used_text(change)
        edited = " edited:" if cause and not change.reverted else ""
        return f"{cause}{edited} {settled}".lstrip()
    is_again = not change.reason.startswith(_NEW_CANDIDATE)
    counts = (
        (change.new, "new"),
        (change.gone, "removed"),
        (change.added, "asked"),
        (change.asked - change.added, "asked again" if is_again else "asked"),
        (change.judged, "judged again"),
    )
    listed = [f"{plural(count, 'case')} {word}" for count, word in counts if count]
    if change.waiting:
        listed.append(f"{plural(change.waiting, 'new or edited case')} pending")
    if change.settled:
        listed.append(f"{change.settled:,} {settled}" if listed else settled)
    parts = ", ".join(listed)
    reason = reason_text(change).replace("asked again at your request", "at your request")
    if change.file not in change.sources:
        rows = ", ".join(name for name in change.edited if name.startswith(ROWS))
        if not reason:
            reason = ", ".join(change.edited)
        elif rows:
            reason += f" ({rows})"
    return ": ".join(part for part in (parts, reason) if part)


def settled_text(change: FileChange) -> str:
    """Return what became of edited cases that need nothing."""
    text = "reverted to a stored version" if change.reverted else "answered and judged already"
    if change.used_again:
        again = "stored verdicts are reused"
        return f"{text}, {again}" if change.reverted else again
    return text


def reason_text(item: FileChange | OtherReason | PlanItem) -> str:
    """Return a reason, and what else was edited: `…; also changed: instructions, checks`."""
    return item.reason + (f"; also changed: {', '.join(item.also)}" if item.also else "")


def edit_lines(edit: Difference, *, width: int | None, indent: int = 0) -> Iterator[StyledLine]:
    """Yield an edit of a test file, with its values below it if they do not fit into its line.

    The lines of the values have at most `width` columns, or are whole without one.
    """
    yield StyledLine((StyledSpan(safe(str(edit))),), indent)
    yield from value_lines(edit, width=width, indent=indent + 2)


def value_lines(
    item: Difference | FileChange | OtherReason | PlanItem, *, width: int | None, indent: int = 0
) -> Iterator[StyledLine]:
    """Yield the values of an edit, or of a reason, below each other if its text lacks them."""
    edit = item if isinstance(item, Difference) else Difference(item.reason, item.was, item.now)
    if edit.fits:
        return
    old, new = focus(edit.was, edit.now, None if width is None else width - indent - len("- "))
    if edit.was is not None:
        yield StyledLine((StyledSpan(f"- {old}", "old"),), indent, hang=2)
    if edit.now is not None:
        yield StyledLine((StyledSpan(f"+ {new}", "new"),), indent, hang=2)


# --- shows two texts in one line each, cut so that their differences can be seen


_CUT = "…"


def focus(was: str | None, now: str | None, width: int | None) -> tuple[str, str]:
    """Return two texts in one line each, of at most `width` columns, or whole without a width.

    Texts that differ make lines that differ: they begin with the words before their first change.
    White space is visible where nothing else differs.
    """
    if was is None or now is None:
        return _clip(_one_line(was), width), _clip(_one_line(now), width)
    old, new = _one_line(was), _one_line(now)
    if old == new:
        start, end = shared_ends(was, now)
        old, new = (
            safe(text[:start])
            + "".join(map(_visible, text[start : len(text) - end]))
            + safe(text[len(text) - end :])
            for text in (was, now)
        )
    if width is None or max(columns_of(old), columns_of(new)) <= width:
        return old, new
    at = first_difference(old, new)
    rest = max(columns_of(old[at:]), columns_of(new[at:]))
    lead = _last(old[:at], max(1, width // 4, width - rest - 1))
    return _clip(lead + old[at:], width), _clip(lead + new[at:], width)


def _one_line(text: str | None) -> str:
    return safe(" ".join((text or "").split()))


def _visible(character: str) -> str:
    if not character.isspace():
        return safe(character)
    return "·" if character == " " else character.encode("unicode_escape").decode()


def _last(text: str, columns: int) -> str:
    """Return the last words of a text, with the sign of a cut before them."""
    tail = _fitting(text[::-1], columns)[::-1]
    if len(tail) == len(text):
        return text
    _, blank, words = tail.partition(" ")
    return _CUT + (words if blank and words else tail)


def _clip(text: str, width: int | None) -> str:
    if width is None or columns_of(text) <= width:
        return text
    return _fitting(text, width - 1) + _CUT


def _fitting(text: str, columns: int) -> str:
    """Return the start of a text that fits in the columns."""
    left = columns

    def fits(character: str) -> bool:
        nonlocal left
        left -= columns_of(character)
        return left >= 0

    return "".join(takewhile(fits, text))


KIND_TITLES = {
    "ask": "Would ask",
    "record": "Would take recorded answers",
    "judge": "Would judge",
}
"""The kinds of planned items in the order in which they are shown, and their titles."""

_CASES = 3
"""The most cases that are listed in one line."""
_FEW_CALLS = 10
"""A limit that lasts for so few may be less than the most that one call can cost."""
_MODELS = 3
"""The most models that are listed in one line."""


def work_text(status: Status, *, brief: bool = False) -> str:
    """Return the work of a run, such as `ask for 12 answers and give 24 verdicts`.

    With `brief`, the judgements by checks and those by models are one number.
    """
    most = planned_judgements(status.judge, 0, may_be_less=status.may_judge_less)
    work = [f"ask for {plural(status.ask, 'answer')}"] if status.ask else []
    work += [f"take {plural(status.record, 'recorded answer')}"] if status.record else []
    verdicts = [f"give {most if brief else judgements_text(status)}"] if status.judge else []
    return " and ".join(filter(None, [", ".join(work), *verdicts]))


def kind_count_text(status: Status, kind: str, total: int, by_checks: int) -> str:
    """Return how many items of a kind there are: `28`, or `14 by checks and up to 14 by models`."""
    if kind != "judge" or not status.may_judge_less:
        return f"{total:,}"
    by_models = f"up to {total - by_checks:,}"
    return f"{by_checks:,} by checks and {by_models} by models" if by_checks else by_models


def edit_text(status: Status, edit: SettingEdit) -> str:
    """Return an edit after the work that it makes: `34 answers in 13 files: 0 -> 0.3`."""
    counts = [plural(edit.answers, "answer")] if edit.answers else []
    if edit.verdicts:
        counts += [planned_judgements(edit.verdicts, 0, may_be_less=status.may_judge_less)]
    work = f"{' and '.join(counts)} in {edit.place}" if counts else ""
    return ": ".join(filter(None, (work, edit.text))) or _SIDES[edit.code]


_SIDES = {"A ": "new", "D ": "removed"}


def judgements_text(status: Status) -> str:
    """Return `6 judgements by checks and up to 4 by models`, or `4 judgements`."""
    return planned_judgements(status.judge, status.by_checks, may_be_less=status.may_judge_less)


def price_text(status: Status, *, brief: bool = False) -> str:
    """Return the estimated cost of a run, with the models whose price is not known.

    With `brief`, without these models: `price unknown`.
    """
    price = likely_price(
        status.cost if status.cost is not None else status.known_cost or None,
        status.guess,
        status.verdict_guess,
        at_most=status.may_judge_less and any(it.is_judge and it.usd for it in status.prices),
        brief=brief,
        is_simulated=status.is_simulated,
    )
    if not status.unpriced:
        return price
    names = _names_text(status.unpriced)
    if not status.known_cost:
        return price if brief else f"{price} (that of {names})"
    return f"{price} plus an unknown price{'' if brief else f' (that of {names})'}"


def work_price_text(status: Status, *, brief: bool = False) -> str:
    """Return what a run would do about pending results, and its price; with `brief` that alone."""
    texts = [waiting_text(status).rstrip(":")] * bool(status.untrusted)
    if status.is_any:
        price = price_text(status, brief=brief)
        if status.known_cost:
            price = with_cost_parts(price, [part.document() for part in status.prices])
        texts.append(price if brief else f"a run would {work_text(status, brief=True)}, {price}")
    told = "; ".join(filter(None, (*texts, left_text(status).rstrip(".").lower())))
    return told or "a run would do nothing about them"


def _names_text(models: Sequence[str]) -> str:
    names = ", ".join(f"'{safe(name)}'" for name in models[:_MODELS])
    return names + f" and {len(models) - _MODELS:,} more" * (len(models) > _MODELS)


def pending_text(status: Status) -> str:
    """Return `12 to ask, 24 to judge, about $0.06`, or that there is nothing to do."""
    if status.is_any:
        counts = ((status.ask, "ask"), (status.record, "record"), (status.judge, "judge"))
        price = price_text(status, brief=True)
        return ", ".join([*(f"{count:,} to {word}" for count, word in counts if count), price])
    if status.untrusted:
        return waiting_text(status).rstrip(":")
    if status.labels:
        return unrecorded_text(status)
    if outcome := outcome_text(status):
        return outcome
    if status.used_again:
        return used_again_texts(status)[0]
    return left_text(status).rstrip(".") or "nothing to do"


def plan_text(status: Status) -> str:
    """Return what a run would do, with which models and at what cost, as one sentence."""
    price = price_text(status)
    models = _candidates_text(status.pending_models, recorded=status.is_recorded_pending)
    reused = f"; {plural(status.reuse, 'answer')} reused" if status.reuse else ""
    return f"A run would {work_text(status)} ({models}), {price}{reused}."


def short_limit_text(status: Status) -> str:
    """Return what the limit on the cost lasts for, or that it cannot be kept; else nothing."""
    limit = status.short_limit
    if limit is None:
        return ""
    text = f"limit of {money(limit.usd)} ({limit.name})"
    if limit.answers is None or limit.judgements is None:
        names = _names_text(limit.unpriced)
        return f"A run with the {text} cannot start: the price of {names} is not known."
    if limit.call is not None:
        least = f"even the cheapest answer may cost up to {money(limit.call)}"
        return f"A run with the {text} makes no call: {least}."
    by_models = status.judge - status.by_checks
    lasts = [
        f"{f'about {done:,}' if done else 'none'} of the {plural(count, word)}"
        for done, count, word in (
            (limit.answers, status.ask, "answer"),
            (limit.judgements, by_models, "verdict"),
        )
        if count
    ]
    by = " by models" if by_models and status.by_checks else ""
    least = f"The {text} is less than that: it lasts for {' and '.join(lasts)}{by}"
    if 0 < limit.answers + limit.judgements <= _FEW_CALLS:
        return f"{least}, and for none if one call may cost more than the limit."
    return f"{least}."


def remote_texts(status: Status, *, brief: bool = False) -> list[str]:
    """Return for each remote with some of the answers how many, and what a pull would save.

    With `brief` only how many: `origin has 60 of the 68 answers`. Then the judgements of stored
    answers that it may have. Remotes that were never read are named, too.
    """
    asks = bool(status.ask or status.waiting_asks)
    unread = [unread_text(remote, asks=asks, brief=brief) for remote in status.unread_remotes]
    known = []
    answers = plural(status.ask + status.waiting_asks, "answer")
    for each in status.remotes:
        least = "at least" if each.judgements else "about"
        saves = f"saves {least} {money(each.cost)}" if each.cost else "copies them"
        known.append((each.remote, f"has {each.answers:,} of the {answers}", saves))
    verdicts = plural(status.judge - status.by_checks + status.waiting, "verdict")
    for judged in status.remote_judgements:
        saves = f"saves up to {money(judged.cost)}" if judged.cost else "copies what counts"
        known.append((judged.remote, f"may have {judged.judgements:,} of the {verdicts}", saves))
    return [
        f"{remote} {has}" + ("" if brief else f": 'evalstore pull {remote} --for-plan' {saves}")
        for remote, has, saves in known
    ] + unread


def _candidates_text(models: int, *, recorded: bool) -> str:
    """Return `2 candidates`, or `2 candidates and recorded answers`."""
    parts = [plural(models, "candidate")] if models else []
    return " and ".join([*parts, *(["recorded answers"] if recorded else [])]) or "0 candidates"


def nothing_text(status: Status) -> str:
    """Return why a run would do nothing."""
    if left_text(status) or status.untrusted or status.labels or status.used_again:
        return "No other pending work."
    models = status.models - status.has_recorded
    whose = _candidates_text(models, recorded=status.has_recorded)
    return (
        f"Nothing to do: {plural(status.reuse, 'answer')} "
        f"{f'({whose})' if status.has_recorded else f'of {whose}'} and all verdicts are stored."
    )


def used_again_texts(status: Status) -> list[str]:
    """Return for each reason how many stored judgements are used again without a call."""
    return [
        f"{plural_is(each.count, 'stored verdict')} reused "
        f"in {safe(each.file) if each.files == 1 else plural(each.files, 'file')}, without a call: "
        f"{safe(reason_text(each))}"
        for each in status.used_again
    ]


def left_text(status: Status) -> str:
    """Return the work that needs models that may not be called; empty if there is none."""
    counts = ((status.left_asks, "answer"), (status.left_judgements, "verdict"))
    left = " and ".join(plural(count, word) for count, word in counts if count)
    return f"Left: {left} (no model may be called)." if left else ""


def labels_text(status: Status) -> str:
    """Return how many labels no run has recorded yet; empty if there are none."""
    if not status.labels:
        return ""
    return f"{unrecorded_text(status)} since run {short(status.last_run or '')}"


def unrecorded_text(status: Status) -> str:
    """Return `1 label added or removed`."""
    return f"{plural(status.labels, 'label')} added or removed"


def outcome_text(status: Status) -> str:
    """Return how many results have another verdict without a call, if any."""
    counts = (
        *((status.broke, "broke"), (status.fixed, "fixed"), (status.undecided, "now undecided")),
        (status.decided, "no longer undecided"),
    )
    (first, word), *others = [each for each in counts if each[0]] or [(0, "")]
    listed = [f"{plural(first, 'result')} {word}", *(f"{n:,} {word}" for n, word in others)]
    return f"Since the last run, without new calls: {', '.join(listed)}" if first else ""


def lost_labels_text(lost: Sequence[tuple[str, str]]) -> str:
    """Return how many labels no longer count, and the first cases; empty if there are none."""
    cases = list(dict.fromkeys(lost))
    if not cases:
        return ""
    verb = "counts" if len(lost) == 1 else "count"
    more = [f"{len(cases) - _CASES:,} more"] if len(cases) > _CASES else []
    listed = ", ".join([*(safe(case_name(*case)) for case in cases[:_CASES]), *more])
    on = f" on {plural(len(cases), 'case')}" if len(lost) > len(cases) else ""
    return f"{plural(len(lost), 'label')}{on} no longer {verb}: {listed}"


def waiting_text(status: Status) -> str:
    """Return how many answers and judgements wait for files to be trusted."""
    counts = ((status.waiting_asks, "answer"), (status.waiting, "verdict"))
    waiting = " and ".join(plural(count, word) for count, word in counts if count)
    verb = "waits" if status.waiting_asks + status.waiting == 1 else "wait"
    return f"{waiting} {verb} for trust:"


def trust_hint(file: Untrusted) -> str:
    """Return the command that trusts a file, as a hint."""
    return f'(read it, then use "{file.command}" to allow it)'


def removed_texts(status: Status) -> list[str]:
    """Return how many rows are removed from each test file: `1 row removed from tests/a.md`."""
    removed = [change for change in status.changes if change.gone]
    return [
        f"{plural(change.gone, 'row')} removed from {safe(change.file)}"
        for change in removed
        if change.code != "D "
    ]


def row_id_hint(status: Status) -> str:
    """Return that an edited row counts as a new one where that may be so; else nothing."""
    return ROW_ID_HINT if any(change.may_be_edited_rows for change in status.changes) else ""


def skipped_text(skipped: Sequence[object]) -> str:
    """Return how many pairs of a case and a candidate are skipped."""
    return f"{plural(len(skipped), 'pair')} skipped for lack of a capability"


# --- runs in progress


def in_progress_text(run: RunInProgress, *, brief: bool = False) -> str:
    """Return what is known of a run in progress, with the command that takes part in it.

    In `brief`, who began it and how far it is.
    """
    by = f" by {safe(run.author)}" if run.author else ""
    answers = _done(run.asked, run.to_ask, "answer")
    done = f"{answers} and {_done(run.judged, run.to_judge, 'verdict')} so far"
    age = ago(0, 1_000_000 * run.seconds)
    begun = f"begun{by} {age}"
    id = short(run.run)
    join = f"'evalstore run --join {id}'"
    numbers = f"{_share(run.asked, run.to_ask)} asked, {_share(run.judged, run.to_judge)} judged"
    if run.programs:
        text = f"Run {id} is in progress, {begun}, in {plural(run.programs, 'program')}"
        whole = f"{text}: {done}" + (f"; {join} takes part." if run.joinable else ".")
    else:
        text = f"Run {id}, {begun}, has no live program"
        whole = f"{text}: {done}; {join} continues it."
    state = "" if run.programs else ", no live program"
    return f"{id}{by}{state}: {numbers}" if brief else whole


def _done(count: int, planned: int | None, word: str) -> str:
    """Return `3 of 60 answers`, or `3 answers` where it is not known how many were planned."""
    if planned is None or count > planned:
        return plural(count, word)
    return f"{count:,} of {plural(planned, word)}"


def _share(count: int, planned: int | None) -> str:
    """Return `3/60`, or `3` where it is not known how many were planned."""
    return f"{count:,}" if planned is None or count > planned else f"{count:,}/{planned:,}"
