"""Lines of text with names of colours, which the command line and the browser render."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from evalstore.core.display import safe

_MARKS = {"old": ("[-", "-]"), "new": ("{+", "+}")}
_COLOURS = {"no reply": "error", "answered": "faint", "none": "faint"}
"""The colours of results that are not verdicts."""


class StyledSpan(NamedTuple):
    """A part of a line and the name of its colour: a verdict, `faint`, `heading`, or empty.

    A part of an image has two colours: `#rrggbb on #rrggbb`.
    """

    text: str
    colour: str = ""


class StyledLine(NamedTuple):
    """A line before it is wrapped; wrapped rows begin at the indent and the hang."""

    spans: tuple[StyledSpan, ...]
    indent: int = 0
    hang: int = 0
    """How much further to the right than the first row the others begin."""
    mark: str = ""
    """What the others begin with, too: `# ` of a comment."""

    @property
    def text(self) -> str:
        """Return the text without colours and indent."""
        return "".join(span.text for span in self.spans)


def text_lines(text: str, colour: str = "", indent: int = 0) -> Iterator[StyledLine]:
    """Yield the lines of a text; control characters are shown as escapes."""
    for line in text.split("\n"):  # one by one, because testing printable lines is quick
        shown = line if line.isprintable() else safe(line, lines=True).expandtabs(4)
        yield StyledLine((StyledSpan(shown, colour),), indent)


def marked_spans(text: str, colour: str) -> Iterator[StyledSpan]:
    """Yield removed (`old`) or new words between signs that are visible without colours.

    Blanks at their end stand behind the signs, as in `git diff --word-diff`.
    """
    words = text.rstrip() or text
    if words:
        begin, end = _MARKS[colour]
        yield StyledSpan(f"{begin}{words}{end}", colour)
    if words != text:
        yield StyledSpan(text[len(words) :])


def heading(text: str) -> StyledLine:
    """Return the heading of a section."""
    return StyledLine((StyledSpan(safe(text), "heading"),))


BLANK = StyledLine(())
BADGE = "badge "
"""The beginning of the colour of a verdict that is drawn filled, with a blank at both ends."""


class TextBlock(NamedTuple):
    """A text with a title."""

    title: str
    text: str
    colour: str = ""
    by_candidate: bool = False
    """Whether the candidate wrote the text."""
    files: tuple[str, ...] = ()
    """The ids of the images and of the text files that are shown below the text."""
    lines: tuple[StyledLine, ...] = ()
    """The same text in several colours; empty: it has one."""


def verdict_span(word: str, signs: Mapping[str, str]) -> StyledSpan:
    """Return a verdict in its colour, after its sign if it has one."""
    sign = f"{signs[word]} " if word in signs else ""
    return StyledSpan(f"{sign}{word}", _COLOURS.get(word, word))
