"""The headings of a page of Markdown and the anchors of links to them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
_FENCED = re.compile(r"^(`{3,}|~{3,}).*?^\1$", re.DOTALL | re.MULTILINE)
_HEADING = re.compile(r"^(#{1,6}) (.+)$", re.MULTILINE)
_ANCHOR = re.compile(r'<a id="([^"]+)">')


def headings(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield the level, the title and the anchor of each heading outside of fenced code."""
    seen: dict[str, int] = {}
    for marks, title in _HEADING.findall(_FENCED.sub("", text)):
        name = re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-")
        count = seen[name] = seen.get(name, -1) + 1
        yield len(marks), title, f"{name}-{count}" if count else name


def anchors(text: str) -> set[str]:
    """The anchors that a link to a page can name."""
    return {anchor for _, _, anchor in headings(text)} | set(_ANCHOR.findall(text))
