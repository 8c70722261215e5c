"""Shows two texts in one line each, cut so that their differences can be seen."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

from evalstore.comparison.word_diff import Stretch, compare_words, shared_ends
from evalstore.core.display import columns_of, first_difference, safe

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
