"""Translates typer's errors about the command line into our own: an error and a hint."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import typer
from typer.exceptions import TyperException

from evalstore.core.errors import EvalstoreError
from evalstore.interfaces.cli.option_values import is_set

if TYPE_CHECKING:
    from evalstore.planning.options import Location

_WRONG_CHOICE = re.compile(r"(?:Value error, )?'(?P<value>.*)' is not one of (?P<names>'.*')\.?$")
_RULES: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"Input should be a valid integer\b.*"), "must be a whole number"),
    (re.compile(r"Input should be a valid number\b.*"), "must be a number"),
    (re.compile(r"Input should be a valid boolean\b.*"), "must be true or false"),
    (re.compile(r"Input should be greater than or equal to (\S+)"), r"must be at least \1"),
    (re.compile(r"Input should be less than or equal to (\S+)"), r"must be at most \1"),
    (re.compile(r"Input should be greater than (\S+)"), r"must be more than \1"),
    (re.compile(r"Input should be less than (\S+)"), r"must be less than \1"),
    (re.compile(r"Input should be (.+)"), r"must be \1"),
)
"""The messages of pydantic about a value, and ours."""

GONE = {
    "bundle": "push FILE.bundle', 'pull FILE.bundle' and 'fsck --remote FILE.bundle",
    "completion": "--show-completion SHELL",
    "explain": "ls checks NAME",
    "fetch": "pull --dry-run",
    "judge": "run --judge-only",
    "mcp": "serve --mcp",
    "merge": "pull FILE",
    "new": "init FILE.md",
    "schema": "check --schema",
    "tui": "view",
    "version": "--version",
}
"""The commands that are gone, and what replaces each."""


def explain_usage(error: TyperException, context: Any = None) -> EvalstoreError:
    """Convert the exception for a wrong option, argument or value of a command."""
    context = context or getattr(error, "ctx", None)
    parameter: Any = getattr(error, "param", None)
    option = getattr(error, "option_name", None)
    if parameter is not None and not error.message:
        return EvalstoreError(f"{_name(parameter)} is missing", hint=_usage(context))
    if isinstance(error, typer.BadParameter):
        return _explain_value(error.message, parameter, context)
    if option is not None and hasattr(error, "possibilities"):
        return EvalstoreError(f"unknown option '{option}'", hint=_nearest_option(option, context))
    if option is not None:
        return _explain_option(option, error.message, context)
    extra = re.fullmatch(r"Got unexpected extra arguments? ?(?:\(s\) )?\((.*)\)", error.message)
    if extra:
        return EvalstoreError(f"unexpected argument '{extra[1]}'", hint=_usage(context))
    return EvalstoreError(_plain(error.message), hint=_usage(context))


def unknown_command(name: str, known: Iterable[str]) -> EvalstoreError:
    """Return the error for a command that does not exist."""
    from evalstore.files.fields import nearest

    if name in GONE:
        return EvalstoreError(f"'evalstore {name}' is now 'evalstore {GONE[name]}'")
    hint = nearest(name, known) or "'evalstore --help' lists the commands"
    return EvalstoreError(f"unknown command '{name}'", hint=hint)


def hint_on_file(location: Location, text: str, arguments: Sequence[str]) -> str | None:
    """Return a hint for a test file, also misspelt, in the place of a revision; None if it is none.

    `arguments` are those of the command.
    """
    from evalstore.files.fields import nearest_file
    from evalstore.planning.open_project import open_workspace

    if PurePath(text).suffix not in ("", ".md"):
        return None
    try:
        files = open_workspace(location).find_files("tests")
    except EvalstoreError:
        return None
    is_path = "/" in text or text.endswith(".md")
    meant = nearest_file(text, files, cutoff=0.6 if is_path else 0.8)
    if meant is None:
        return None
    if {"diff", "show"} & {*arguments}:
        return f"did you mean '{meant}'?"
    if "stats" in arguments:
        return "write a run, such as @; 'evalstore stats --by file' has a row for each test file"
    return f"write a run, such as @; 'evalstore show {meant}' shows the results of the test file"


def _explain_value(message: str, parameter: Any, context: Any) -> EvalstoreError:
    from evalstore.files.fields import suggest

    place = "" if parameter is None else f"{_source(parameter, context)}: "
    choice = _WRONG_CHOICE.match(message)
    if choice:
        names = re.findall(r"'([^']*)'", choice["names"])
        suffix = choice["value"].rpartition(".")[2]
        hint = suggest(choice["value"], names, "values")
        if parameter is not None and "." in choice["value"] and suffix in names:
            hint = f"write '{parameter.opts[0]} {suffix} > {choice['value']}'"
        return EvalstoreError(f"{place}'{choice['value']}' is not a valid value", hint=hint)
    for pattern, text in _RULES:
        if pattern.match(message):
            return EvalstoreError(place + pattern.sub(text, message))
    return EvalstoreError(place + _plain(message))


def _explain_option(option: str, message: str, context: Any) -> EvalstoreError:
    parameter = next((p for p in _options(context) if option in p.opts), None)
    if "does not take a value" in message:
        return EvalstoreError(f"'{option}' takes no value", hint=f"write '{option}' alone")
    metavar = getattr(parameter, "metavar", None)
    hint = f"write '{option} {metavar}'" if metavar else _usage(context)
    return EvalstoreError(f"'{option}' needs a value", hint=hint)


def _nearest_option(option: str, context: Any) -> str:
    from evalstore.files.fields import nearest

    if option[1:].isdigit() and any("-n" in p.opts and not p.is_flag for p in _options(context)):
        return f"write '-n N', such as '-n {option[1:]}'"
    names = {name for parameter in _options(context) for name in parameter.opts}
    hint = nearest(option, names | {"--help"}, cutoff=0.7)
    path = context.command_path if context is not None else "evalstore"
    commands = getattr(getattr(context, "command", None), "commands", {})
    if any(option in p.opts for command in commands.values() for p in command.params):
        return f"write '{option}' after the command"
    return hint or f"'{path} --help' lists the options"


def _options(context: Any) -> list[Any]:
    """Return the options of a command and those that all commands share."""
    options = []
    while context is not None:
        options += [p for p in context.command.params if p.param_type_name == "option"]
        context = context.parent
    return options


def _name(parameter: Any) -> str:
    """Return an option as it is typed, or the name of an argument as the help shows it."""
    if parameter.param_type_name == "option":
        return str(parameter.opts[-1])
    return str(parameter.metavar or parameter.name)


def _source(parameter: Any, context: Any) -> str:
    """Return where the value of a parameter is from: its variable, or as `_name` does."""
    if context is None or not is_set(context, parameter.name, by="ENVIRONMENT"):
        return _name(parameter)
    own = [parameter.envvar] if isinstance(parameter.envvar, str) else parameter.envvar or ()
    prefix = f"{context.auto_envvar_prefix}_{parameter.name.upper()}"
    return next((name for name in own if name in os.environ), prefix)


def _usage(context: Any) -> str | None:
    if context is None:
        return None
    read: Callable[[], str] = context.get_usage
    return " ".join(read().split()).replace("Usage:", "usage:", 1)


def _plain(message: str) -> str:
    """Convert a message to lower case without its full stop."""
    text = message.removeprefix("Value error, ").rstrip(".")
    return text[:1].lower() + text[1:]
