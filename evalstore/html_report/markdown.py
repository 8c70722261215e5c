"""Parses Markdown of models into trees that the page builds elements from.

A tree has no HTML: the page makes an element for each node and sets its text, so that nothing of
an answer is ever read as markup. Images are replaced by their description, and only links to web
and mail addresses are kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from evalstore.display import safe_markdown
from evalstore.values import Json

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

LONGEST = 20_000
"""The most characters of a text that is shown as Markdown; longer ones are shown as they are."""
_MARKS = re.compile(
    r"[*_`#\[|~]|^ {0,3}(?:[-+>]|\d+[.)])|^(?: {4}|\t)|^ {0,3}[=-]{2,}", re.MULTILINE
)
"""Characters without which a text has no Markdown but paragraphs."""
_DEEPEST = 40
"""The levels of nesting beyond which a text is shown as it is."""
_LINKS = ("http://", "https://", "mailto:")
_LEAVES = {"hr": "hr", "hardbreak": "br"}


def markdown_tree(text: str) -> Json:
    """Return the tree of a text; None if it has no Markdown, is too long or nests too deep.

    A node is a text, or a list of the name of an element, its link if it is an `a`, and its
    children.
    """
    if len(text) > LONGEST or not _MARKS.search(text):
        return None
    return _tree(text)


@lru_cache(maxsize=1024)
def _tree(text: str) -> Json:
    tokens = _parser().parse(safe_markdown(text))
    if any(token.level >= _DEEPEST for token in tokens):  # the parser drops what is deeper
        return None
    return _children(tokens) or None


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"html": False, "maxNesting": _DEEPEST + 2}).enable(
        ["table", "strikethrough"]
    )


def _children(tokens: Iterable[Token]) -> list[Json]:
    """Return the nodes of tokens in which each element has an opening and a closing token."""
    stack: list[list[Json]] = [[]]
    for token in tokens:
        if token.nesting == 1:
            node: list[Json] = [token.tag]
            if token.tag == "a":
                node.append(_address(token))
            stack[-1].append(node)
            stack.append(node)
        elif token.nesting == -1:
            stack.pop()
        elif token.type == "inline":
            stack[-1] += _children(token.children or ())
        elif token.type == "softbreak":
            stack[-1].append("\n")
        elif token.type in _LEAVES:
            stack[-1].append([_LEAVES[token.type]])
        elif token.type == "image":
            stack[-1].append(f"[image: {token.content}]")
        elif token.type == "code_inline":
            stack[-1].append(["code", token.content])
        elif token.type in ("fence", "code_block"):
            stack[-1].append(["pre", token.content.removesuffix("\n")])
        elif token.content:
            stack[-1].append(token.content)
    return stack[0]


def _address(token: Token) -> str:
    """Return the address of a link; empty unless it is that of a web page or of a mailbox."""
    address = str(token.attrGet("href") or "")
    return address if address.lower().startswith(_LINKS) else ""
