"""Wraps lines of a terminal, which may have styles, between words."""

from __future__ import annotations

import re

from evalstore.core.display import break_word, columns_of

_WORD = re.compile(r"(?:\"evalstore [^\"\n]*\"|'evalstore [^'\n]*'|\S)+")
"""Matches a word, or a command in quotation marks with what is attached to it."""
STYLE = re.compile(r"\x1b\[[0-9;]*m")
"""Matches what begins or ends a style."""
_PIECE = re.compile(r"(?:\x1b\[[0-9;]*m|[\x00-\u10ff])+|.")
"""Matches a part of a word that is never broken: a wide letter, or narrow ones in a row."""
_MOST_LETTERS = 4
"""The letters, with accents and the like, that are looked at for each column of a line."""


def shown_columns(text: str) -> int:
    """Return the columns of a text that may have styles."""
    return columns_of(STYLE.sub("", text))


def wrap_sentence(text: str, columns: int) -> list[str]:
    """Return a sentence wrapped between words; a command in quotation marks is never broken.

    Neither is a path, or another word of narrow letters. All lines have the indent of the first.
    Several blanks between words of a line, as in a value that is quoted, remain.
    """
    indent = " " * (len(text) - len(text.lstrip(" ")))
    lines: list[str] = []
    end = 0
    for match in _WORD.finditer(text):
        word, blanks, end = match[0], text[end : match.start()], match.end()
        joined = f"{blanks if blanks.strip(' ') == '' else ' '}{word}"
        if lines and shown_columns(f"{lines[-1]}{joined}") <= columns:
            lines[-1] += joined
            continue
        is_whole = word.isascii() or "/" in word or word.startswith(('"', "'"))
        parts = [word] if is_whole else _break(word, columns - len(indent))
        lines += [indent + part for part in parts]
    return lines


def _break(word: str, columns: int) -> list[str]:
    """Return a word in pieces that fit a line, broken between wide letters."""
    parts = [""]
    for piece in _PIECE.findall(word):
        if parts[-1] and shown_columns(parts[-1] + piece) > columns:
            parts.append("")
        parts[-1] += piece
    return parts


def around(before: str, text: str, columns: int) -> tuple[str, str]:
    """Return the part of a line around a place that fits the terminal; `before` is what precedes.

    What precedes the place takes three quarters of it at most.
    """
    cut = 0
    if columns_of(text) > columns:
        cut, left = len(before), columns * 3 // 4
        while cut and (left := left - columns_of(before[cut - 1])) >= 0:
            cut -= 1
    start = "…" if cut else ""
    part = start + text[cut + len(start) :]
    if columns_of(part) > columns:
        part = break_word(part[: _MOST_LETTERS * columns], columns - 1, columns)[0] + "…"
    return start + before[cut + len(start) :], part
