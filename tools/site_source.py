"""Writes the source of the docs site to a folder: `python -m tools.site_source build`.

The pages keep their places in the repository, so their links stay as they are. The navigation is
made of the sections of docs/README.md, which names every page.
"""

from __future__ import annotations

import json
import os.path
import re
import shutil
import sys
from collections.abc import Collection
from pathlib import Path

from evalstore.files.atomic_write import write_whole
from tools.headings import headings

PROJECT = Path(__file__).parent.parent
INDEX = "docs/README.md"
PAGES = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
"""The pages beside `docs`."""
_LINK = re.compile(r"\[([^\]]+)\]\(([^)#\s]+)")
_SITE_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)#\s]+)\)")
_OUTPUT = re.compile(r'(?<=<span class="go">).*?(?=</span>)')
_COLOURED = re.compile(
    r"\b(?:(pass|passed|fixed)|(fail|failed|broke|error)|(pending|undecided))\b(?! by)"
)
"""The words that a terminal shows in green, red and yellow."""
_FENCED = re.compile(r"(^(?:```|~~~)(?s:.*?)^(?:```|~~~)`*~*$)", re.MULTILINE)

Navigation = dict[str, dict[str, str]]
"""Section -> title of a page -> its path in the repository."""


def navigation() -> Navigation:
    """Return the pages by section, each where the index names it first."""
    text = (PROJECT / INDEX).read_text(encoding="utf-8")
    seen: set[str] = set()
    sections: Navigation = {"evalstore": {"Overview": "README.md", "All pages": INDEX}}
    for part in text.split("\n## ")[1:]:
        title, _, body = part.partition("\n")
        pages: dict[str, str] = {}
        for name, link in _LINK.findall(body):
            path = os.path.normpath(f"docs/{link}")
            if path.endswith(".md") and path not in seen | {"README.md"}:
                seen.add(path)
                pages[name[0].upper() + name[1:]] = path
        sections[title] = pages
    return sections


def slug(title: str, _separator: str) -> str:
    """Return the anchor of a heading as the links in the pages have it."""
    [(_, _, anchor)] = headings(f"# {title}")
    return anchor


def on_page_content(html: str, **_: object) -> str:
    """Return a page with the colours of verdicts in the output of commands; mkdocs calls it."""

    def paint(match: re.Match[str]) -> str:
        name = ("pass", "fail", "pending")[(match.lastindex or 1) - 1]
        return f'<span class="{name}">{match[0]}</span>'

    return _OUTPUT.sub(lambda line: _COLOURED.sub(paint, line[0]), html)


def write(folder: Path) -> None:
    """Write the pages below `folder/source`, and the settings of mkdocs to `folder/mkdocs.yml`."""
    source = folder / "source"
    shutil.rmtree(source, ignore_errors=True)
    names = {*PAGES, *(_name(path) for path in PROJECT.glob("docs/**/*") if path.is_file())}
    for name in sorted(names):
        target = source / name
        target.parent.mkdir(parents=True, exist_ok=True)
        content = (PROJECT / name).read_bytes()
        if name.endswith(".md"):
            content = _site_links(name, content, names)
        write_whole(target, content, durable=False)
    settings = {
        "INHERIT": os.path.relpath(PROJECT / "mkdocs.yml", folder),
        "docs_dir": "source",
        "hooks": [os.path.relpath(__file__, folder)],
        "site_dir": "site",
        "nav": [
            {section: [{title: path} for title, path in pages.items()]}
            for section, pages in navigation().items()
        ],
    }
    # JSON is YAML.
    write_whole(folder / "mkdocs.yml", json.dumps(settings, indent=1).encode())


def _name(path: Path) -> str:
    return path.relative_to(PROJECT).as_posix()


def _site_links(page: str, content: bytes, names: Collection[str]) -> bytes:
    """Return a page; a link to a file that is not among the names is its words alone."""

    def replace(match: re.Match[str]) -> str:
        words, target = match.groups()
        linked = os.path.normpath(Path(page).parent / target)
        return match[0] if "://" in target or linked in names else words

    parts = _FENCED.split(content.decode())
    return "".join(
        part if number % 2 else _SITE_LINK.sub(replace, part) for number, part in enumerate(parts)
    ).encode()


if __name__ == "__main__":
    write(Path(sys.argv[1]))
