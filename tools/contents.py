"""Writes the contents at the top of the README and of long pages: `python -m tools.contents`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from evalstore.files.atomic_write import write_whole

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
README = ROOT / "README.md"
LONG = 150
"""Pages with more lines have contents."""
_BEGIN, _END = "<!-- made: contents -->\n", "<!-- end: contents -->\n\n"
_BLOCK = re.compile(re.escape(_BEGIN) + ".*?" + re.escape(_END), re.DOTALL)
_FENCED = re.compile(r"^(`{3,}|~{3,}).*?^\1$", re.DOTALL | re.MULTILINE)
_HEADING = re.compile(r"^(#{1,6}) (.+)$", re.MULTILINE)
_ANCHOR = re.compile(r'<a id="([^"]+)">')
_MANY = 20


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


def with_contents(text: str, *, is_brief: bool = False) -> str:
    """The page with its contents before the first section; a short page has none.

    Brief contents are one paragraph of the sections alone.
    """
    text = _BLOCK.sub("", text)
    start = re.search("^## ", _FENCED.sub(lambda match: " " * len(match[0]), text), re.MULTILINE)
    if start is None or text.count("\n") <= LONG:
        return text
    made = f"{_BEGIN}\n{_contents(text, is_brief=is_brief)}\n{_END}"
    return text[: start.start()] + made + text[start.start() :]


def _contents(text: str, *, is_brief: bool) -> str:
    """Links to the sections as a list; those of a page with many in one paragraph."""
    sections: list[list[str]] = []
    for level, title, anchor in headings(text):
        link = f"[{title}](#{anchor})"
        if level == 2:
            sections.append([link])
        elif level == 3 and sections:
            sections[-1].append(link)
    if is_brief:
        return " ·\n".join(section[0] for section in sections) + "\n"
    if len(sections) > _MANY and all(len(section) == 1 for section in sections):
        return ",\n".join(section[0] for section in sections) + "\n"
    return "".join(
        f"- {first}{': ' if parts else ''}{', '.join(parts)}\n" for first, *parts in sections
    )


def pages() -> Iterator[Path]:
    """Yield the pages that get contents if they are long."""
    yield README
    yield from sorted(DOCS.glob("**/*.md"))


def page_with_contents(page: Path) -> str:
    """The text of a page with its contents; those of the README are brief."""
    return with_contents(page.read_text(encoding="utf-8"), is_brief=page == README)


if __name__ == "__main__":
    for path in pages():
        after = page_with_contents(path)
        if after != path.read_text(encoding="utf-8"):
            write_whole(path, after.encode())
