"""Finds the choice that the text of a judge names, line by line and without punctuation."""

from __future__ import annotations

import re
import string
from collections.abc import Iterable, Sequence
from unicodedata import category

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_FENCE = ("```", "~~~")
# Patterns are strings here, so that they are compiled only when a judge's reply is read.
_LABEL = (
    r"(?i)(?:(?:so|thus|therefore|my|the|final|overall)\s+)*(?:answer|choice|verdict)(?:\s+is)?"
)
"""Phrases that may introduce a choice, on the same line or on the line above."""
_REPORTED = (
    r"(?i)\b(?:sa(?:ys|id)|writes|wrote|written|answers|answered|replie[sd]|quot\w+"
    r"|respond(?:s|ed)|state[sd]|claim(?:s|ed)|ask(?:s|ed)|demand(?:s|ed)|instruct(?:s|ed)"
    r"|t(?:ells|old)|insist(?:s|ed)|conclude[sd]|end(?:s|ed)|beg[ai]ns?|began)\b[^.!?]*\Z"
)
"""Phrases of a line that introduces a quotation on the next line."""
_RUNS_ON_TO = (
    r"(?i)(?<!\w)(?:with|by|as|of|to|that|the|a|an|and|or|but|nor|not|is|was|are|were|be|in|on"
    r"|at|from|for|than|like|only|just|letter|option|word)\Z"
)
"""Ends of a line whose sentence continues on the next line."""
_SENTENCE = 300
"""The most characters at the end of a line that count as its last sentence."""
_RUNS_ON = r"\W*(?:is|was|are|were|would|could|might|may|isn|wasn)\b"
"""Beginnings of a line that is about the choice on the line above."""
_CLAIMED = r"\b(?i:choose|choice|pick|select|answer|verdict)\s+(?i:is\s+)?"
_DENIED = r"\b(?i:not|never|isnt|cannot be|rather than|instead of)\s+"


def bare(text: str, match: str = "word") -> str:
    """Return a text without punctuation and outer blanks; ASCII only unless `match` is `word`."""
    if match == "word":
        text = "".join(character for character in text if not category(character).startswith("P"))
    return text.translate(_PUNCTUATION).strip()


def find_choice(text: str, choices: Iterable[str], answer: str, match: str) -> str | None:
    """Return the choice that a text names, read line by line without its punctuation marks.

    With `word`, the choice must be alone on its line, and no other line may end with another
    choice or deny this one. Otherwise the first line that matches counts, starting from the end
    if the reasons come first.
    """
    if match == "word":
        return _find_word(_lines(text), {bare(choice): choice for choice in choices}, answer)
    lines = [line for raw_line in text.split("\n") if (line := bare(raw_line, match))]
    if answer == "cot_classify":
        lines.reverse()
    named = {choice: bare(choice, match) for choice in choices}
    for line in lines:
        for choice, name in named.items():
            if _fits(line, name, match):
                return choice
    return None


def _lines(text: str) -> list[str]:
    """Return the non-empty lines; those of a quotation or a block of code begin with `>`.

    If the whole text is a block of code, the lines are those of its content.
    """
    lines = [line for raw_line in text.split("\n") if (line := raw_line.strip())]
    if len(lines) > 2 and lines[0].startswith(_FENCE) and lines[-1] == lines[0][:3]:
        lines = lines[1:-1]
    marked: list[str] = []
    quoted = False
    for line in lines:
        if line.startswith(_FENCE):
            quoted = not quoted
        elif bare(line):
            marked.append(f">{line}" if quoted else line)
    return marked


def _find_word(lines: Sequence[str], names: dict[str, str], answer: str) -> str | None:
    """Return the choice alone on its line; None if it is quoted, denied or not the only one."""
    if not lines:
        return None
    at = len(lines) - 1 if answer == "cot_classify" else 0
    line = bare(lines[at])
    label = re.match(_LABEL, line)
    name = line if line in names or label is None else line[label.end() :].strip()
    if name not in names or lines[at].startswith(">") or "~~" in lines[at]:
        return None
    if at and _introduces_quotation(lines[at - 1]):
        return None
    if len(lines) > at + 1 and re.match(_RUNS_ON, lines[at + 1]):
        return None
    others = [bare(other) for number, other in enumerate(lines) if number != at]
    return None if any(_contradicts(other, name, names) for other in others) else names[name]


def _introduces_quotation(line: str) -> bool:
    """Return whether a line introduces a quotation on the next line.

    A line that introduces the choice itself does not count.
    """
    if re.fullmatch(rf"{_LABEL}|(?:so )?it is", bare(line)):
        return False
    end = line.rstrip("*_` ")[-_SENTENCE:]
    if end.endswith((":", "：", ",", ";", "-", "–", "—", "(", "=")):
        return True
    return re.search(_REPORTED, end) is not None or re.search(_RUNS_ON_TO, end) is not None


def _contradicts(line: str, name: str, names: Iterable[str]) -> bool:
    """Return whether a line denies a choice, ends with another one, or says that one is chosen."""
    if re.search(rf"{_DENIED}{re.escape(name)}(?!\w)", line, _case_of(name)):
        return True
    if _named_last(line, names) not in (None, name):
        return True
    return any(
        re.search(rf"{_CLAIMED}{re.escape(other)}(?!\w)", line, _case_of(other))
        for other in names
        if other != name
    )


def _case_of(name: str) -> re.RegexFlag:
    """Return the flags that match a choice; a single letter is case-sensitive."""
    return re.IGNORECASE if len(name) > 1 else re.NOFLAG


def _named_last(line: str, names: Iterable[str]) -> str | None:
    """Return the longest choice that a line ends with as a word."""
    matches = [
        name for name in names if re.search(rf"(?<!\w){re.escape(name)}\Z", line, _case_of(name))
    ]
    return max(matches, key=len, default=None)


def _fits(line: str, choice: str, match: str) -> bool:
    if match == "include":
        return line in choice
    if match == "exact":
        return line == choice
    return line.endswith(choice) or (match == "starts_or_endswith" and line.startswith(choice))
