"""The source of the docs site is complete: every page is in its navigation, every link leads on."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tools.example_report import PAGE, add_report
from tools.headings import anchors
from tools.site_source import PAGES, PROJECT, navigation, slug, write

FENCED = re.compile(r"^(`{3,}|~{3,}).*?^\1$", re.DOTALL | re.MULTILINE)


def test_every_page_is_in_the_navigation_once() -> None:
    listed = [path for pages in navigation().values() for path in pages.values()]
    pages = [path.relative_to(PROJECT).as_posix() for path in PROJECT.glob("docs/**/*.md")]
    assert sorted(listed) == sorted([*PAGES, *pages])


def test_every_link_of_the_site_leads_to_a_page_or_file_of_it(tmp_path: Path) -> None:
    write(tmp_path)
    source = tmp_path / "source"
    wrong = [
        f"{page.relative_to(source)}: {target}#{anchor}"
        for page in source.rglob("*.md")
        for target, anchor in links_of(page)
        if not leads_on(page.parent / target if target else page, anchor)
    ]
    assert wrong == []


def links_of(page: Path) -> list[tuple[str, str]]:
    """The relative links of a page with their anchors."""
    text = FENCED.sub("", page.read_text(encoding="utf-8"))
    links = re.findall(r"\]\(([^)#\s]*)(?:#([^)]*))?\)", text)
    return [(target, anchor) for target, anchor in links if "://" not in target]


def leads_on(linked: Path, anchor: str) -> bool:
    """Whether a file is there, with this anchor."""
    if not linked.is_file():
        return False
    return not anchor or anchor in anchors(linked.read_text(encoding="utf-8"))


def test_a_link_to_a_file_that_the_site_does_not_have_is_its_words(tmp_path: Path) -> None:
    assert "](../example" in (PROJECT / "docs/failures.md").read_text(encoding="utf-8")
    write(tmp_path)
    assert "](../example" not in (tmp_path / "source/docs/failures.md").read_text(encoding="utf-8")


def test_the_page_about_reports_links_to_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = tmp_path / "made.html"
    made.write_text("a report")
    monkeypatch.setattr("tools.example_report.make_report", lambda _folder: made)
    write(tmp_path)
    add_report(tmp_path)
    page = tmp_path / "source" / PAGE
    [report] = [page.parent / target for target, _ in links_of(page) if target.endswith(".html")]
    assert report.read_text() == "a report"


def test_the_settings_name_every_section(tmp_path: Path) -> None:
    write(tmp_path)
    settings = json.loads((tmp_path / "mkdocs.yml").read_text(encoding="utf-8"))
    assert [name for section in settings["nav"] for name in section] == list(navigation())
    assert (tmp_path / settings["INHERIT"]).resolve() == PROJECT / "mkdocs.yml"


def test_an_anchor_is_that_of_the_links() -> None:
    assert slug("Where `x` is, and why", "-") == "where-x-is-and-why"


def test_the_site_asks_no_other_host_for_fonts() -> None:
    assert "\n  font: false" in (PROJECT / "mkdocs.yml").read_text(encoding="utf-8")
