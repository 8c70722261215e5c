"""Markdown as lines with colours, in which every word of the source can be read.

Links are not opened, images are not loaded, HTML and entities are shown as they are written.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from rich.cells import cell_len

from evalstore.core.display import BLANK, StyledLine, StyledSpan, safe
from evalstore.files.yaml12 import parse_json
from evalstore.results.value_text import LONGEST, link_target, parse_markdown, shows_all

if TYPE_CHECKING:
    from evalstore.results.value_text import Token

_WIDEST = 60
"""Columns of a table; the rows of a wider one are shown cell by cell."""
_STYLES = {"strong": "strong", "em": "emphasis", "s": "faint", "link": "link"}
_BULLET = "•"


class RenderedText(NamedTuple):
    """A text that is not shown as it is written."""

    lines: list[StyledLine]
    is_markdown: bool
    """Else it is JSON."""


def render_text(text: str) -> RenderedText | None:
    """Render a text that is Markdown or JSON; None: it is shown as it is written."""
    if len(text) > LONGEST:
        return None
    if text[:1] in ("{", "["):
        try:
            parse_json(text)
        except (ValueError, RecursionError):
            pass
        else:
            return RenderedText(code_lines(text, "json"), is_markdown=False)
    tokens = parse_markdown(text)
    if tokens is None:
        return None
    lines = _Renderer().render(tokens)
    is_whole = shows_all(text, (line.text for line in lines))
    return RenderedText(lines, is_markdown=True) if is_whole else None


class _Renderer:
    """Makes lines of the tokens of one text."""

    def __init__(self) -> None:
        self._lines: list[StyledLine] = []
        self._indent = 0
        self._quotes = 0
        self._items: list[str] = []
        """What stands in front of the next line of each open list item."""

    def render(self, tokens: Sequence[Token]) -> list[StyledLine]:
        """Render the document to lines, without blank ones at the ends."""
        position = 0
        while position < len(tokens):
            token = tokens[position]
            if token.type == "table_open":
                start = position
                while tokens[position].level != token.level or tokens[position].nesting >= 0:
                    position += 1
                self._add_table(tokens[start:position])
            else:
                heading = position and tokens[position - 1].type == "heading_open"
                self._add(token, "heading" if heading else "")
            position += 1
        while self._lines and self._lines[-1] == BLANK:
            self._lines.pop()
        return self._lines

    def _add(self, token: Token, colour: str) -> None:
        match token.type:
            case "inline":
                for spans in _inline_lines(token.children or (), colour):
                    self._put(spans)
            case "fence" | "code_block":
                info = token.info.strip()
                if info:
                    self._put([StyledSpan(safe(info), "faint")])
                language = info.partition(" ")[0]
                for line in code_lines(token.content.removesuffix("\n"), language):
                    self._put([StyledSpan("  "), *line.spans])
                self._end_block()
            case "hr":
                self._put([StyledSpan("─" * 20, "faint")])
                self._end_block()
            case "blockquote_open":
                self._quotes += 1
            case "blockquote_close":
                self._quotes -= 1
            case "list_item_open":
                sign = f"{token.info}{token.markup}" if token.info else _BULLET
                self._items.append(f"{sign} ")
                self._indent += cell_len(self._items[-1])
            case "list_item_close":
                self._indent -= cell_len(self._items.pop())
            case "heading_close" | "bullet_list_close" | "ordered_list_close":
                self._end_block()
            case "paragraph_close":
                if not token.hidden:
                    self._end_block()

    def _put(self, spans: Sequence[StyledSpan]) -> None:
        """Add a line; the first one of a list item begins with its bullet or number."""
        marks: list[StyledSpan] = []
        indent = self._indent
        for number, sign in enumerate(self._items):
            if not sign.isspace():
                indent -= sum(map(cell_len, self._items[number:]))
                marks += (StyledSpan(each, "faint") for each in self._items[number:])
                self._items = [
                    *self._items[:number],
                    *(" " * cell_len(each) for each in self._items[number:]),
                ]
                break
        marks += [StyledSpan("│ " * self._quotes, "faint")] if self._quotes else ()
        hang = sum(cell_len(mark.text) for mark in marks)
        self._lines.append(StyledLine((*marks, *spans), indent, hang))

    def _end_block(self) -> None:
        if self._lines and self._lines[-1] != BLANK:
            self._lines.append(BLANK)

    # --- tables

    def _add_table(self, tokens: Sequence[Token]) -> None:
        rows: list[list[list[StyledSpan]]] = []
        for token in tokens:
            if token.type == "tr_open":
                rows.append([])
            elif token.type == "inline":
                colour = "" if len(rows) > 1 else "strong"
                lines = _inline_lines(token.children or (), colour)
                rows[-1].append([span for line in lines for span in line])
        widths = [max(map(_width, column)) for column in zip(*rows, strict=True)]
        head, *body = rows
        if sum(widths) + 3 * len(widths) > _WIDEST:  # as lists of their cells
            if not body:
                self._put(_joined(head))
            for number, row in enumerate(body):
                if number:
                    self._end_block()
                for title, cell in zip(head, row, strict=True):
                    self._put([*title, StyledSpan(": ", "faint"), *cell])
        else:
            for number, row in enumerate(rows):
                cells = zip(row, widths, strict=True)
                self._put(
                    _joined(
                        [*cell, StyledSpan(" " * (width - _width(cell)))] for cell, width in cells
                    )
                )
                if not number:
                    rule = "─┼─".join("─" * width for width in widths)
                    self._put([StyledSpan(rule, "faint")])
        self._end_block()


def _inline_lines(tokens: Iterable[Token], colour: str) -> Iterator[list[StyledSpan]]:
    """Yield the lines of a paragraph: line breaks stay as they are written."""
    line: list[StyledSpan] = []
    colours = [colour]
    links: list[str] = []
    for token in tokens:
        name, _, end = token.type.rpartition("_")
        if token.type in ("softbreak", "hardbreak"):
            yield line
            line = []
        elif token.type == "image":
            alt = f"{token.content}: " if token.content else ""
            line.append(StyledSpan(f"[image {safe(alt)}{safe(link_target(token, 'src'))}]", "link"))
        elif end == "open" and name in _STYLES:
            colours.append(_STYLES[name])
            if name == "link":
                links.append(link_target(token, "href"))
        elif end == "close" and name in _STYLES:
            colours.pop()
            if name == "link" and (target := links.pop()) != (line[-1].text if line else ""):
                line.append(StyledSpan(f" ({safe(target)})", "faint"))
        elif token.content:
            style = "code" if token.type == "code_inline" else colours[-1]
            line.append(StyledSpan(safe(token.content, lines=True).expandtabs(4), style))
    yield line


def _width(spans: Iterable[StyledSpan]) -> int:
    return sum(cell_len(span.text) for span in spans)


def _joined(cells: Iterable[Sequence[StyledSpan]]) -> list[StyledSpan]:
    """Join the cells of a row with lines between them."""
    spans: list[StyledSpan] = []
    for number, cell in enumerate(cells):
        spans += [StyledSpan(" │ ", "faint")] if number else ()
        spans += cell
    return spans


# --- code, and the colours of JSON


_JSON = re.compile(
    r'(?P<key>"(?:[^"\\]|\\.)*+"(?=\s*:))|(?P<string>"(?:[^"\\]|\\.)*+"?)'
    r"|(?P<number>-?\d[\d.eE+-]*)|(?P<keyword>\b(?:true|false|null)\b)",
    re.DOTALL,
)
_COLOURS = {
    "key": "code-keyword",
    "string": "code-string",
    "number": "code-number",
    "keyword": "code-keyword",
}


def code_lines(code: str, language: str) -> list[StyledLine]:
    """Return code as lines; JSON has colours."""
    lines: list[list[StyledSpan]] = [[]]
    for colour, text in _json_pieces(code) if language.lower() == "json" else [("code", code)]:
        for number, part in enumerate(text.split("\n")):
            if number:
                lines.append([])
            if part:
                lines[-1].append(StyledSpan(safe(part, lines=True).expandtabs(4), colour))
    return [StyledLine(tuple(spans)) for spans in lines]


def _json_pieces(text: str) -> Iterator[tuple[str, str]]:
    """Yield the parts of JSON, each after its colour."""
    at = 0
    for found in _JSON.finditer(text):
        yield "", text[at : found.start()]
        yield _COLOURS[found.lastgroup or ""], found[0]
        at = found.end()
    yield "", text[at:]
