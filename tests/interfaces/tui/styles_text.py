"""The colours and styles of a screen as a text that people can read and compare.

Below the name of the screen is a legend with a letter for each style, then the styles of each line:
`a12 b` is twelve cells in the style `a`, then `b` to the end of the line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from difflib import unified_diff
from itertools import count, groupby
from string import ascii_letters

from rich.cells import cell_len
from rich.color import Color
from rich.style import Style
from textual.strip import Strip

_ATTRIBUTES = ("bold", "dim", "italic", "underline", "reverse", "strike")
_SEEN_ON_SPACES = ("underline", "reverse", "strike")
_PARTS = re.compile(r"\s+|\S+")
_LEGEND = re.compile(r"^([a-zA-Z]+)  (.+)$", re.MULTILINE)
_LINE = re.compile(r"^ *(\d+)(?:-(\d+))?  (.+)$", re.MULTILINE)
_RUN = re.compile(r"([a-zA-Z]+)(\d*)")
_MOST_DIFFERENCES = 15
"""Differences of a screen that are listed; more are only counted."""

Runs = tuple[tuple[str, int], ...]
"""The styles of a line, each with the number of its cells; the last one has the rest."""


def describe_styles(name: str, strips: Iterable[Strip]) -> str:
    """The styles of a screen of this name."""
    lines = [_runs(strip) for strip in strips]
    styles = dict.fromkeys(style for line in lines for style, _ in line)
    letters = dict(zip(styles, _letters(), strict=False))
    parts = [name, "", *(f"{letter}  {style}" for style, letter in letters.items()), ""]
    number = 1
    for line, same in groupby(lines):
        last = number + len(list(same)) - 1
        place = f"{number}-{last}" if last > number else str(number)
        runs = [f"{letters[style]}{width or ''}" for style, width in line]
        parts.append(f"{place:>5}  {' '.join(runs)}")
        number = last + 1
    return "\n".join(parts) + "\n"


def style_differences(kept: str, shown: str, text: str) -> str:
    """Where the styles differ, with the words of the screen that stand there now."""
    before, now = _read(kept), _read(shown)
    lines = text.split("\n")
    differences: list[str] = []
    for number in sorted(before.keys() | now.keys()):
        words = lines[number - 1] if number <= len(lines) else ""
        differences += _of_line(number, before.get(number, ()), now.get(number, ()), words)
    names = [text.partition("\n")[0] for text in (kept, shown)]
    if names[0] != names[1]:
        differences.insert(0, f"the screen is {names[1]}, it was {names[0]}")
    more = len(differences) - _MOST_DIFFERENCES
    if more > 0:
        differences[_MOST_DIFFERENCES:] = [f"and {more} more"]
    return "\n".join(differences) or "the same styles, written in another way"


def text_differences(kept: str, shown: str) -> str:
    """Two texts of a screen as a unified diff."""
    lines = unified_diff(kept.split("\n"), shown.split("\n"), "kept", "shown", lineterm="", n=1)
    return "\n".join(lines)


def _letters() -> Iterator[str]:
    for number in count(1):
        yield from (letter * number for letter in ascii_letters)


def _runs(strip: Strip) -> Runs:
    """The styles of a line; of blank cells only what can be seen of them counts."""
    runs: list[tuple[str, str, int]] = []
    for text, style, _ in strip:
        look, ground = _look(style or Style()), _ground(style or Style())
        for part in _PARTS.findall(text):
            seen = ground if part.isspace() and ground else look
            before, below, width = runs[-1] if runs else ("", "", 0)
            if seen == before or (seen == ground == below):
                runs[-1] = before, below, width + cell_len(part)
            else:
                runs.append((seen, ground, cell_len(part)))
    styles = [(style, width) for style, _, width in runs]
    return (*styles[:-1], *((style, 0) for style, _ in styles[-1:]))


def _look(style: Style) -> str:
    colours = f"{_colour(style.color)} on {_colour(style.bgcolor)}"
    attributes = [name for name in _ATTRIBUTES if getattr(style, name)]
    return " ".join([colours, *attributes])


def _ground(style: Style) -> str:
    """What can be seen of a style where there is no character; empty if all of it."""
    if any(getattr(style, name) for name in _SEEN_ON_SPACES):
        return ""
    return f"on {_colour(style.bgcolor)}"


def _colour(colour: Color | None) -> str:
    return colour.name if colour else "default"


# --- reading


def _read(text: str) -> dict[int, Runs]:
    """The styles of each line by its number."""
    styles = dict(_LEGEND.findall(text))
    lines = {}
    for first, last, runs in _LINE.findall(text):
        read = tuple((styles[letter], int(width or 0)) for letter, width in _RUN.findall(runs))
        lines.update(dict.fromkeys(range(int(first), int(last or first) + 1), read))
    return lines


def _of_line(number: int, before: Runs, now: Runs, words: str) -> Iterator[str]:
    width = max(cell_len(words), *(sum(width for _, width in runs) + 1 for runs in (before, now)))
    was, is_now = _cells(before, width), _cells(now, width)
    column = 0
    for (old, new), same in groupby(zip(was, is_now, strict=True)):
        last = column + len(list(same))
        if old != new:
            cut = words[column:last].strip()
            yield f"line {number}, column {column + 1} {cut!r}: {new}, it was {old}"
        column = last


def _cells(runs: Runs, width: int) -> list[str]:
    cells = [style for style, cells in runs[:-1] for _ in range(cells)]
    return cells + [runs[-1][0] if runs else "nothing"] * (width - len(cells))
