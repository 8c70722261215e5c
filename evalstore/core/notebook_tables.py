"""Formats values as HTML for notebooks: a heading, tables, and texts.

All texts are escaped, and nothing needs a script, a style sheet or the network. Colours come from
the page around it, light or dark; only a verdict has a background of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import NamedTuple

from evalstore.core.display import safe

MOST_ROWS = 20
"""The most rows of a table that are shown."""
MOST_CHARACTERS = 20_000
"""The most characters of a text that are shown."""
COLOURS = {
    "pass": "#1a7f37",
    "fixed": "#1a7f37",
    "fail": "#b3261e",
    "error": "#b3261e",
    "broke": "#b3261e",
    "undecided": "#8a5a00",
    "changed": "#8a5a00",
}
"""The background of white words, by word."""
OTHER_COLOUR = "#57606a"
_LINE = "1px solid rgba(127,127,127,.45)"
_CELL = f"padding:.2em .8em .2em 0;text-align:left;vertical-align:top;border-bottom:{_LINE}"
_TEXT = "white-space:pre-wrap"
_ANYWHERE = ";overflow-wrap:anywhere"
_LONGEST_WORD = 30
"""The most characters of a word that is never broken."""


class Html(NamedTuple):
    """Text that is HTML already."""

    markup: str


def block(*parts: Html) -> str:
    """Return the HTML of a value."""
    markup = "".join(part.markup for part in parts)
    return f'<div style="color:inherit;background:transparent;max-width:100%">{markup}</div>'


def line(*parts: str | Html) -> Html:
    """Return a paragraph of texts with spaces between them; empty ones are left out."""
    shown = " ".join(it.markup if isinstance(it, Html) else _escaped(it) for it in parts if it)
    return Html(f'<p style="margin:.3em 0">{shown}</p>')


def strong(text: str) -> Html:
    """Return a text that stands out."""
    return Html(f"<strong>{_escaped(text)}</strong>")


def word(text: str | None) -> Html:
    """Return a verdict, or the kind of a change, on its colour."""
    shown = text or "answered"
    colour = COLOURS.get(shown, OTHER_COLOUR)
    style = f"color:#ffffff;background:{colour};padding:0 .4em;border-radius:.3em"
    return Html(f'<span style="{style}">{_escaped(shown)}</span>')


def long_text(text: str) -> Html:
    """Return a text with its lines and spaces; a very long one is cut, and says so."""
    return _element("div", _TEXT, text)


def table(
    headers: Sequence[str], rows: Iterable[Sequence[str | Html]], total: int | None = None
) -> Html:
    """Return a table; empty without rows. `total` counts them if `rows` has only the first."""
    lines = [f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows]
    if not lines:
        return Html("")
    heads = "".join(f'<th scope="col" style="{_CELL}">{_escaped(text)}</th>' for text in headers)
    rest = (len(lines) if total is None else total) - len(lines[:MOST_ROWS])
    more = line(f"… and {rest:,} more").markup if rest > 0 else ""
    body = "".join(lines[:MOST_ROWS])
    style = "border-collapse:collapse;color:inherit;background:transparent;margin:.3em 0"
    return Html(
        f'<table style="{style}"><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>{more}'
    )


def _cell(value: str | Html) -> str:
    if isinstance(value, Html):
        return f'<td style="{_CELL}">{value.markup}</td>'
    return _element("td", f"{_CELL};{_TEXT}", value).markup


def _element(tag: str, style: str, text: str) -> Html:
    """Return an element with a text, which is broken inside words only if they are long."""
    rest = len(text) - MOST_CHARACTERS
    more = f"\n… and {rest:,} more characters" if rest > 0 else ""
    shown = text[:MOST_CHARACTERS]
    breaks = _ANYWHERE if max(map(len, shown.split()), default=0) > _LONGEST_WORD else ""
    return Html(f'<{tag} style="{style}{breaks}">{_escaped(shown)}{more}</{tag}>')


def _escaped(text: str) -> str:
    return escape(safe(text, lines=True))
