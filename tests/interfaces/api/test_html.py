"""Runs, reports, comparisons and answers as notebooks show them: inert, on light and on dark."""

from __future__ import annotations

import json
from html.parser import HTMLParser

import pytest
from textual.color import Color

from evalstore import Workspace, init
from evalstore.core.notebook_tables import (
    COLOURS,
    OTHER_COLOUR,
    Html,
    block,
    line,
    long_text,
    table,
    word,
)
from evalstore.interfaces.tui.text_view import TEXT_CONTRAST, contrast
from tests.builders import tree

BAD = "<script>alert(1)</script><img src=x onerror=alert(2)>&amp;\x1b[31m\u202e\"'"
TEST = """\
---
tags: ["<b>tag</b>"]
---

# 👤

Say <i>hello</i> in x.

---

~~~checks
- contains: "<u>Bonjour</u>"
~~~
"""


class Tags(HTMLParser):
    """The tags and attributes of a page, and its texts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.styles: list[str] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.styles += [value or "" for name, value in attrs if name == "style"]
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += f"{data}\n"


ALLOWED = {"div", "p", "strong", "span", "table", "thead", "tbody", "tr", "th", "td"}


def read(value: object) -> Tags:
    page = Tags(value._repr_html_())  # type: ignore[attr-defined]
    assert page.tags <= ALLOWED
    assert page.attributes <= {"style", "scope"}
    assert "url(" not in "".join(page.styles)
    assert page.open == []
    return page


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """One case fails, with markup in all its texts; then it passes."""
    workspace = init(tmp_path_factory.mktemp("html"))
    (workspace.root / "tests/hello.md").unlink()
    model = f"id: scripted/parrot\nprovider: scripted\nresponses: [{{answer: {json.dumps(BAD)}}}]\n"
    tree(workspace.root, {"models/parrot.yaml": model, "tests/bad.md": TEST})
    return workspace


def test_values_are_shown_with_all_texts_escaped(workspace: Workspace) -> None:
    report = workspace.run(message="<script>1</script>")
    page = read(report)
    assert f"run {report.run[:8]}\n complete, gate failed" in page.text
    assert "1 new answer, 1 new verdict" in page.text
    assert "<u>Bonjour</u>" in page.text

    (run,) = workspace.runs()
    assert "<script>1</script>" in read(run).text

    (result,) = workspace.results()
    page = read(workspace.answer(result))
    shown = BAD.replace("\x1b", "\\x1b").replace("\u202e", "\\u202e")
    assert shown in page.text
    assert "Say <i>hello</i> in x." in page.text
    assert "\x1b" not in page.text

    tree(workspace.root, {"tests/bad.md": TEST.replace("<u>Bonjour</u>", "<script>")})
    workspace.run()
    page = read(workspace.diff("@~1", "@"))
    assert "0 broke, 1 fixed, 0 changed, 0 new, 0 gone, 0 unchanged" in page.text
    assert "checks changed" in page.text
    assert "pass rate 0.0% → 100.0%" in page.text


@pytest.mark.parametrize("colour", [*dict.fromkeys(COLOURS.values()), OTHER_COLOUR])
def test_white_words_can_be_read_on_their_colours(colour: str) -> None:
    assert contrast(Color.parse("#ffffff"), Color.parse(colour)) >= TEXT_CONTRAST


def test_nothing_but_words_on_a_background_has_a_colour_of_its_own() -> None:
    page = Tags(block(line("a"), table(["b"], [("c",)]), long_text("d")))
    assert all("color:#" not in style for style in page.styles)
    assert "color:#ffffff;background:" in word("pass").markup


def test_long_tables_and_texts_are_cut_and_say_so() -> None:
    many = table(["n"], [(str(number),) for number in range(25)])
    assert many.markup.count("<tr>") == 21
    assert "… and 5 more" in many.markup
    text = long_text("x" * 1_000_000).markup
    assert len(text) < 21_000
    assert "… and 980,000 more characters" in text
    assert table(["n"], []) == Html("")
