"""Colours of code and JSON in answers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from evalstore.display import safe
from evalstore.operations.views.styled_text import StyledLine, StyledSpan

if TYPE_CHECKING:
    from pygments.token import _TokenType

_LONGEST = 4_000
"""The most characters of a piece of code that are coloured: some lexers take the square of it."""
_LANGUAGES = frozenset(
    (
        *("bash", "c", "c++", "cpp", "css", "diff", "go", "html", "javascript", "js", "json"),
        *("php", "py", "python", "rb", "ruby", "rust", "sh", "sql", "swift"),
        *("toml", "ts", "typescript", "xml", "yaml", "yml"),
    )
)
"""Languages that are coloured: a model's word loads no other lexer, and these take no long time."""
_JSON = "json"
_GAP = re.compile(r"\n(?:[ \t\f\v\r]*\n){30}")
"""Empty lines of which no code has so many; the lexers of C look at all of them at each of them."""
_COLOURS = (
    ("Token.Comment", "faint"),
    ("Token.Keyword", "code-keyword"),
    ("Token.Name.Tag", "code-keyword"),
    ("Token.Literal.String", "code-string"),
    ("Token.Literal.Number", "code-number"),
    ("Token.Name.Function", "code-name"),
    ("Token.Name.Class", "code-name"),
    ("Token.Name.Attribute", "code-name"),
    ("Token.Generic.Deleted", "old"),
    ("Token.Generic.Inserted", "new"),
)


def code_lines(code: str, language: str) -> list[StyledLine]:
    """Return code as lines, with colours when its language is known and it is not very long."""
    lines: list[list[StyledSpan]] = [[]]
    for colour, text in _pieces(code, language.lower()):
        for number, part in enumerate(text.split("\n")):
            if number:
                lines.append([])
            if part:
                lines[-1].append(StyledSpan(safe(part, lines=True).expandtabs(4), colour))
    return [StyledLine(tuple(spans)) for spans in lines]


def _pieces(code: str, language: str) -> Sequence[tuple[str, str]]:
    """Split a text into parts with the names of their colours."""
    is_long = language != _JSON and (len(code) > _LONGEST or _GAP.search(code))
    if language not in _LANGUAGES or is_long:
        return [("code", code)]
    from pygments.lexers import get_lexer_by_name  # few need it

    lexer = get_lexer_by_name(language, stripnl=False, ensurenl=False)
    pieces = [(_colour(token), text) for token, text in lexer.get_tokens(code)]
    is_whole = "".join(text for _, text in pieces) == code
    return pieces if is_whole else [("code", code)]


def _colour(token: _TokenType) -> str:
    name = str(token)
    return next((colour for start, colour in _COLOURS if name.startswith(start)), "")
