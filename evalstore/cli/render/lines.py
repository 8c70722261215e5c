"""Lines with colours, and texts with titles, as a command prints them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from evalstore.cli import output

if TYPE_CHECKING:
    from evalstore.operations.views.styled_text import StyledLine, StyledSpan, TextBlock


def print_lines(lines: Iterable[StyledLine]) -> None:
    """Print lines as long as they are."""
    for line in lines:
        text = " " * line.indent + "".join(map(_paint, line.spans))
        output.line(text.rstrip())


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


def print_block(block: TextBlock, indent: str = "") -> None:
    """A named text: one line beside its name, more of them below it; nothing when empty."""
    listed = output.safe(block.text, lines=True).strip("\n").rstrip().split("\n")
    label = indent + output.paint(f"{output.safe(block.title)}:", bold=True)
    if len(listed) > 1:
        output.line("\n".join([label, *(f"{indent}    {part}".rstrip() for part in listed)]))
    elif listed[0]:
        output.line(f"{label} {listed[0]}")
