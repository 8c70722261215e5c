"""The help lists commands by purpose and is readable in a terminal of 80 columns."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from evalstore.cli.app import GROUPS
from evalstore.cli.main import commands

NAMES = [name for names in GROUPS.values() for name in names]
PROGRAM: Any = commands()
VISIBLE = {name for name, command in PROGRAM.commands.items() if not command.hidden}


def help_of(name: str) -> str:
    """What `evalstore NAME --help` prints in 80 columns; an empty name is `evalstore` itself."""
    group = PROGRAM
    command = group.commands[name] if name else group
    width = {"max_content_width": 80, "terminal_width": 80}
    with command.make_context(name, [], resilient_parsing=True, **width) as context:
        return str(command.get_help(context))


def texts_of(name: str) -> Iterator[str]:
    """Every paragraph and every text of an option of a command."""
    group = PROGRAM
    command = group.commands[name] if name else group
    yield from (command.help or "").split("\n\n")
    yield from (parameter.help for parameter in command.params if parameter.help)


def one_line(text: str) -> str:
    return " ".join(text.split())


def test_every_command_is_in_one_group() -> None:
    assert sorted(NAMES) == sorted(VISIBLE)


def test_commands_are_listed_in_groups_that_begin_with_the_first_steps() -> None:
    page = help_of("")
    titles = re.findall(r"^(\w+) commands:$", page, re.MULTILINE)
    assert titles == ["Start", "Everyday", "History", "Reference", "Upkeep"]
    listed = page.partition("Start commands:")[2]
    assert re.findall(r"^  (\w+)  ", listed, re.MULTILINE) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_the_summary_of_a_command_fits_on_its_line(name: str) -> None:
    summary = PROGRAM.commands[name].help.partition("\n\n")[0]
    assert re.search(rf"^  {name} +{re.escape(one_line(summary))}$", help_of(""), re.MULTILINE)


@pytest.mark.parametrize("name", ["", *NAMES])
def test_no_help_is_cut_at_80_columns(name: str) -> None:
    page = help_of(name)
    rest = page.partition("\n\n")[2]
    assert not re.search(r"(\.\.\.|…)$", rest, re.MULTILINE)
    assert all(len(line) <= 80 for line in page.splitlines())
    for text in texts_of(name):
        assert one_line(text) in one_line(rest), "a word is cut, or the text is not whole"
