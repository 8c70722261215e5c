"""Writes the contents at the top of the long pages of docs/: `python -m tools.contents`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from evalstore.files.atomic_write import write_whole

DOCS = Path(__file__).parent.parent / "docs"
LONG = 150
"""Pages with more lines have contents."""
_BEGIN, _END = "<!-- made: contents -->\n", "<!-- end: contents -->\n\n"
_BLOCK = re.compile(re.escape(_BEGIN) + ".*?" + re.escape(_END), re.DOTALL)
_FENCED = re.compile(r"^(`{3,}|~{3,}).*?^\1$", re.DOTALL | re.MULTILINE)
_HEADING = re.compile(r"^(#{1,6}) (.+)$", re.MULTILINE)
_ANCHOR = re.compile(r'<a id="([^"]+)">')
_MANY = 20
_LEFT_OUT = ("trust.md",)


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


def with_contents(text: str) -> str:
    """The page with its contents before the first section; a short page has none."""
    text = _BLOCK.sub("", text)
    start = re.search("^## ", _FENCED.sub(lambda match: " " * len(match[0]), text), re.MULTILINE)
    if start is None or text.count("\n") <= LONG:
        return text
    made = f"{_BEGIN}\n{_contents(text)}\n{_END}"
    return text[: start.start()] + made + text[start.start() :]


def _contents(text: str) -> str:
    """Links to the sections as a list; those of a page with very many in one paragraph."""
    sections: list[list[str]] = []
    for level, title, anchor in headings(text):
        link = f"[{title}](#{anchor})"
        if level == 2:
            sections.append([link])
        elif level == 3 and sections:
            sections[-1].append(link)
    if len(sections) > _MANY and all(len(section) == 1 for section in sections):
        return ",\n".join(section[0] for section in sections) + "\n"
    return "".join(
        f"- {first}{': ' if parts else ''}{', '.join(parts)}\n" for first, *parts in sections
    )


def pages() -> Iterator[Path]:
    """Yield the pages that get contents."""
    yield from (path for path in sorted(DOCS.glob("**/*.md")) if path.name not in _LEFT_OUT)


if __name__ == "__main__":
    for page in pages():
        before = page.read_text(encoding="utf-8")
        after = with_contents(before)
        if after != before:
            write_whole(page, after.encode())
