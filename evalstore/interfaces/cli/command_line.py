"""Reads the command line: plain values, and what is wrong."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path, PurePath
from typing import Any, Literal, get_args, get_origin

import typer
from typer.exceptions import TyperException

from evalstore.core.errors import EvalstoreError
from evalstore.planning.options import Location


def is_set(context: Any, name: str, *, by: str) -> bool:
    """Return whether an option is set by the `COMMANDLINE`, or by a variable: `ENVIRONMENT`."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == by


# --- plain values: texts, numbers, paths and words of a list
#
# Typer converts each value with pydantic, also a text into a text, and pydantic takes a sixth of
# the time of a short command to load. What is read here is what typer would return; whatever is
# wrong, or of another kind, is left to typer.


_NUMBERS: dict[type, tuple[re.Pattern[str], Callable[[str], int | float]]] = {
    int: (re.compile(r"-?[0-9]{1,9}"), int),
    float: (re.compile(r"-?[0-9]{1,9}(\.[0-9]{1,9})?"), float),
}
_NOT_PLAIN: Any = object()


def read_plain_values(parameters: Iterable[Any]) -> None:
    """Let parameters read plain values without typer's conversion."""
    for parameter in parameters:
        # Typer makes its conversion when it is first asked for.
        if getattr(parameter, "_runtime_param", parameter) is None:
            parameter._runtime_param = _PlainValue()


class _PlainValue:
    """Stands for typer's conversion until a value needs it."""

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """Return the value that the command gets; raises what typer raises."""
        is_many = param.multiple or param.nargs == -1
        if value is None:
            return () if is_many else None
        plain = (_read_texts if is_many else _read)(value, param.type_descriptor)
        if plain is not _NOT_PLAIN:
            return plain
        param._runtime_param = None
        return param.get_runtime_param().coerce(value, param=param, ctx=ctx)


def _read_texts(values: Any, descriptor: Any) -> Any:
    are_texts = type(values) in (list, tuple) and all(type(value) is str for value in values)
    return list(values) if are_texts and descriptor.annotation == list[str] else _NOT_PLAIN


def _read(value: Any, descriptor: Any) -> Any:
    kind, rules = descriptor.annotation, descriptor.parameter_info
    if kind in _NUMBERS:
        return _read_number(value, kind, rules)
    if kind in (str, bool) and type(value) is kind:
        return value
    if type(value) is not str:
        return _NOT_PLAIN
    if get_origin(kind) is Literal and value in get_args(kind):
        return value
    return _read_path(value, rules) if kind is Path else _NOT_PLAIN


def _read_number(value: Any, kind: type, rules: Any) -> Any:
    pattern, read = _NUMBERS[kind]
    if type(value) is str and pattern.fullmatch(value):
        value = read(value)
    if type(value) is not kind or rules.clamp:
        return _NOT_PLAIN
    is_above = rules.min is None or value >= rules.min
    return value if is_above and (rules.max is None or value <= rules.max) else _NOT_PLAIN


def _read_path(value: str, rules: Any) -> Any:
    is_any = rules.file_okay and rules.dir_okay and not (rules.resolve_path or rules.path_type)
    if not is_any or rules.exists or rules.writable or rules.allow_dash or "\0" in value:
        return _NOT_PLAIN
    return Path(value) if not os.path.lexists(value) or os.access(value, os.R_OK) else _NOT_PLAIN


# --- translates typer's errors about the command line into our own: an error and a hint


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

_RUN_FILES = "the test files say this: 'evalstore run tests/FILE.md' runs one"
_MEANT = {
    "eval evaluate test score": "'evalstore run' asks and judges",
    "validate lint": "'evalstore check' validates all files",
    "setup": "'evalstore init' makes a workspace",
    "cache --no-cache --force": (
        "answers are reused; 'evalstore run --refresh' asks again for one run: "
        "the next one counts older answers again, except with '--max-age'"
    ),
    "share --share": "'evalstore report' writes one HTML file, 'evalstore serve' shows results",
    "convert": "'evalstore import' reads the tests of other tools",
    "generate redteam": "no tests are generated: 'evalstore init FILE.md' makes a test file",
    "delete": "a store only grows: nothing in it is deleted",
    "debug": "'evalstore doctor' checks the setup and the models",
    "config": "settings are in evalstore.yaml; 'evalstore check' validates it",
    "--delay": "write '--set requestsPerMinute=N'",
    "--no-table": "'evalstore run --quiet' prints less",
    "--repeat --epochs --num-samples": "'evalstore run --attempts N' asks each question N times",
    "--filter --filter-pattern --sample-id": "'evalstore run -k EXPR' selects cases by name",
    "--filter-first-n": "'evalstore run --limit N' takes the first N cases",
    "--filter-sample": "'evalstore run --sample N' draws N cases",
    "--filter-failing": "'evalstore run --last-failed' takes what did not pass",
    "retry --filter-errors-only --retry-on-error": (
        "'evalstore run --retry-errors' repeats failed calls"
    ),
    "--filter-metadata --metadata": "'evalstore run --tag T' selects by a tag",
    "--provider --providers --target --targets --models --candidate --filter-providers "
    "--filter-targets --model-name": "'evalstore run --model ID' selects a candidate",
    "--grader --judge --judges --scorer": "'evalstore run --evaluator ID' selects a judge",
    "--max-concurrency --max-connections --max-samples --max-tasks --num-threads --parallel": (
        "'evalstore run --concurrency N' limits concurrent calls"
    ),
    "--prompts --tests --assertions --dataset --vars --var --task --prompt --test": _RUN_FILES,
    "--temperature": "write '--set candidatesTemperature=0'",
    "--max-tokens": "write '--set maxTestOutputTokens=N'",
    "--env-file --env-path --api-key": "keys are read from '.env' beside evalstore.yaml",
    "--fail-fast --exit-on-first-failure": "'evalstore run --exitfirst' stops at the first failure",
    "--description": "'evalstore run --message TEXT' describes a run",
    "--cost-limit --budget": "'evalstore run --max-cost USD' limits the cost",
    "--time-limit": "'evalstore run --max-time SECONDS' limits the time",
    "--output-path --log-dir": "'evalstore run --output FILE' writes the results",
}
"""From commands and options of promptfoo, Inspect and DeepEval to what evalstore has."""


def _find_meant(name: str) -> str | None:
    """Return the hint on a command or option of another tool."""
    return next((hint for names, hint in _MEANT.items() if name in names.split()), None)


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
        hint = _usage(context)
        if context and context.info_name == "show" and " " not in extra[1]:
            place = f"{context.params['revision']}:{extra[1]}"
            hint = f"a test file in a run is REV:FILE, such as '{place}'"
        return EvalstoreError(f"unexpected argument '{extra[1]}'", hint=hint)
    return EvalstoreError(_plain(error.message), hint=_usage(context))


def unknown_command(name: str, known: Iterable[str], settings: str = "") -> EvalstoreError:
    """Return the error for a command that does not exist; `settings` is the file given with -c."""
    from evalstore.files.fields import nearest

    if name in GONE:
        return EvalstoreError(f"'evalstore {name}' is now 'evalstore {GONE[name]}'")
    hint = _find_meant(name) or nearest(name, known) or "'evalstore --help' lists the commands"
    if PurePath(settings).stem == "promptfooconfig":
        hint = f"'evalstore import promptfoo {settings}' writes test files for its tests"
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
    meant = _find_meant(option) if path.endswith(" run") else None
    return meant or hint or f"'{path} --help' lists the options"


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
