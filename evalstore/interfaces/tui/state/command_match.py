"""How well the name of a command matches what is typed: whole names first, scattered letters last.

A name may begin with a word for its kind, such as `File`: what follows counts as its name, too.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_WORD = re.compile(r"[^\W_]+|[^\w\s]")
_SPREAD = 2
"""Letters that are not together count as a match within so many times their number."""
_WHOLE, _START, _WORD_START, _WORD_STARTS, _PART, _PARTS, _LETTERS = range(7, 0, -1)
"""How a name matches, the best first."""


class Match(NamedTuple):
    """How a name matches."""

    score: float
    """Higher is better; the whole number is the way it matches, the rest prefers short names."""
    places: tuple[int, ...]
    """The characters of the name that match."""


def match_name(name: str, typed: str, *, kind_length: int = 0) -> Match | None:
    """Return how well a name matches; None when it does not.

    The first `kind_length` characters are the word for its kind.
    """
    folded = _fold(name)
    sought = " ".join(_fold(typed).split())
    if not sought:
        return None
    starts = sorted({0, kind_length})
    for start in reversed(starts):
        if folded[start:].strip() == sought:
            return _match(_WHOLE, name, _span(folded, sought, start))
    for start in reversed(starts):
        if folded.startswith(sought, start):
            return _match(_START, name, range(start, start + len(sought)))
    word_starts = [match.start() for match in _WORD.finditer(folded)]
    for start in word_starts:
        if folded.startswith(sought, start):
            return _match(_WORD_START, name, range(start, start + len(sought)))
    words = sought.split()
    beginnings = [
        next((start for start in word_starts if folded.startswith(word, start)), -1)
        for word in words
    ]
    if -1 not in beginnings:
        return _match(_WORD_STARTS, name, _spans(beginnings, words))
    if sought in folded:
        return _match(_PART, name, _span(folded, sought, 0))
    parts = [folded.find(word) for word in words]
    if -1 not in parts:
        return _match(_PARTS, name, _spans(parts, words))
    letters = sought.replace(" ", "")  # those of the kind are in all names of the kind
    named = [start for start in word_starts if start >= kind_length]
    places = _letters(" " * kind_length + folded[kind_length:], letters, named)
    return _match(_LETTERS, name, places) if places else None


def _fold(text: str) -> str:
    """Return a text without case; each character stays one, so that places are those of the text.

    Most texts keep their length when they are folded as a whole, which is quick.
    """
    folded = text.casefold()
    if len(folded) == len(text):
        return folded
    return "".join(
        part if len(part := character.casefold()) == 1 else character for character in text
    )


def _match(way: int, name: str, places: range | tuple[int, ...]) -> Match:
    first = places[0] if places else 0
    return Match(way + 0.4 / (1 + first) + 0.4 / (1 + len(name)), tuple(places))


def _span(folded: str, sought: str, start: int) -> range:
    begin = folded.find(sought, start)
    return range(begin, begin + len(sought))


def _spans(starts: list[int], words: list[str]) -> tuple[int, ...]:
    pairs = zip(starts, words, strict=True)
    return tuple(sorted({place for start, word in pairs for place in _range(start, word)}))


def _range(start: int, word: str) -> range:
    return range(start, start + len(word))


def _letters(folded: str, letters: str, word_starts: list[int]) -> tuple[int, ...]:
    """Return the places of letters that begin words or follow each other, or are near together."""
    return _initials(folded, letters, word_starts) or _near(folded, letters)


def _initials(folded: str, letters: str, word_starts: list[int]) -> tuple[int, ...]:
    """Return places at which each letter follows the one before or begins a later word."""
    ways: list[tuple[int, ...]] = [()]
    for letter in letters:
        longer: dict[int, tuple[int, ...]] = {}
        for way in ways:
            last = way[-1] if way else -1
            nexts = [start for start in word_starts if start > last]
            if way:
                nexts.append(last + 1)
            for place in nexts:
                if folded.startswith(letter, place):
                    longer.setdefault(place, (*way, place))
        ways = list(longer.values())
    return ways[0] if ways else ()


def _near(folded: str, letters: str) -> tuple[int, ...]:
    """Return the places of letters in their order that are not far from each other."""
    most = _SPREAD * len(letters)
    if len(letters) < 3:
        return ()
    start = folded.find(letters[0])
    while start >= 0:
        places = [start]
        for letter in letters[1:]:
            place = folded.find(letter, places[-1] + 1, start + most)
            if place < 0:
                break
            places.append(place)
        else:
            return tuple(places)
        start = folded.find(letters[0], start + 1)
    return ()
