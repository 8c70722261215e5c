"""The documents say what the program does."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from evalstore.interfaces.tui.appearance import find_problems
from evalstore.workspace.schemas import TITLES, schema_file_name, schema_text
from evalstore.workspace.settings.settings import (
    SETTING_NAMES,
    BrowserSettings,
    Settings,
    read_settings,
)
from tests.project.page_sessions import BLOCK
from tests.project.test_wording import read_module
from tools import browser_docs, check_docs
from tools.browser_docs import IN_ORDER_OF_USE, screens_in_order
from tools.headings import DOCS, anchors, headings

PROJECT = Path(__file__).parent.parent.parent
PACKAGE = PROJECT / "evalstore"
WORDS = (
    "workspace", "store", "test file", "row", "case", "test version", "judging version",
    "prompt version", "model version", "tag", "special tag", "candidate", "judge",
    "question", "answer", "check", "verdict", "plan", "run", "snapshot", "revision", "id",
)  # fmt: skip


def test_the_page_of_commands_is_what_their_help_says() -> None:
    made = subprocess.run(  # calls of commands before it could change the help
        [sys.executable, "-m", "tools.cli_docs"],
        capture_output=True,
        text=True,
        check=True,
        cwd=PROJECT,
    ).stdout
    page = (PROJECT / "docs/cli.md").read_text(encoding="utf-8")
    assert page == made, "run 'make docs'"


def test_the_tables_of_the_browser_are_its_keys() -> None:
    page = (PROJECT / "docs/browser.md").read_text(encoding="utf-8")
    assert page == browser_docs.made(page), "run 'make docs'"


def test_the_screens_of_the_browsers_page_stand_in_the_order_of_use() -> None:
    titles = [page.TITLE for page in screens_in_order()]
    page = (PROJECT / "docs/browser.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([^|`]+) \|", page.partition("made: screens")[2], re.MULTILINE)
    assert titles == list(IN_ORDER_OF_USE)
    assert [row for row in rows if row in titles] == titles
    assert titles[:3] == ["Runs", "Cases", "Answer"]


def test_the_page_of_checks_is_their_descriptions() -> None:
    page = (PROJECT / "docs/checks.md").read_text(encoding="utf-8")
    assert page == check_docs.checks_page(), "run 'make docs'"


def test_the_published_schemas_are_those_of_the_program() -> None:
    folder = PROJECT / "docs/schemas"
    assert {path.name for path in folder.iterdir()} == set(map(schema_file_name, TITLES))
    for kind in TITLES:
        published = (folder / schema_file_name(kind)).read_text(encoding="utf-8")
        assert published == schema_text(kind), "run 'make docs'"


def test_the_settings_for_editors_name_schemas_that_are_written() -> None:
    page = (PROJECT / "docs/editors.md").read_text(encoding="utf-8")
    settings = json.loads(page.partition("```json\n")[2].partition("```")[0])
    named = {Path(path).name: pattern for path, pattern in settings["yaml.schemas"].items()}
    yaml = set(TITLES) - {"frontmatter", "checks", "prompt"}
    assert named.keys() == set(map(schema_file_name, yaml))
    assert all(f"`{kind}`" in page for kind in TITLES)


def test_the_keys_of_the_browsers_page_can_be_given() -> None:
    page = (PROJECT / "docs/browser.md").read_text(encoding="utf-8")
    text = page.partition("```yaml\n")[2].partition("```")[0]
    browser = read_settings(text).browser
    assert browser.theme == "nord"
    assert list(find_problems("evalstore.yaml", browser)) == []
    commands = re.findall(r"--key (?:\"([^\"]+)\"|(\S+))", page)
    own = dict("".join(command).split("=") for command in commands)
    assert own == {"quit": "Q", "help": "H,f1"}
    assert list(find_problems("", BrowserSettings(), BrowserSettings("gruvbox", own))) == []


def test_the_page_of_judges_has_the_default_prompt() -> None:
    page = (PROJECT / "docs/formats/judges.md").read_text(encoding="utf-8")
    prompt = (PACKAGE / "prompts/_evaluator_default.md").read_text(encoding="utf-8")
    assert f"```text\n{prompt}```\n" in page.partition("### The default prompt")[2]


@pytest.mark.parametrize("word", WORDS)
def test_the_glossary_explains_every_word(word: str) -> None:
    glossary = (PROJECT / "docs/glossary.md").read_text(encoding="utf-8").lower()
    assert re.search(rf"^(\|\s*|#+ |\*\*)\**{word}\b", glossary, re.MULTILINE), word


@pytest.mark.parametrize("name", SETTING_NAMES)
def test_every_setting_is_described(name: str) -> None:
    assert f"`{name}`" in (PROJECT / "docs/formats/workspace.md").read_text(encoding="utf-8")


def test_setting_names_are_those_of_the_settings() -> None:
    assert len(SETTING_NAMES) == len(fields(Settings))


@pytest.mark.parametrize(
    "path",
    [*sorted(PROJECT.glob("docs/**/*.md")), *sorted(PROJECT.glob("*.md"))],
    ids=lambda path: path.relative_to(PROJECT).as_posix(),
)
def test_links_between_documents_lead_somewhere(path: Path) -> None:
    text = re.sub(r"^(`{3,}|~{3,}).*?^\1$", "", path.read_text(encoding="utf-8"), flags=re.S | re.M)
    for target, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)]*))?\)", text):
        if "://" not in target:
            linked = path.parent / target if target else path
            assert linked.exists(), target
            if anchor:
                assert anchor in anchors(linked.read_text(encoding="utf-8")), f"{target}#{anchor}"


def test_anchors_are_those_of_the_headings_outside_of_code() -> None:
    page = "# A\n\n## B `x`\n\n```text\n## no\n```\n\n### … C\n\n## A\n"
    assert list(headings(page)) == [
        (1, "A", "a"),
        (2, "B `x`", "b-x"),
        (3, "… C", "-c"),
        (2, "A", "a-1"),
    ]


@pytest.mark.parametrize("head", ["| exit code | meaning |", "| you edit | asked again |"])
def test_a_table_that_many_pages_need_stands_in_one_place(head: str) -> None:
    every = [*PROJECT.glob("docs/**/*.md"), PROJECT / "README.md", PROJECT / "example/README.md"]
    first = head.rpartition("|")[0].split("|")[1]
    holders = [path.name for path in every if f"\n|{first}|" in path.read_text(encoding="utf-8")]
    assert len(holders) == 1


def test_the_index_names_every_page() -> None:
    index = (DOCS / "README.md").read_text(encoding="utf-8")
    linked = set(re.findall(r"\]\(([^)#]+)", index))
    every = {path.relative_to(DOCS).as_posix() for path in DOCS.glob("**/*.md")} - {"README.md"}
    assert every <= linked


def test_the_errors_of_the_page_of_troubles_are_those_of_the_program() -> None:
    page = (DOCS / "troubleshooting.md").read_text(encoding="utf-8")
    headings = re.findall(r"^### (.*`.*)$", page, re.MULTILINE)
    quoted = [text for heading in headings for text in re.findall("`([^`]+)`", heading)]
    quoted += re.findall(r"^\| `([^`]*…[^`]*)`", page, re.MULTILINE)
    source = "\n".join(text for path in PACKAGE.rglob("*.py") for text in read_module(path).texts)
    source += "\n".join(session for _, _, session in BLOCK.findall(page))
    fragments = [part.strip() for text in quoted for part in text.split("…") if part.strip()]
    assert len(fragments) > 15
    assert [fragment for fragment in fragments if fragment not in source] == []


def test_the_figures_of_the_page_about_other_tools_are_those_of_a_page_that_is_run() -> None:
    page = (DOCS / "why-not.md").read_text(encoding="utf-8")
    figures = re.search(r"leads to (\d+) verdicts and no question,\s+and (\d+)\s+answers", page)
    assert figures
    run = (DOCS / "scripting.md").read_text(encoding="utf-8")
    assert f'{{"ask":0,"judge":{figures[1]},"reuse":{figures[2]}}}' in run
