"""Formats the changes of test files, and the reasons of planned work, as text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import TYPE_CHECKING

from evalstore.comparison.version_diff import Difference
from evalstore.comparison.word_diff import Stretch, compare_words, shared_ends
from evalstore.core.display import (
    StyledLine,
    StyledSpan,
    columns_of,
    first_difference,
    plural,
    safe,
)
from evalstore.planning.path_history import ROWS

if TYPE_CHECKING:
    from evalstore.planning.plan import PlanItem
    from evalstore.planning.status_report import FileChange, OtherReason

_COUNTS = (
    *("asked", "judged", "gone", "new", "settled", "failing", "undecided", "broke", "fixed"),
    *("waiting", "used_again", "added"),
)
"""The counts of a changed file."""
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
    return replace(
        first,
        file=plural(len(changes), "file"),
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
    """Return what became of edited cases that need nothing, and which of them fail."""
    text = "reverted to a stored version" if change.reverted else "answered and judged already"
    if change.used_again:
        again = "stored verdicts are used again"
        text = f"{text}, {again}" if change.reverted else again
    now = _outcome_text(change)
    return f"{text} ({now})" if now else text


def _outcome_text(change: FileChange) -> str:
    """Return `2 results fixed, 1 broke, 3 fail, 1 undecided`, or of a single one `now fails`.

    A case has a result for each candidate and system prompt.
    """
    failing = max(0, change.failing - change.broke)
    fails = f"fail{'s' * (failing == 1)}"
    count = change.broke + change.fixed + failing + change.undecided
    if change.settled == 1 and count == 1:
        if change.undecided:
            return "undecided"
        if change.broke:
            return "now fails"
        return fails if failing else "now passes" if change.fixed else ""
    return results_text(
        (change.fixed, "fixed"),
        *((change.broke, "broke"), (failing, fails), (change.undecided, "undecided")),
    )


def results_text(*counts: tuple[int, str]) -> str:
    """Return what became of how many results: `2 results fixed, 1 broke`."""
    listed = [(count, word) for count, word in counts if count]
    first = [f"{plural(count, 'result')} {word}" for count, word in listed[:1]]
    return ", ".join([*first, *(f"{count:,} {word}" for count, word in listed[1:])])


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
_GAP = " … "
"""What stands for words that both texts have between two changes."""


def focus(was: str | None, now: str | None, width: int | None) -> tuple[str, str]:
    """Return two texts in one line each, of at most `width` columns, or whole without a width.

    Texts that differ make lines that differ: what both have is left out before their first change,
    behind the last one, and between two of them. White space is visible where nothing else differs.
    """
    if was is None or now is None:
        return _clip(_one_line(was), width), _clip(_one_line(now), width)
    old, new = _one_line(was), _one_line(now)
    if old == new:
        old, new = _with_blanks(was, now)
    if width is None or max(columns_of(old), columns_of(new)) <= width:
        return old, new
    stretches = compare_words(old, new)
    least, most = max(1, width // 4), width
    while least < most:  # as many of the words around the changes as fit
        middle = (least + most + 1) // 2
        fits = all(columns_of(line) <= width for line in _around(stretches, middle))
        least, most = (middle, most) if fits else (least, middle - 1)
    before, after = (_clip(line, width) for line in _around(stretches, least))
    if before != after:
        return before, after
    # one very long word replaces another
    at = first_difference(old, new)
    lead = _last(old[:at], max(1, width // 4))
    return _clip(lead + old[at:], width), _clip(lead + new[at:], width)


def _one_line(text: str | None) -> str:
    return safe(" ".join((text or "").split()))


def _with_blanks(was: str, now: str) -> tuple[str, str]:
    """Return two texts that differ in white space alone, with that visible where they differ."""
    start, end = shared_ends(was, now)
    old, new = (
        "".join(
            (
                safe(text[:start]),
                "".join(map(_visible, text[start : len(text) - end])),
                safe(text[len(text) - end :]),
            )
        )
        for text in (was, now)
    )
    return old, new


def _visible(character: str) -> str:
    if not character.isspace():
        return safe(character)
    return "·" if character == " " else character.encode("unicode_escape").decode()


def _around(stretches: Sequence[Stretch], context: int) -> tuple[str, str]:
    """Return both texts with so many columns of what they share on each side of a change."""
    old, new = [], []
    for number, (kind, text) in enumerate(stretches):
        if kind == "old":
            old.append(text)
        elif kind == "new":
            new.append(text)
        else:
            shown = text
            if number == 0:
                shown = _last(text, context)
            elif number == len(stretches) - 1:
                shown = _first(text, context)
            elif columns_of(text) > 2 * context + len(_GAP):
                parts = _first(text, context), _last(text, context)
                shown = _GAP.join(part.strip(_CUT).strip() for part in parts)
                shown = " " * text[0].isspace() + shown + " " * text[-1].isspace()
            old.append(shown)
            new.append(shown)
    return "".join(old), "".join(new)


def _first(text: str, columns: int) -> str:
    """Return the first words of a text, with the sign of a cut behind them."""
    head = _fitting(text, columns)
    if len(head) == len(text):
        return text
    words, blank, _ = head.rpartition(" ")
    return (words if blank and words else head) + _CUT


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
