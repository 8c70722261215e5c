"""The help lists commands by purpose and is readable in a terminal of 80 columns."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from evalstore import __version__
from evalstore.interfaces.cli import output
from evalstore.interfaces.cli.main import commands, hoist, main
from evalstore.interfaces.cli.options import EXAMPLES, GROUPS

if TYPE_CHECKING:
    from tests.interfaces.cli.conftest import Evalstore

NAMES = [name for names in GROUPS.values() for name in names]
PROGRAM: Any = commands()
VISIBLE = {name for name, command in PROGRAM.commands.items() if not command.hidden}


def help_of(name: str, *, verbose: bool = False) -> str:
    """What `evalstore NAME --help` prints in 80 columns; an empty name is `evalstore` itself."""
    output.verbose = verbose
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
    shown = (parameter for parameter in command.params if not getattr(parameter, "hidden", False))
    yield from (parameter.help for parameter in shown if parameter.help)


def one_line(text: str) -> str:
    return " ".join(text.split())


def test_every_command_is_in_one_group() -> None:
    assert sorted(NAMES) == sorted(VISIBLE)


def test_commands_are_listed_in_groups_that_begin_with_the_first_steps() -> None:
    page = help_of("")
    titles = re.findall(r"^(\w+):$", page, re.MULTILINE)
    assert titles == ["Options", "Start", "Everyday", "History", "Sharing", "Upkeep"]
    listed = page.partition("\nStart:\n")[2]
    assert re.findall(r"^  (\w+)  ", listed, re.MULTILINE) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_the_arguments_of_a_command_are_not_in_small_letters(name: str) -> None:
    usage = help_of(name).partition("\n\n")[0].partition("[OPTIONS]")[2]
    words = re.findall(r"[A-Za-z]+(?:\|\w+)*", usage)  # choices are in small letters
    assert all(word.isupper() or "|" in word or word == "env" for word in words)
    assert "[[" not in usage


@pytest.mark.parametrize("name", NAMES)
def test_the_summary_of_a_command_fits_on_its_line(name: str) -> None:
    summary = PROGRAM.commands[name].help.partition("\n\n")[0]
    assert re.search(rf"^  {name} +{re.escape(one_line(summary))}$", help_of(""), re.MULTILINE)
    assert len(one_line(summary)) <= 55


@pytest.mark.parametrize("name", NAMES)
def test_the_help_of_a_command_ends_with_two_examples_that_it_accepts(
    name: str,
) -> None:
    section = help_of(name).partition("\nExamples:\n")[2].splitlines()
    assert len(section) == len(EXAMPLES[name]) == 2
    for example in map(str.strip, section):
        words = shlex.split(re.sub(r'^eval "\$\((.*)\)"$', r"\1", example.partition(" > ")[0]))
        assert words[:2] == ["evalstore", name]
        arguments = hoist(words[1:])
        arguments = arguments[arguments.index(name) + 1 :]
        PROGRAM.commands[name].make_context(name, arguments)


@pytest.mark.parametrize("name", NAMES)
def test_no_help_shows_types(name: str) -> None:
    assert not re.search(r"<(str|list\[|int|float|path)", help_of(name), re.IGNORECASE)


def test_the_version_has_an_option_as_elsewhere(evalstore: Evalstore) -> None:
    assert evalstore("--version").stdout == f"evalstore {__version__}\n"


@pytest.mark.parametrize("name", ["", *NAMES])
def test_no_help_is_cut_at_80_columns(name: str) -> None:
    page = help_of(name, verbose=True)
    rest = page.partition("\n\n")[2]
    assert not re.search(r"(\.\.\.|…)$", rest, re.MULTILINE)
    assert all(len(line) <= 80 for line in page.splitlines())
    for text in texts_of(name):
        assert one_line(text) in one_line(rest), "a word is cut, or the text is not whole"


def test_few_commands_are_to_be_known() -> None:
    assert len(NAMES) <= 25


@pytest.mark.parametrize("name", NAMES)
def test_the_help_of_a_command_fits_on_a_screen_of_60_lines(name: str) -> None:
    assert len(help_of(name).splitlines()) <= 60


@pytest.mark.parametrize("name", ["status", "run"])
def test_a_long_help_only_names_advanced_options_which_v_describes(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([name, "--help"]) == 0
    short, _, rest = capsys.readouterr().out.partition("\nAdvanced (described with -v):\n")
    named = re.findall(r"--[a-z-]+", rest.partition("\n\n")[0])
    assert main([name, "--help", "-v"]) == 0
    long = capsys.readouterr().out
    for parameter in PROGRAM.commands[name].params:
        if parameter.param_type_name == "option" and not parameter.hidden:
            described = rf"(?m)^  (-., )?(--lf, )?{parameter.opts[-1]}\b"
            assert re.search(described, long)
            assert bool(re.search(described, short)) == (parameter.opts[-1] not in named)
    assert {"--seed", "--shard", "--max-age"} <= {*named}


@pytest.mark.parametrize("name", ["status", "run"])
def test_the_help_of_commands_with_many_options_has_sections(name: str) -> None:
    titles = re.findall(r"^([A-Z][\w ()-]+):$", help_of(name), re.MULTILINE)
    sections = ["Arguments", "Models", "Selection", "Stored results"]
    sections += ["Limits", "Gate", "Execution"] * (name != "status") + ["Output"]
    sections += ["Advanced (described with -v)", "Options", "Examples"]
    assert titles == sections
    options = help_of(name).partition("\nOptions:\n")[2].partition("\nExamples:\n")[0]
    listed = re.findall(r"^  (-.*?)  ", options, re.MULTILINE)
    assert [names.split(", ")[-1] for names in listed] == ["--help"]


@pytest.mark.parametrize("name", ["", *NAMES])
def test_no_help_lists_environment_variables_but_the_documentation_does(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    assert main([*([name] if name else []), "--help"]) == 0
    assert "env var" not in capsys.readouterr().out
    command = PROGRAM.commands[name] if name else PROGRAM
    text = (Path(__file__).parents[3] / "docs/cli.md").read_text()
    table = text.partition("## Environment variables")[2]
    for parameter in command.params:
        if parameter.param_type_name == "option" and not parameter.hidden:
            prefix = f"EVALSTORE_{name.upper()}".rstrip("_")
            variable = parameter.envvar or f"{prefix}_{parameter.name.upper()}"
            option = parameter.opts[-1]
            follows = f"{prefix}_{option.lstrip('-').upper().replace('-', '_')}"
            row = f"| `{f'{name} {option}'.strip()}` | `{variable}` |"
            assert variable in {follows, f"{follows}S", f"{follows}_FORMAT"} or row in table


def test_the_documented_variables_are_read(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVALSTORE_STATUS_TAGS", "nowhere")
    assert main(["status"]) == 5
    monkeypatch.setenv("EVALSTORE_STATUS_TAGS", "weather")
    assert main(["status"]) == 0
