"""The documents say what the program does."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from evalstore.operations.schemas import schema_text
from evalstore.tui.appearance import find_problems
from evalstore.workspace.json_schemas import SCHEMAS, file_name
from evalstore.workspace.settings import SETTING_NAMES, BrowserSettings, Settings
from evalstore.workspace.settings_reader import read_settings

PROJECT = Path(__file__).parent.parent.parent
WORDS = (
    "workspace", "store", "test file", "row", "case", "test version", "evaluation version",
    "prompt version", "model version", "tag", "special tag", "candidate", "evaluator", "question",
    "session", "check", "evaluation", "verdict", "plan", "run", "snapshot", "revision", "id",
)  # fmt: skip


def test_the_page_of_commands_is_what_their_help_says() -> None:
    made = subprocess.run(
        [sys.executable, PROJECT / "tools/cli_docs.py"], capture_output=True, text=True, check=True
    ).stdout
    page = (PROJECT / "docs/cli.md").read_text(encoding="utf-8")
    assert page == made, "run 'make docs'"


def test_the_tables_of_the_browser_are_its_keys() -> None:
    made = subprocess.run(
        [sys.executable, PROJECT / "tools/browser_docs.py", "--print"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    page = (PROJECT / "docs/browser.md").read_text(encoding="utf-8")
    assert page == made, "run 'make docs'"


@pytest.mark.parametrize("name", ["checks.md", "formats.md"])
def test_the_pages_of_checks_are_their_descriptions(name: str) -> None:
    made = subprocess.run(
        [sys.executable, PROJECT / "tools/check_docs.py", "--print", name],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    page = (PROJECT / "docs" / name).read_text(encoding="utf-8")
    assert page == made, "run 'make docs'"


def test_the_published_schemas_are_those_of_the_program() -> None:
    folder = PROJECT / "docs/schemas"
    assert {path.name for path in folder.iterdir()} == set(map(file_name, SCHEMAS))
    for kind in SCHEMAS:
        published = (folder / file_name(kind)).read_text(encoding="utf-8")
        assert published == schema_text(kind), "run 'make docs'"


def test_the_settings_for_editors_name_schemas_that_are_written() -> None:
    page = (PROJECT / "docs/editors.md").read_text(encoding="utf-8")
    settings = json.loads(page.partition("```json\n")[2].partition("```")[0])
    named = {Path(path).name: pattern for path, pattern in settings["yaml.schemas"].items()}
    yaml = set(SCHEMAS) - {"frontmatter", "checks", "prompt"}
    assert named.keys() == set(map(file_name, yaml))
    assert all(f"`{kind}`" in page for kind in SCHEMAS)


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


@pytest.mark.parametrize("word", WORDS)
def test_the_glossary_explains_every_word(word: str) -> None:
    glossary = (PROJECT / "docs/glossary.md").read_text(encoding="utf-8").lower()
    assert re.search(rf"^(\|\s*|#+ |\*\*)\**{word}\b", glossary, re.MULTILINE), word


@pytest.mark.parametrize("name", SETTING_NAMES)
def test_every_setting_is_described(name: str) -> None:
    assert f"`{name}`" in (PROJECT / "docs/formats.md").read_text(encoding="utf-8")


def test_setting_names_are_those_of_the_settings() -> None:
    assert len(SETTING_NAMES) == len(fields(Settings))


@pytest.mark.parametrize(
    "path",
    [*sorted(PROJECT.glob("docs/**/*.md")), PROJECT / "README.md"],
    ids=lambda path: path.relative_to(PROJECT).as_posix(),
)
def test_links_between_documents_lead_somewhere(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
        # `make docs` draws these pictures; test_screenshots.py compares their names.
        if "://" not in target and not target.startswith("images/screens/"):
            assert (path.parent / target).exists(), target
