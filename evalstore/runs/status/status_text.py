"""Formats pending work as text: what a run would do, its cost, and what it would leave undone."""

from __future__ import annotations

from collections.abc import Sequence

from evalstore.core.display import (
    case_name,
    likely_price,
    money,
    planned_judgements,
    plural,
    safe,
    short,
)
from evalstore.planning.project import Untrusted
from evalstore.planning.results import tie_text
from evalstore.planning.status_report import RemoteAnswers, SettingEdit, Status
from evalstore.results.compare.diff_text import ROW_ID_HINT
from evalstore.results.edits.change_text import reason_text, results_text
from evalstore.runs.status.remote_answers import unread_text

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


def _names_text(models: Sequence[str]) -> str:
    names = ", ".join(f"'{safe(name)}'" for name in models[:_MODELS])
    return names + f" and {len(models) - _MODELS:,} more" * (len(models) > _MODELS)


def pending_text(status: Status, *, brief: bool = False) -> str:
    """Return what a run would do and its price in few words, or that there is nothing to do.

    With `brief` in as few words as possible: `12 to ask, 24 to judge, about $0.06`.
    """
    if status.is_any and brief:
        counts = ((status.ask, "ask"), (status.record, "record"), (status.judge, "judge"))
        price = price_text(status, brief=True)
        return ", ".join([*(f"{count:,} to {word}" for count, word in counts if count), price])
    if status.is_any:
        price = price_text(status, brief=True)
        return f"{work_text(status, brief=True)}, {price}"
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
        return f"A run with the {text} does not begin: the price of {names} is not known."
    if limit.call is not None:
        least = f"even the cheapest may cost up to {money(limit.call)}"
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
    return _known_texts(status, brief=brief) + _judged_texts(status, brief=brief) + unread


def _least(known: RemoteAnswers) -> str:
    return "at least" if known.judgements else "about"


def _known_texts(status: Status, *, brief: bool) -> list[str]:
    if brief:
        return [
            f"{each.remote} has {each.answers:,} of the "
            f"{plural(status.ask + status.waiting_asks, 'answer')}"
            for each in status.remotes
        ]
    return [
        f"{text}: 'evalstore pull {each.remote} --for-plan' "
        + (f"saves {_least(each)} {money(each.cost)}" if each.cost else "copies them")
        for each, text in zip(status.remotes, _known_texts(status, brief=True), strict=True)
    ]


def _judged_texts(status: Status, *, brief: bool) -> list[str]:
    total = plural(status.judge - status.by_checks + status.waiting, "verdict")
    texts = []
    for each in status.remote_judgements:
        text = f"{each.remote} may have {each.judgements:,} of the {total}"
        saves = f"saves up to {money(each.cost)}" if each.cost else "copies what counts"
        texts.append(
            text if brief else f"{text}: 'evalstore pull {each.remote} --for-plan' {saves}"
        )
    return texts


def _candidates_text(models: int, *, recorded: bool) -> str:
    """Return `2 candidates`, or `2 candidates and recorded answers`."""
    parts = [plural(models, "candidate")] if models else []
    return " and ".join([*parts, *(["recorded answers"] if recorded else [])]) or "0 candidates"


def nothing_text(status: Status) -> str:
    """Return why a run would do nothing."""
    if left_text(status) or status.untrusted or status.labels or status.used_again:
        return "No other pending work."
    models, count = status.models - status.has_recorded, status.undecided_judgements
    # Verdicts that rows share are counted in each part of a long file.
    words = "1 of them undecided or an error" if count == 1 else "some undecided or errors"
    again = f", {words}: 'evalstore run --retry-errors' judges again" if count else ""
    ties = f"; {tie_text(status.ties)} ('evalstore label' decides)" if status.ties else ""
    whose = _candidates_text(models, recorded=status.has_recorded)
    return (
        f"Nothing to do: {plural(status.reuse, 'answer')} "
        f"{f'({whose})' if status.has_recorded else f'of {whose}'} and all verdicts are stored"
        f"{again}{ties}."
    )


def used_again_texts(status: Status) -> list[str]:
    """Return for each reason how many stored judgements are used again without a call."""
    return [
        f"{plural(each.count, 'stored verdict')} {'is' if each.count == 1 else 'are'} used again "
        f"in {safe(each.file) if each.files == 1 else plural(each.files, 'file')}, without a call: "
        f"{safe(reason_text(each))}"
        for each in status.used_again
    ]


def left_text(status: Status) -> str:
    """Return the work that needs models that may not be called; empty if there is none."""
    counts = ((status.left_asks, "answer"), (status.left_judgements, "verdict"))
    left = " and ".join(plural(count, word) for count, word in counts if count)
    return f"Left: {left} (no model may be called for them)." if left else ""


def labels_text(status: Status) -> str:
    """Return how many labels no run has recorded yet; empty if there are none."""
    if not status.labels:
        return ""
    return f"{plural(status.labels, 'label')} since run {short(status.last_run or '')}"


def unrecorded_text(status: Status) -> str:
    """Return `1 label to record`."""
    return f"{plural(status.labels, 'label')} to record"


def outcome_text(status: Status) -> str:
    """Return how many results what is stored breaks and fixes.

    It is empty if there are none, and if the changed files say it all.
    """
    causes = status.edits or status.labels
    if not causes and all(
        getattr(status, word) <= sum(getattr(change, word) for change in status.changes)
        for word in ("broke", "fixed", "undecided")
    ):
        return ""
    return unrecorded_changes(status)


def unrecorded_changes(status: Status) -> str:
    """Return how many results broke, were fixed or became undecided without a call, if any."""
    listed = results_text(
        *((status.broke, "broke"), (status.fixed, "fixed"), (status.undecided, "now undecided"))
    )
    return f"Since the last run, without new calls: {listed}" if listed else ""


def lost_labels_text(lost: Sequence[tuple[str, str]]) -> str:
    """Return how many labels no longer count, and the first cases; empty if there are none."""
    cases = list(dict.fromkeys(lost))
    if not cases:
        return ""
    verb = "counts" if len(lost) == 1 else "count"
    more = [f"{len(cases) - _CASES:,} more"] if len(cases) > _CASES else []
    listed = ", ".join([*(safe(case_name(*case)) for case in cases[:_CASES]), *more])
    return f"{plural(len(lost), 'label')} no longer {verb}: {listed}"


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
