"""The choice that a text names: read line by line, without its punctuation marks."""

from __future__ import annotations

import re
import string
from collections.abc import Iterable, Mapping
from unicodedata import category

_PUNCTUATION = str.maketrans("", "", string.punctuation)


def bare(text: str, match: str = "word") -> str:
    """A text without punctuation marks and blanks at its ends; for other matches those of ASCII."""
    if match == "word":
        text = "".join(one for one in text if not category(one).startswith("P"))
    return text.translate(_PUNCTUATION).strip()


def find_choice(text: str, choices: Iterable[str], answer: str, match: str) -> str | None:
    """The choice that a text names, read line by line without its punctuation marks.

    With `word` only the line counts on which the choice belongs; otherwise the first line that
    fits counts, from the end on if the reasons come first.
    """
    lines = [line for one in text.split("\n") if (line := bare(one, match))]
    if answer == "cot_classify":
        lines.reverse()
    named = {choice: bare(choice, match) for choice in choices}
    if match == "word":
        return _find_word(lines[0], named) if lines else None
    for line in lines:
        for choice, name in named.items():
            if _fits(line, name, match):
                return choice
    return None


def _find_word(line: str, named: Mapping[str, str]) -> str | None:
    """The choice that a line begins or ends with, as a word; None if it names another one, too."""
    there = [
        choice
        for choice, name in named.items()
        if re.search(rf"\A{re.escape(name)}(?!\w)|(?<!\w){re.escape(name)}\Z", line)
    ]
    if not there:
        return None
    found = max(there, key=lambda choice: len(named[choice]))
    rest = _word(named[found]).sub(" ", line)
    return None if any(_word(name).search(rest) for name in named.values()) else found


def _word(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")


def _fits(line: str, choice: str, match: str) -> bool:
    if match == "include":
        return line in choice
    if match == "exact":
        return line == choice
    return line.endswith(choice) or (match == "starts_or_endswith" and line.startswith(choice))
