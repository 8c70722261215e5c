"""Splits texts into the words of the search index, and finds words in texts."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

_APART_RANGES = (
    "\u00a9\u00ae\u00b0\u2100-\u2bff"  # symbols
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Burmese, Khmer
    "\u2e80-\ua4cf\uac00-\ud7af\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"  # East Asian
    "\U0001f000-\U0001faff"  # emoji
)
_APART = re.compile(f"([{_APART_RANGES}])")
"""Characters that are words by themselves."""
_BEGIN = rf"(?:(?<![^\W_])|(?<=[{_APART_RANGES}]))"
_END = rf"(?:(?![^\W_])|(?=[{_APART_RANGES}]))"
"""Where a word of letters begins and ends."""


def split_words(text: str) -> tuple[str, ...]:
    """Return the words of a query; text in quotation marks is one word."""
    words = (word.strip('"') for word in re.findall(r'"[^"]*"?|[^\s"]+', text))
    return tuple(word for word in words if word.strip())


def has_words(words: Sequence[str]) -> bool:
    """Return whether any of them has a letter, a digit or a symbol."""
    return any(map(_is_of_word, "".join(words)))


def fold_words(text: str) -> str:
    """Return a text as it is indexed: case-folded, with blanks around single-character words."""
    if text.isascii():
        return text.replace("\0", " ")
    text = text.casefold().replace("\0", " ")
    return _APART.sub(r" \1 ", text).encode("utf-8", "replace").decode()


def make_phrases(words: Sequence[str]) -> Iterator[str]:
    """Yield each word as a phrase of FTS5, in quotation marks, where no character is special."""
    for text, is_prefix in _each_phrase(words):
        yield f'"{text}"' + "*" * is_prefix


class Phrase(NamedTuple):
    """Words that stand side by side."""

    words: Sequence[str]
    """Empty when there are only accents: nothing matches."""
    is_prefix: bool
    """Whether the last word may be the beginning of one."""


def list_phrases(words: Sequence[str]) -> list[Phrase]:
    """Return the same phrases as `make_phrases`, in words as `list_words` returns them."""
    return [Phrase(list_words(text), is_prefix) for text, is_prefix in _each_phrase(words)]


def _each_phrase(words: Sequence[str]) -> Iterator[tuple[str, bool]]:
    real = [word for word in words if any(map(_is_of_word, word))]
    for number, word in enumerate(real, 1):
        phrase = " ".join(fold_words(word).replace('"', " ").split())
        yield phrase, number == len(real) and _is_of_word(phrase[-1])


class _Folding(dict[int, str]):
    """Characters as they are in the words of a database that does not split texts itself.

    They are the words of `unicode61` in FTS5: without the accents of Latin letters, and without
    marks for accents.
    """

    def __missing__(self, code: int) -> str:
        folded = _fold(chr(code))
        if code < _KEPT:
            self[code] = folded
        return folded


_FOLDING = _Folding()
_KEPT = 0x10000
"""Characters below are kept, once they are folded."""


def _fold(character: str) -> str:
    if "\u0300" <= character <= "\u036f":
        return ""
    if not (_is_of_word(character) or "\U0001f3fb" <= character <= "\U0001f3ff"):
        return " "
    base = unicodedata.normalize("NFD", character)[0]
    return base.lower() if base.isascii() else character


def list_words(text: str) -> list[str]:
    """Return the words of a text in their order, as a database can compare them."""
    return fold_words(text).translate(_FOLDING).split()


def _is_of_word(character: str) -> bool:
    kind = unicodedata.category(character)
    return kind[0] in "LMN" or kind in ("Co", "So")


def find_word_places(text: str, words: Sequence[str]) -> list[tuple[int, int]]:
    """Return the places of words in a text: sorted starts and ends, without overlaps."""
    folded, origins = _folded(text)
    spans: list[tuple[int, int]] = []
    for pattern in _patterns_of(tuple(words)):
        for match in pattern.finditer(folded):
            if match.end() > match.start():
                spans.append((origins[match.start()], origins[match.end() - 1] + 1))
    kept: list[tuple[int, int]] = []
    for begin, stop in sorted(spans, key=lambda span: (span[0], -span[1])):
        if not kept or begin >= kept[-1][1]:
            kept.append((begin, stop))
    return kept


@lru_cache(maxsize=8)
def _patterns_of(words: Sequence[str]) -> list[re.Pattern[str]]:
    """Return the patterns that find words in folded texts."""
    real = [word for word in words if any(map(_is_of_word, word))]
    patterns: list[re.Pattern[str]] = []
    for number, word in enumerate(real, 1):
        parts = re.findall(r"\w+|[^\w\s]", _APART.sub(r" \1 ", _folded(word)[0]))
        parts = [re.escape(part) for part in parts if any(map(_is_of_word, part))]
        if not parts:
            continue
        alone = not _APART.match(word)
        start = _BEGIN if alone else ""
        end = "" if number == len(real) or _APART.match(word[-1]) else _END
        patterns.append(re.compile(start + r"[\W_]*".join(parts) + end))
    return patterns


def _folded(text: str) -> tuple[str, Sequence[int]]:
    """Return the text without case and accents, and the original places of its characters."""
    if text.isascii():
        return text.lower(), range(len(text))
    made: list[str] = []
    origins: list[int] = []
    for number, character in enumerate(text):
        plain = (
            unicodedata.normalize("NFD", character)
            if character.isalpha() and character < "\u0590"
            else character
        )
        for part in plain.casefold():
            if not "\u0300" <= part <= "\u036f":
                made.append(part)
                origins.append(number)
    return "".join(made), origins
