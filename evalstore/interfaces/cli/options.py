"""Options that several commands share, in tables."""

from __future__ import annotations

import functools
import inspect
import shlex
from collections.abc import Callable, Mapping
from pathlib import PurePath
from typing import Annotated, Any, Literal, get_origin, get_type_hints

import typer

from evalstore.core.errors import NotARevisionError
from evalstore.interfaces.cli import completions, help
from evalstore.planning.options import SelectionOptions

Command = Callable[..., None]
Table = Mapping[str, Any]
"""From the name of a field to the option or argument that sets it, in the order of the help."""


def option(names: str, section: str, text: str, **settings: Any) -> Any:
    """Return an option for a table: its names, the section of the help it is in, and its help."""
    return typer.Option(*names.split(", "), help=text, rich_help_panel=section, **settings)


JSON = option("--json", help.OUTPUT, "Print JSON (stable schema).")
Json = Annotated[bool, JSON]
RunOrWorkspace = Annotated[
    str,
    typer.Argument(
        metavar="REV",
        help="A run (default: the last), or @work: the workspace as it is now.",
        autocompletion=completions.runs,
    ),
]
WorkspaceOrRun = Annotated[
    str,
    typer.Argument(
        metavar="REV",
        help="A run, such as @, the last one. Without it: @work, the workspace as it is now.",
        show_default=False,
        autocompletion=completions.runs,
    ),
]


def require_revision(command: str, text: str) -> None:
    """Raise `EvalstoreError` if the argument of a command that writes is the name of a file."""
    suffix = PurePath(text).suffix
    if suffix and not (text.startswith("@") or suffix[1].isdigit()):  # such as the name v1.0
        written = shlex.join(["evalstore", command, "-o", text])
        raise NotARevisionError(text, f"'{written}' writes a file")


Output = Annotated[
    Literal["table", "json", "jsonl", "csv", "md"],
    option("-o, --output", help.OUTPUT, "As table, json, jsonl, csv or md.", metavar="FORMAT"),
]

SELECTION: Table = {
    "paths": typer.Argument(
        metavar="PATH[::ROW]",
        help="Test files, folders, or one row of a file.",
        autocompletion=completions.places,
    ),
    "models": option(
        "-m, --model",
        help.MODELS,
        "Only this candidate (repeatable); any model.",
        metavar="ID",
        autocompletion=completions.models,
    ),
    "evaluators": option(
        "-J, --evaluator",
        help.MODELS,
        "Only this judge (repeatable).",
        metavar="ID",
        autocompletion=completions.models,
    ),
    "tags": option(
        "-t, --tag",
        help.SELECTION,
        "Only tests with this tag (repeatable).",
        metavar="T",
        autocompletion=completions.tags,
    ),
    "exclude_tags": option(
        "--exclude-tag",
        help.SELECTION,
        "No tests with this tag (repeatable).",
        metavar="T",
        autocompletion=completions.tags,
    ),
    "name": option(
        "-k, --name",
        help.SELECTION,
        "Only cases whose file::row matches (and, or, not).",
        metavar="EXPR",
    ),
    "attempts": option(
        "-r, --attempts", help.MODELS, "Answers to each question.", metavar="N", min=1, max=10_000
    ),
    "changed": option(
        "--changed", help.SELECTION, "Only cases added or edited since the last run."
    ),
    "last_failed": option(
        "--lf, --last-failed", help.SELECTION, "Only cases that did not pass in their last run."
    ),
    "sample": option(
        "--sample", help.SELECTION, "N random cases (see --seed).", metavar="N", min=1
    ),
    "seed": option("--seed", help.SELECTION, "Seed of --sample (default: 0).", metavar="S"),
    "shard": option(
        "--shard", help.SELECTION, "Part I of N of the cases (1-based).", metavar="I/N"
    ),
    "limit": option("--limit", help.SELECTION, "Only the first N cases.", metavar="N", min=1),
    "refresh": option("--refresh", help.REUSE, "Ask again what is stored."),
    "max_age": option(
        "--max-age",
        help.REUSE,
        "Ignore older answers: 30d, 12h.",
        metavar="AGE",
    ),
    "retry_errors": option(
        "--retry-errors", help.REUSE, "Only failed calls, and undecided or failed verdicts."
    ),
    "offline": option("--offline", help.LIMITS, "Skip everything that needs the network."),
    "keep_going": option(
        "--keep-going", help.SELECTION, "Skip test files with errors (exit code 2)."
    ),
}
"""The options that select cases, models and answers."""


class OptionGroup:
    """Options whose values make an object; its class has their types and defaults."""

    def __init__(self, make: Callable[..., object], table: Table) -> None:
        self._make = make
        types, declared = get_type_hints(make), inspect.signature(make).parameters
        self._lists = {name for name in table if get_origin(types[name]) is tuple}
        self.parameters = [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=None if name in self._lists else declared[name].default,
                annotation=Annotated[
                    list[str] | None if name in self._lists else types[name], info
                ],
            )
            for name, info in table.items()
        ]

    def take(self, values: dict[str, Any]) -> object:
        """Return the object for the values of the options, which are removed from the others."""
        taken = {parameter.name: values.pop(parameter.name) for parameter in self.parameters}
        return self._make(**taken | {name: tuple(taken[name] or ()) for name in self._lists})


def selection(*names: str) -> OptionGroup:
    """Return the options that select cases: those of these names, or all."""
    return OptionGroup(SelectionOptions, {name: SELECTION[name] for name in names or SELECTION})


def grouped(**groups: OptionGroup) -> Callable[[Command], Command]:
    """Give a command the options of groups: its parameter of that name is what the group makes.

    The command line, and its help, show the options in the place of the parameter.
    """

    def decorate(command: Command) -> Command:
        own = inspect.signature(command, eval_str=True)

        @functools.wraps(command)
        def with_groups(**values: object) -> None:
            for name, group in groups.items():
                values[name] = group.take(values)
            command(**values)

        spread = [
            member
            for name, parameter in own.parameters.items()
            for member in (groups[name].parameters if name in groups else (parameter,))
        ]
        spread = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in spread]
        with_groups.__signature__ = own.replace(parameters=spread)  # type: ignore[attr-defined]
        # Typer reads these, too: nothing is left for it to evaluate.
        with_groups.__annotations__ = {member.name: member.annotation for member in spread}
        return with_groups

    return decorate
