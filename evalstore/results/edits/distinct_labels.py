"""Shortens labels that are listed below each other, so that they can still be distinguished.

Labels such as `tests/geography.md [question=What is the capital of France?]` often begin alike.
What a label shares with another one is left out before what is its own.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterable
from itertools import groupby, pairwise

from evalstore.core.display import clip, columns_of, first_difference, safe

_SHARE = 4
"""One column of so many is for the start that labels share."""
_WORD = re.compile(r"\w+|\W")
_START = re.compile(r"[^\[(]*")
"""Matches the file at the start of a label."""


def file_of(label: str) -> str:
    """Return the file at the start of a label; all of a text that does not name a case."""
    start = _START.match(label)
    return start[0] if start else ""


def shorten_between(label: str, shared: Collection[str], columns: int) -> str:
    """Return a label with the words that are not shared, in at most these columns.

    What is shared is left out first, and of it the end is kept at the start.
    """
    parts = _joined(
        ("".join(words), is_shared)
        for is_shared, words in groupby(_WORD.findall(label), lambda word: word in shared)
    )
    first = parts.pop(0)[0] if parts[0][1] else ""
    own = max(1, sum(not is_shared for _, is_shared in parts))
    most = max(1, (columns - len(parts)) // own)
    rest = "".join("…" if same and len(text) > 1 else text for text, same in parts)
    if columns_of(rest) > columns - columns // _SHARE:
        rest = "".join("…" if same else clip(text, most) for text, same in parts)
    rest = re.sub("…+", "…", rest)
    start = clip(first, columns - columns_of(rest)) if columns_of(rest) < columns else ""
    return clip(start + rest, columns)


def _joined(parts: Iterable[tuple[str, bool]]) -> list[tuple[str, bool]]:
    """Return the parts of a label; own words with a single shared sign between them are one."""
    joined: list[tuple[str, bool]] = []
    for text, is_shared in parts:
        before = joined[-2:]
        if not is_shared and len(before) == 2 and not before[0][1] and len(before[1][0]) == 1:
            joined[-2:] = [(before[0][0] + before[1][0] + text, False)]
        else:
            joined.append((text, is_shared))
    return joined


def shared_starts(labels: Iterable[str]) -> dict[str, int]:
    """Return for each label how many characters it shares with the most similar other label."""
    ordered = sorted(set(labels))
    starts = dict.fromkeys(ordered, 0)
    for before, after in pairwise(ordered):
        count = first_difference(before, after)
        starts[before] = max(starts[before], count)
        starts[after] = max(starts[after], count)
    return starts


def shorten_label(label: str, columns: int, shared: int = 0) -> str:
    """Return a label as one line of at most this many columns.

    `shared` is how many characters at its start other labels have as well. If they are more
    than a few, they are cut, and the end of the label is kept.
    """
    label = one_line(label)
    if columns_of(label) <= columns:
        return label
    if columns_of(label[:shared]) <= columns // _SHARE:
        return clip(label, columns)
    own = _word_start(label, shared, columns // _SHARE)
    room = max(1, columns // _SHARE, min(columns // 2, columns - columns_of(label[own:])))
    start = clip(label[:own], room)
    left = columns - columns_of(start)
    return start + (
        _end(label, left) if columns_of(label[own:]) < left else clip(label[own:], left)
    )


def one_line(label: str) -> str:
    """Return a label in one line, without characters that a terminal obeys."""
    return safe(" ".join(label.split()))


def _end(text: str, columns: int) -> str:
    """Return the end of a text in at most this many columns."""
    start = len(text)
    while start and (columns := columns - columns_of(text[start - 1])) >= 0:
        start -= 1
    return text[start:].lstrip()


def _word_start(text: str, at: int, most: int) -> int:
    """Return where the word at this position starts; `at` if that is more than `most` before."""
    at = min(at, len(text) - 1)
    for start in range(at, max(at - most, 0), -1):
        if not text[start - 1].isalnum():
            return start
    return at


def shorten_labels(labels: Iterable[str], columns: int) -> list[str]:
    """Return the labels, each as one line of at most this many columns."""
    whole = [*map(one_line, labels)]
    if all(columns_of(label) <= columns for label in whole):
        return whole
    starts = shared_starts(whole)
    short = {label: shorten_label(label, columns, start) for label, start in starts.items()}
    times = Counter(short.values())
    ordered, shared = [*short], dict[str, set[str]]()
    for file in {file_of(label) for label in ordered if times[short[label]] > 1}:
        first, end = bisect_left(ordered, file), bisect_left(ordered, f"{file}\U0010ffff")
        shared[file] = set.intersection(
            *(set(_WORD.findall(label)) for label in ordered[first:end])
        )
    return [
        shorten_between(label, shared[file_of(label)], columns)
        if times[short[label]] > 1
        else short[label]
        for label in whole
    ]
