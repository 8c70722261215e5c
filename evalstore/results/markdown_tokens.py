"""Parses texts of models that are Markdown, for the browser and the HTML report alike.

Links are not opened, images are not loaded, HTML and entities stay as they are written.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING

from evalstore.core.display import safe

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token as Token

LONGEST = 20_000
"""The most characters of a text that is parsed; a longer text is shown as it is written."""
_MOST_CELLS = 20_000
"""The most cells that a text can have; each short row of a table gets all columns of its head."""
_MARKUP = re.compile(r"(?:^|[\r\n])\s*(?:[#>=+*-]|\d+[.)])|[`|<\[]|\*\*|__|~~")
"""What a text has at least that is Markdown: the beginning of a block, or a sign within a line."""
_BLOCKS = frozenset(
    (
        *("heading_open", "fence", "bullet_list_open", "ordered_list_open"),
        *("table_open", "blockquote_open"),
    )
)
_INLINE = frozenset(("strong_open", "code_inline", "link_open", "image", "s_open"))
"""Tokens that show that a text is Markdown; emphasis alone may be a multiplication."""


def parse_markdown(text: str) -> list[Token] | None:
    """Return the tokens of a text; None if it is not Markdown, or too long to be parsed."""
    if len(text) > LONGEST or not _MARKUP.search(text):
        return None
    written = text.split("\n")
    if len(written) * max(line.count("|") for line in written) > _MOST_CELLS:
        return None
    tokens = _parser().parse(text)
    return tokens if any(map(_is_sign, tokens)) else None


def shows_all(text: str, shown: Iterable[str]) -> bool:
    """Return whether all letters and digits are shown, such as those of cells without a head."""
    counts = Counter(filter(str.isalnum, "".join(shown)))
    written = Counter(filter(str.isalnum, "".join(safe(part) for part in text.split("\n"))))
    return all(counts[letter] >= count for letter, count in written.items())


def link_target(token: Token, name: str) -> str:
    """Return the address of a link or an image with its title."""
    title = token.attrGet("title")
    return f"{token.attrGet(name) or ''}" + (f' "{title}"' if title else "")


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt  # few need it

    parser = MarkdownIt("commonmark", {"html": False})
    parser.enable(["table", "strikethrough"])
    # They would hide or replace what a model has written.
    parser.disable(["reference", "entity", "html_block", "html_inline"])
    parser.normalizeLink = lambda url: url  # type: ignore[method-assign]
    return parser


def _is_sign(token: Token) -> bool:
    children = token.children or ()
    return token.type in _BLOCKS or any(child.type in _INLINE for child in children)
