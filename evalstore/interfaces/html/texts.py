"""Collects the texts of a part of the report, each once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

from evalstore.core.display import safe
from evalstore.core.values import Json
from evalstore.results.markdown_tokens import link_target, parse_markdown, shows_all

if TYPE_CHECKING:
    from evalstore.results.markdown_tokens import Token


LONGEST = 100_000
"""The most characters of a text; the rest is left out, which the report says."""


class TextTable:
    """Texts by number: a text, or a list of a text and its tree if it has Markdown."""

    def __init__(self) -> None:
        self.entries: list[Json] = []
        self._numbers: dict[tuple[str, bool], int] = {}

    def add(self, text: str, *, markdown: bool = True) -> int:
        """Return the number of a text; without `markdown` it is only shown as it is."""
        key = text, markdown
        if key not in self._numbers:
            self._numbers[key] = len(self.entries)
            shown = shown_text(text)
            tree = markdown_tree(text) if markdown else None
            self.entries.append([shown, tree] if tree is not None else shown)
        return self._numbers[key]


def shown_text(text: str) -> str:
    """Return a text with control characters as escapes; a very long one is cut, with a note."""
    rest = len(text) - LONGEST
    if rest <= 0:
        return safe(text, lines=True)
    cut = safe(text[:LONGEST], lines=True)
    return f"{cut}\n\n[{rest:,} more characters are left out of this report]"


# --- turns Markdown of models into trees that the page builds elements from


_LINKS = ("http://", "https://", "mailto:")
_LEAVES = {"hr": "hr", "hardbreak": "br"}


@lru_cache(maxsize=1024)
def markdown_tree(text: str) -> Json:
    """Return the tree of a text; None if it is shown as it is written.

    A node is a text, or a list of the name of an element, its link if it is an `a`, and its
    children.
    """
    shown = safe(text, lines=True)
    tokens = parse_markdown(shown)
    if tokens is None:
        return None
    nodes = _children(tokens)
    return nodes if shows_all(shown, _texts(nodes)) else None


def _children(tokens: Iterable[Token]) -> list[Json]:
    """Return the nodes of tokens in which each element has an opening and a closing token."""
    stack: list[list[Json]] = [[]]
    for token in tokens:
        if token.type == "link_open":
            stack.append(["a", _address(token), link_target(token, "href")])
        elif token.type == "link_close":
            _, address, target, *inner = stack.pop()
            if address:
                stack[-1].append(["a", address, *inner])
                target = target.removeprefix(address).strip()
            else:
                stack[-1] += inner
            stack[-1] += [f" ({target})"] if target else []
        elif token.nesting == 1:
            node: list[Json] = [token.tag]
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
            alt = f"{token.content}: " if token.content else ""
            stack[-1].append(f"[image {alt}{link_target(token, 'src')}]")
        elif token.type == "code_inline":
            stack[-1].append(["code", token.content])
        elif token.type in ("fence", "code_block"):
            info = token.info.strip()
            stack[-1] += [["small", info]] if info else []
            stack[-1].append(["pre", token.content.removesuffix("\n")])
        elif token.content:
            stack[-1].append(token.content)
    return stack[0]


def _address(token: Token) -> str:
    """Return the address of a link; empty unless it is that of a web page or of a mailbox."""
    address = str(token.attrGet("href") or "")
    return address if address.lower().startswith(_LINKS) else ""


def _texts(nodes: Iterable[Json]) -> Iterator[str]:
    """Yield the texts of nodes; the address of a link is in its tooltip."""
    for node in nodes:
        if isinstance(node, str):
            yield node
        else:
            yield from _texts(node[1:])
