"""Commands that the documents name exist, with their options, also where they are not run."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from evalstore.interfaces.cli import main as cli

ROOT = Path(__file__).parents[2]
PAGES = [
    path
    for path in [ROOT / "README.md", ROOT / "example/README.md", *sorted(ROOT.glob("docs/**/*.md"))]
    if path.name != "cli.md"
]
FENCED = re.compile(r"^ *(`{3,})(?:sh|console|yaml|text)\n(.*?)^ *\1$", re.DOTALL | re.MULTILINE)
INLINE = re.compile(r"`(evalstore [^`\n]+)`")
END = {"|", "&&", "||", ">", ">>", ";", "2>", "#"}


def commands_of(text: str) -> Iterator[str]:
    """The lines of a page that call evalstore."""
    for _, block in FENCED.findall(text):
        for line in block.replace("\\\n", " ").splitlines():
            if call := re.search(r"(?:^|\$ |run: |- |&& |\| (?:xargs )?)(evalstore [^|]*)", line):
                yield call[1]
    yield from INLINE.findall(text)


def words_of(command: str) -> list[str]:
    """The words of a call, without the name of the program and without what follows it."""
    try:
        words = shlex.split(command, comments=True)[1:]
    except ValueError:  # a quotation that goes on in another line, or with what is behind a pipe
        words = command.split()[1:]
    end = next((place for place, word in enumerate(words) if word in END), len(words))
    return words[:end]


def problems_in(command: str) -> Iterator[str]:
    """What a call names that the program does not have."""
    group: Any = cli.commands()
    shared = {name for parameter in group.params for name in parameter.opts}
    words = words_of(command)
    values = {
        "-C",
        "-c",
        "--config",
        "--store",
        "--set",
        "--color",
        "--progress",
        "--show-completion",
    }
    while words and words[0].startswith("-"):
        words = words[2 if words[0] in values else 1 :]
    if not words or not re.fullmatch("[a-z]+", words[0]):
        return
    if words[0] not in group.commands:
        yield f"unknown command '{words[0]}'"
        return
    names = {name for parameter in group.commands[words[0]].params for name in parameter.opts}
    for word in words[1:]:
        option = word.partition("=")[0]
        if re.fullmatch("--[a-z][a-z-]*|-[a-zA-Z]", option) and option not in {
            *names, *shared, "--help", "-h",
        }:  # fmt: skip
            yield f"'{words[0]}' has no option '{option}'"


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_the_commands_of_a_page_exist(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert [
        f"{command}: {problem}" for command in commands_of(text) for problem in problems_in(command)
    ] == []


@pytest.mark.parametrize(
    "command", ["evalstore runn", "evalstore run --fail-of none", "evalstore -C x diff --exitcode"]
)
def test_a_command_that_does_not_exist_is_found(command: str) -> None:
    assert list(problems_in(command))


def test_the_file_for_gitlab_is_yaml_with_the_commands_of_a_job() -> None:
    page = (ROOT / "docs/recipes/ci.md").read_text(encoding="utf-8")
    text = page.partition("```yaml\n# .gitlab-ci.yml\n")[2].partition("```")[0]
    lines = str(yaml.safe_load(text)["evals"])
    for part in ("evalstore check", "--fail-on regression", "--max-cost", ".evalstore"):
        assert part in lines
