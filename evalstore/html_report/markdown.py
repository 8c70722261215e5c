"""Turns Markdown of models into trees that the page builds elements from.

A tree has no HTML: the page makes an element for each node and sets its text, so that nothing of
an answer is ever read as markup. Images are replaced by their addresses, and only links to web
and mail addresses can be followed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

from evalstore.display import safe
from evalstore.operations.views.markdown_tokens import link_target, parse_markdown, shows_all
from evalstore.values import Json

if TYPE_CHECKING:
    from evalstore.operations.views.markdown_tokens import Token

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
