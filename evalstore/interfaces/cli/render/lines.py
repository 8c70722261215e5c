"""Lines with colours, and texts with titles, as a command prints them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, TypeVar

from evalstore.core.display import StyledLine, StyledSpan, break_word
from evalstore.interfaces.cli import output

if TYPE_CHECKING:
    from evalstore.core.display import TextBlock

T = TypeVar("T")
_WORD = re.compile(r"\s*\S+|\s+$")
_LEAST = 20
"""The fewest columns to which a line is wrapped."""


def print_lines(lines: Iterable[StyledLine], *, is_yaml: bool = False, prefix: str = "") -> None:
    """Print lines, wrapped between words in a terminal, else as long as they are.

    In YAML each part of a comment begins with `#`. A prefix is printed before each part.
    """
    columns = output.table_width()
    if columns is not None:
        columns -= output.columns_of(prefix)
    for line in lines:
        comment = is_yaml and line.text.lstrip(" ").startswith("# ")
        for part in _fit(line, columns, "# " if comment else ""):
            text = " " * part.indent + "".join(map(_paint, part.spans))
            output.line((prefix + text).rstrip())


def _fit(line: StyledLine, columns: int | None, mark: str = "") -> Iterator[StyledLine]:
    """Yield the parts of a line that fit in the columns; those after the first are indented deeper.

    With a mark they begin with it, below the one of the first part.
    """
    if columns is None or output.columns_of(line.text) + line.indent <= columns:
        yield line
        return
    blanks = len(line.text) - len(line.text.lstrip(" "))
    indent, left = line.indent, max(_LEAST, columns - line.indent)
    spans: list[StyledSpan] = []
    for span in line.spans:
        for word in _words(span, columns):
            text = word.text
            width = output.columns_of(text)
            if width > left and spans:
                yield StyledLine(tuple(spans), indent)
                indent = min(line.indent + blanks + (0 if mark else 2), columns // 2)
                left = max(_LEAST, columns - indent - len(mark))
                spans = [StyledSpan(mark, word.colour)] if mark else []
                text = text.lstrip(" ")
                width = output.columns_of(text)
            spans.append(StyledSpan(text, word.colour))
            left -= width
    yield StyledLine(tuple(spans), indent)


def _words(span: StyledSpan, columns: int) -> Iterator[StyledSpan]:
    """Yield the words of a span, each with the blanks before it; very long words in pieces."""
    most = max(_LEAST, columns // 2)
    if span.colour == "faint" and output.columns_of(span.text) <= most:
        yield span  # ids of both sides stay on a line
        return
    for word in _WORD.findall(span.text):
        for piece in break_word(word, most, most):
            yield StyledSpan(piece, span.colour)


def print_wrapped(lines: Iterable[StyledLine]) -> None:
    """Print lines without colours; the last part of a line is wrapped below its start."""
    for line in lines:
        *labels, text = (span.text for span in line.spans)
        start = " " * line.indent + "".join(labels)
        margin = output.columns_of(start)
        first, *others = output.wrap(text, output.width() - margin)
        output.line(f"{start}{first}".rstrip())
        for part in others:
            output.line(" " * margin + part)


def _paint(span: StyledSpan) -> str:
    if not span.text or not span.colour:
        return span.text
    if span.colour == "faint":
        return output.faint(span.text)
    return output.paint(span.text, span.colour, bold=span.colour == "heading")


MOST_ALIKE = 3
"""Results with the same reasons that are named; more are counted."""


def join_alike(things: Iterable[T], key: Callable[[T], object]) -> list[list[T]]:
    """Return things with the same key together, in the order of the first ones."""
    groups: dict[object, list[T]] = {}
    for number, thing in enumerate(things):
        known = key(thing)
        groups.setdefault((number,) if known is None else known, []).append(thing)
    return [*groups.values()]


def alike_text(count: int) -> str:
    """Return that more results have the same reasons; 0 for a number that is not known."""
    return f"… and {f'{count:,} ' if count else ''}more with the same reason"


def print_block(block: TextBlock, indent: str = "") -> None:
    """Print a named text: one line beside its name, more below it; nothing when empty."""
    listed = output.safe(block.text, lines=True).strip("\n").rstrip().split("\n")
    label = StyledSpan(f"{output.safe(block.title)}:", "heading")
    margin = len(indent)
    if len(listed) > 1:
        lines = [StyledLine((StyledSpan(part),), margin + 4) for part in listed]
        print_lines([StyledLine((label,), margin)])
        print_lines(lines, is_yaml=bool(block.lines))
    elif listed[0]:
        print_lines([StyledLine((label, StyledSpan(f" {listed[0]}")), margin)])
